#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Counts the tests, subtests included, in the test2json files of a directory: how many passed, failed and were skipped
# in their last run. It names those that failed first and passed later. Runs without and with the race detector
# (*-race.json) count as one test, which fails if either does, and is skipped if both are. It exits with an error if any
# test failed or none passed.
set -eu

awk '
	function field(name) {
		return match($0, "\"" name "\":\"([^\"\\\\]|\\\\.)*\"") ? substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5) : ""
	}
	!/"Test":/ || !/"Action":"(pass|fail|skip)"/ { next }
	{
		run = FILENAME SUBSEP field("Package") " " field("Test")
		ended[run] = field("Action")
		if (ended[run] == "fail") tripped[run] = 1
	}
	END {
		weight["skip"] = 0; weight["pass"] = 1; weight["fail"] = 2
		for (run in ended) {
			split(run, part, SUBSEP)
			test = part[2]
			if (!(test in outcome) || weight[ended[run]] > weight[outcome[test]]) outcome[test] = ended[run]
		}
		for (run in tripped) if (ended[run] == "pass") {
			split(run, part, SUBSEP)
			print "flaky, passed when run again: " part[2] (part[1] ~ /-race\.json$/ ? ", with the race detector" : "")
		}
		for (test in outcome) count[outcome[test]]++
		printf "%d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"]
		exit (count["fail"] > 0 || count["pass"] == 0)
	}' "$1"/*.json
