#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Looks up the modules linked into binaries in Go's vulnerability database, or in the one in GOVULNDB. It fails if a
# vulnerable function is reachable. If the database cannot be reached, it says so, and fails only if STRICT is set:
# missing network access should not stop work.
set -eu

status=0
for binary in "$@"; do
	if output=$(govulncheck -db "${GOVULNDB:-https://vuln.go.dev}" -mode=binary "$binary" 2>&1); then
		echo "$binary: nothing known"
		continue
	fi
	case $output in
	*"fetching vulnerabilities"* | *"dial tcp"* | *"no such host"* | *"Client.Timeout"* | *"unrecognized vulndb format"*)
		echo "NOT CHECKED for vulnerabilities: $binary: the database cannot be reached, or is none: $(echo "$output" | tail -1)" >&2
		[ -z "${STRICT:-}" ] || status=1
		;;
	*)
		echo "$binary:" >&2
		echo "$output" >&2
		status=1
		;;
	esac
done
exit $status
