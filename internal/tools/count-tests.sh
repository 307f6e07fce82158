#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Adds up the test2json files of a folder: how many tests (subtests included)
# passed, failed and were skipped. Fails when there were none, or any failed.
set -eu

cat "$1"/*.json | awk '
	!/"Test":/ { next }
	/"Action":"pass"/ { passed++ }
	/"Action":"fail"/ { failed++ }
	/"Action":"skip"/ { skipped++ }
	END {
		printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
		exit (failed > 0 || passed == 0)
	}'
