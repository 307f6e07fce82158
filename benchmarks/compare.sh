#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Compares the Go benchmarks of the work tree with those of a revision. They run in turns, so that a change in the
# machine's speed affects both.
set -eu

base=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
scratch=$(mktemp -d)
clean() {
	git -C "$root" worktree remove --force "$scratch/base" 2>/dev/null || true
	rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP
git -C "$root" worktree add --detach "$scratch/base" "$base" >/dev/null

rounds=${COUNT:-6}
for round in $(seq "$rounds"); do
	echo "round $round of $rounds" >&2
	COUNT=1 "$here/micro.sh" "$scratch/base" >>"$scratch/base.txt"
	COUNT=1 "$here/micro.sh" "$root" >>"$scratch/here.txt"
done
cd "$scratch"
"$root/.tools/benchstat" "$base=base.txt" "here=here.txt"
