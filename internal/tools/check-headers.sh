#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Fails if a source file lacks its licence header. Generated files have the header of their generator.
set -eu

missing=$(git ls-files -co --exclude-standard '*.go' '*.sh' '*.ts' |
	grep -v -E '(^|/)generated_|^distributions/[^/]+/(main|components)[^/]*\.go$' |
	while read -r file; do
		[ ! -f "$file" ] || head -5 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
	done)
if [ -n "$missing" ]; then
	echo "no SPDX header in:" >&2
	echo "$missing" >&2
	exit 1
fi
