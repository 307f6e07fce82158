#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Lists the packages of the current module that are worth a run with the race detector: they have tests, and start
# goroutines in these or in the tested code. Arguments are passed to go list.
set -eu

starts='(^|[[:space:]])go (func|[a-zA-Z_.]+\()|\.Go\(|RunParallel|\.Parallel\(\)|httptest\.New(Server|TLSServer|Unstarted)|synctest\.Test|\.Start\('
"${GO:-go}" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}	{{.Dir}}{{end}}' "$@" ./... |
	while IFS='	' read -r package dir; do
		! grep -qE "$starts" "$dir"/*.go || echo "$package"
	done
