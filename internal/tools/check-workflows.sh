#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Fails if a workflow is malformed, calls a verb that make does not have, or omits a module with fuzz tests from the
# nightly run.
set -eu

actionlint

verbs=$(grep -hoE 'make [a-z][a-z-]*( |$)' .github/workflows/*.yml | cut -d' ' -f2 | sort -u)
for verb in $verbs $(sed -n 's/^ *verb: \[\(.*\)\]$/\1/p' .github/workflows/nightly.yml | tr -d ,); do
	grep -q "^$verb:" Makefile || {
		echo "cannot accept .github/workflows: make has no verb $verb" >&2
		exit 1
	}
done

night=$(sed -n '/^        module:$/,/^    steps:$/s/^          - //p' .github/workflows/nightly.yml | sort)
modules=$(git ls-files -co --exclude-standard '*_test.go' | xargs grep -lE '^func Fuzz' | while read -r file; do
	dir=$(dirname "$file")
	until [ -f "$dir/go.mod" ]; do dir=$(dirname "$dir"); done
	echo "$dir"
done | sort -u)
[ "$night" = "$modules" ] || {
	echo "cannot accept .github/workflows/nightly.yml: it fuzzes" $night", and fuzz tests are in" $modules >&2
	exit 1
}
