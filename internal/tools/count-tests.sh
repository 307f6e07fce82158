#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Adds up the test2json files of a folder: how many tests (subtests included)
# passed, failed and were skipped, each by its last run, and names those that
# failed at first. Fails when there were none, or any failed.
set -eu

cat "$1"/*.json | awk '
	function field(name) {
		return match($0, "\"" name "\":\"([^\"\\\\]|\\\\.)*\"") ? substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5) : ""
	}
	!/"Test":/ || !/"Action":"(pass|fail|skip)"/ { next }
	{
		test = field("Package") " " field("Test")
		ended[test] = field("Action")
		if (ended[test] == "fail") tripped[test] = 1
	}
	END {
		for (test in ended) count[ended[test]]++
		for (test in tripped) if (ended[test] == "pass") print "flaky, passed when run again: " test
		printf "%d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"]
		exit (count["fail"] > 0 || count["pass"] == 0)
	}'
