#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the failed tests in the test2json files of a directory with their errors, but without the output of processes.
# It is short enough for places that keep only the end of a log.
set -eu

cat "$1"/*.json | awk '
	function field(name,    text) {
		if (!match($0, "\"" name "\":\"([^\"\\\\]|\\\\.)*\"")) return ""
		text = substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5)
		gsub(/\\n$/, "", text); gsub(/\\n/, "\n", text); gsub(/\\t/, "\t", text); gsub(/\\"/, "\"", text)
		gsub(/\\u003c/, "<", text); gsub(/\\u003e/, ">", text); gsub(/\\u0026/, "\\&", text)
		return text
	}
	BEGIN { most = 40 } # lines per test
	!/"Action":"(output|fail)"/ { next }
	{ test = field("Package") " " field("Test") }
	/"Action":"fail"/ {
		printf "\nFAILED %s\n%s", test, said[test]
		if (count[test] > most) printf "    (%d lines left out)\n", count[test] - most
		next
	}
	{
		line = field("Output")
		if (line !~ /^        /) quoting[test] = 0
		if (!quoting[test] && line !~ /^=== / && ++count[test] <= most) said[test] = said[test] substr(line, 1, 1000) "\n"
		if (line ~ / printed:$/) quoting[test] = 1
	}'
