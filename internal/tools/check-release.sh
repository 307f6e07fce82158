#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Fails unless a version can be released from this tree: it has the form vX.Y.Z, all modules and manifests carry it, and
# nothing is uncommitted.
set -eu

version=$1
echo "$version" | grep -Eq '^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$' || {
	echo "cannot release $version: a version is written vX.Y.Z" >&2
	exit 1
}
tree=$(sed -n 's/^    version: //p' versions.yaml)
[ "$version" = "$tree" ] || {
	echo "cannot release $version: versions.yaml says $tree; change it there, in the manifests and the go.mod files (make check-versions)" >&2
	exit 1
}
internal/tools/check-versions.sh
if [ -n "$(git status --porcelain)" ] && [ -z "${DIRTY:-}" ]; then
	echo "cannot release $version: the tree is not a commit; commit what differs, or say DIRTY=1 to try it out" >&2
	git status --short >&2
	exit 1
fi
