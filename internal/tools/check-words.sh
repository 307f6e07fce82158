#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Fails if a word of CONTRIBUTING.md's list occurs where people read it: in documents, in texts of Go and TypeScript,
# and in metadata, examples and alerts. Decisions and the changelog are history and stay as they were written. It also
# fails if a test is named by the number of a requirement.
set -eu

list=CONTRIBUTING.md
words=$(awk '/^## Words/ { on = 1 } /^## / && !/^## Words/ { on = 0 } on && /^\| / && !/^\| not / { sub(/ \|[^|]*\|$/, ""); sub(/^\| */, ""); sub(/ *$/, ""); gsub(/, /, "|"); print }' "$list" |
	paste -sd '|' -)
[ -n "$words" ] || { echo "cannot find the list of words in $list" >&2; exit 1; }

found=$(
	# Whole documents, metadata and the page's sources.
	git grep -I -n -i -w -E "$words" -- '*.md' '*.ts' '*/metadata.yaml' 'examples/*.yaml' 'dashboards/*' 'distributions/*.yaml' 'distributions/*.md' \
		":!$list" ':!CHANGELOG.md' ':!docs/design/*' || true
	# Texts of programs: quoted strings, except in tests.
	git grep -I -n -i -w -E "\"[^\"]*\b($words)\b[^\"]*\"" -- '*.go' ':!*_test.go' || true
)
named=$(git grep -n -E 'func (Test|Fuzz|Benchmark)([A-Z][0-9]{2})+[A-Z]' -- '*_test.go' || true)
if [ -n "$found$named" ]; then
	[ -z "$found" ] || { echo "words that $list would have otherwise:"; echo "$found"; } >&2
	[ -z "$named" ] || { echo "tests that are named by numbers:"; echo "$named"; } >&2
	exit 1
fi
