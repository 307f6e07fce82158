#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Prints the limiter's time per point with one processor and with two, and the ratio: as medians of COUNT runs of each,
# in turn, of clock and CPU time, and as the least of all runs. Control is the same for work that shares nothing: on a
# machine with other load its ratio is below 2. BENCHTIME is the duration of a run.
set -eu

cd "$1/processor/cardinalityprocessor"
export GOWORK=off
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP
${GO:-go} test -c -o "$scratch/cardinality" .

rounds=${COUNT:-5}
alone='^(BenchmarkKnown|BenchmarkAggregate|BenchmarkAggregateRelay)$'
for round in $(seq "$rounds"); do
	echo "round $round of $rounds" >&2
	for processors in 1 2; do
		benchmarks='Parallel$'
		[ "$processors" = 2 ] || benchmarks="$benchmarks|$alone"
		GOMAXPROCS=$processors "$scratch/cardinality" -test.run '^$' -test.bench "$benchmarks" -test.benchtime "${BENCHTIME:-1s}" |
			sed -n "s/^Benchmark/$processors /p" >>"$scratch/runs"
	done
done

awk '
	# median of the runs of a key
	function median(key,    n, all, i, j, v) {
		n = split(runs[key], all, " ")
		for (i = 2; i <= n; i++) {
			v = all[i] + 0
			for (j = i - 1; j > 0 && all[j] + 0 > v; j--) all[j + 1] = all[j]
			all[j + 1] = v
		}
		return n % 2 ? all[(n + 1) / 2] : (all[n / 2] + all[n / 2 + 1]) / 2
	}
	function least(key,    n, all, i, v) {
		n = split(runs[key], all, " ")
		v = all[1] + 0
		for (i = 2; i <= n; i++)
			if (all[i] + 0 < v) v = all[i] + 0
		return v
	}
	{
		name = $2
		sub(/-[0-9]+$/, "", name) # of processors
		if (!(name in seen)) { seen[name] = 1; names[++count] = name }
		for (i = 3; i < NF; i++)
			if ($(i + 1) ~ /^(cpu-|least-)?ns\/point$/) runs[$1, $(i + 1), name] = runs[$1, $(i + 1), name] " " $i
	}
	END {
		printf "%-52s %11s %11s %9s %9s %9s\n", "ns a point", "one", "two", "by clock", "at best", "by CPU"
		for (i = 1; i <= count; i++) {
			name = names[i]
			one = median(1 SUBSEP "ns/point" SUBSEP name)
			printf "%-52s %11.0f", name, one
			if ((2, "ns/point", name) in runs) {
				two = median(2 SUBSEP "ns/point" SUBSEP name)
				printf " %11.0f %8.2fx", two, one / two
			}
			if ((2, "least-ns/point", name) in runs && (1, "least-ns/point", name) in runs)
				printf " %8.2fx", least(1 SUBSEP "least-ns/point" SUBSEP name) / least(2 SUBSEP "least-ns/point" SUBSEP name)
			if ((2, "cpu-ns/point", name) in runs && (1, "cpu-ns/point", name) in runs)
				printf " %8.2fx", 2 * median(1 SUBSEP "cpu-ns/point" SUBSEP name) / median(2 SUBSEP "cpu-ns/point" SUBSEP name)
			printf "\n"
		}
	}' "$scratch/runs"
"$scratch/cardinality" -test.run '^(TestBytesPerFeeder|TestBytesPerSeries)$' -test.v | sed -n 's/.*_test.go:[0-9]*: //p'
