#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Runs a command and fails if it changes the work tree. It compares the state before and after, so it also works with
# uncommitted changes.
set -eu

state() {
	git status --porcelain
	git diff HEAD
	git ls-files --others --exclude-standard -z | xargs -0 -r cat
}

before=$(mktemp)
after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT

state >"$before"
"$@"
state >"$after"
if ! cmp -s "$before" "$after"; then
	echo "cannot accept the tree: \`$*\` changed it; run it and commit what it wrote" >&2
	diff "$before" "$after" | head -40 >&2
	exit 1
fi
