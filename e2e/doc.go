// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the built distributions as processes and tests them from outside, as their users do: by command
// line, sockets and signals.
//
// Most tests run in parallel. Tests that need scrapes exactly on time, press keys, load the machine or check that no
// alert fires run alone, before the others.
//
// The tests need the binaries that `make build` puts into bin/ and fail without them. Variables make a run longer:
// GODWIT_SOAK is the duration of TestSoak, TestRollouts and an outage, by default half a minute; GODWIT_CRASHES is how
// often agents and gateways are killed; GODWIT_MATRIX is the number of random configurations that TestMatrix tries;
// GODWIT_HOSTILE is the duration of each attack, and makes the tests run all attacks. A test that needs nginx, haproxy,
// a node exporter, a Prometheus server or a mount of its own is skipped on a machine that lacks it. Screenshots for
// people to look at are written to bin/tests.
//
// A scenario, a file of testdata/scenarios, says what a component does with some data; -update rewrites these files.
//
// The packages in the subdirectories are the harness. Each one is independent of the others, cleans up at the end of
// the test that uses it, and leaves neither goroutines nor processes behind.
package e2e
