#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Tags the commit at hand for each module of versions.yaml, as Go looks for
# versions, and for the release as a whole. Tags are made here and pushed by
# whoever makes them; one that exists must be of this commit.
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
