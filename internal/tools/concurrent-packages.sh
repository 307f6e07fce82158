#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Names the packages of the module it runs in that have something for the race detector: tests, and, in these or in what
# they test, a goroutine that somebody starts. Its arguments are go list's.
set -eu

starts='(^|[[:space:]])go (func|[a-zA-Z_.]+\()|\.Go\(|RunParallel|\.Parallel\(\)|httptest\.New(Server|TLSServer|Unstarted)|synctest\.Test|\.Start\('
"${GO:-go}" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}	{{.Dir}}{{end}}' "$@" ./... |
	while IFS='	' read -r package dir; do
		! grep -qE "$starts" "$dir"/*.go || echo "$package"
	done
