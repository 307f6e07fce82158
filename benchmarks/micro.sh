#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Runs the Go benchmarks of every module, with output for benchstat. BENCH selects benchmarks by pattern; COUNT and
# BENCHTIME set the number and the duration of runs.
set -eu

cd "$1"
export GOWORK=off
sed -n 's/^	\(\.[^ ]*\)$/\1/p' go.work | while read -r module; do
	packages=$(cd "$module" && ${GO:-go} list -f '{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}} {{end}}{{range .XTestGoFiles}}{{$d}}/{{.}} {{end}}' ./... 2>/dev/null |
		xargs -r grep -l '^func Benchmark' | xargs -r -n1 dirname | sort -u)
	[ -n "$packages" ] || continue
	# shellcheck disable=SC2086 # packages are words
	(cd "$module" && ${GO:-go} test -run '^$' -bench "${BENCH:-.}" -benchmem \
		-benchtime "${BENCHTIME:-1s}" -count "${COUNT:-1}" $packages)
done
