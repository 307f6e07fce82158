// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the built distributions as processes and looks at them from
// outside, the way their users do: by command line, sockets and signals.
//
// Tests that mostly wait run side by side. Those whose targets must be scraped on the
// dot, which press keys, load the machine or look for false alarms run alone, before them.
//
// Its tests need the binaries that `make build` puts into bin/ and fail without
// them. TestSoak, TestRollouts and an outage go on for as long as GODWIT_SOAK says, and half a
// minute without it; GODWIT_CRASHES says how often agents and gateways are killed;
// GODWIT_MATRIX how many random configurations TestMatrix tries; GODWIT_HOSTILE how
// long each stretch of an attack is, and that all of them are tried.
// What needs nginx, haproxy, a node exporter, a Prometheus server or a mount of its own
// is skipped where there is none. What people should look at is drawn into bin/tests.
//
// What a component does with some data is a scenario, a file of testdata/scenarios; -update writes them again.
//
// The packages below it are the harness; each stands alone, cleans up with the test
// that started it, and leaves neither goroutines nor processes behind.
package e2e
