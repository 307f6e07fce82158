#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Tags the current commit for each module of versions.yaml, in the form in which Go looks for versions, and for the
# whole release. It does not push the tags. An existing tag must be of this commit.
set -eu

version=$1
internal/tools/check-release.sh "$version"
own=github.com/godwit-otel/godwit
modules=$(sed -n '/^module-sets:/,/^excluded-modules:/s/^ *- //p' versions.yaml)
tags=$version
for module in $modules; do
	tags="$tags ${module#"$own"/}/$version"
done
here=$(git rev-parse HEAD)
for tag in $tags; do
	if there=$(git rev-parse --quiet --verify "refs/tags/$tag^{commit}"); then
		[ "$there" = "$here" ] || {
			echo "cannot tag $tag: it is $there, and this is $here; a version is never moved" >&2
			exit 1
		}
	fi
done
for tag in $tags; do
	git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null || git tag -a "$tag" -m "$tag"
	echo "$tag"
done
echo "to publish them: git push origin $tags" >&2
