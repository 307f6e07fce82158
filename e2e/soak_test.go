// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// soakVariable names the environment variable with the duration of TestSoak: see `make soak`.
const soakVariable = "GODWIT_SOAK"

const (
	shortSoak = 20 * time.Second
	// A soak of a minute has phases of three seconds. Phases of the short form are as short as possible; those of a
	// long one have a maximum.
	phasesPerSoak           = 20
	shortPhase, longPhase   = time.Second, 15 * time.Second
	shortFlocks, longFlocks = 6, 20
	// The memory of a backlog on a busy machine is not returned within ten seconds.
	shortRoom, longRoom = 24, 8
	// Discovery waits five seconds. In a short soak, the connections that two changes open, of three flocks each, may
	// be in some readings and not in others.
	shortFlux, longFlux = 6 * perFlock, 20
	// The least time between readings, which are taken only in calm phases.
	readingEvery = 100 * time.Millisecond
	// Longer than any phase: the agent never drops what is in its queue.
	longOutage = 40 * time.Second
	// Counters of lost data are updated within one refresh of the agent's telemetry.
	telemetryWait = 2 * time.Minute
)

// soak is an agent with its targets and its destination.
type soak struct {
	*agent

	server *rwserver.Server
	flocks *flocks
	phase  time.Duration
	// room is the growth of memory that is always allowed, in MiB.
	room float64
	// flux is the growth of open files that is always allowed.
	flux float64
	// round counts phases: in each, another flock leaves.
	round  int
	absent int
	trends []*trend
}

// TestSoak runs the agent under changing load with a receiver that misbehaves, and checks that nothing grows or gets
// lost.
func TestSoak(t *testing.T) {
	t.Parallel()
	duration := soakDuration(t)
	s := startSoak(t, duration)
	begin := time.Now()
	s.cycle(t) // a warm-up: what happens for the first time may allocate
	s.watch()
	for cycles := 2; ; cycles++ {
		s.cycle(t)
		passed := time.Since(begin)
		t.Logf("after %v: %v", passed.Round(time.Second), s.trends)
		if passed+passed/time.Duration(2*cycles) >= duration { // another cycle would end too late by more than half a cycle
			break
		}
	}
	s.requireSteady(t)
	assert.Positive(t, s.stop(t), "the outages that lose data lost none: they were no test")
}

// watch starts to read the quantities that must not grow.
func (s *soak) watch() {
	s.trends = []*trend{
		// The process' own memory, without the pages of its binary, which the kernel loads as it likes.
		{what: "resident memory, MiB", tolerance: 0.2, floor: s.room},
		{what: "live heap, MiB", tolerance: 0.2, floor: s.room / 2},
		{what: "threads", tolerance: 0.1, floor: 10},
		{what: "open files", tolerance: 0.1, floor: s.flux},
	}
}

func (s *soak) requireSteady(t *testing.T) {
	t.Helper()
	for _, tr := range s.trends {
		assert.True(t, tr.steady(), "%v", tr)
	}
}

// soakDuration returns the duration of a soak.
func soakDuration(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(soakVariable)
	if text == "" {
		return shortSoak
	}
	duration, err := time.ParseDuration(text)
	require.NoError(t, err, soakVariable)
	return duration
}

func startSoak(t *testing.T, duration time.Duration) *soak {
	t.Helper()
	s := &soak{phase: min(max(duration/phasesPerSoak, shortPhase), longPhase), absent: -1}
	number := shortFlocks
	s.room, s.flux = shortRoom, shortFlux
	if s.phase > shortPhase {
		number, s.room, s.flux = longFlocks, longRoom, longFlux
	}
	dir := t.TempDir()
	s.flocks = newFlocks(t, dir, number)
	s.server = rwserver.New(t, rwserver.Options{CountOnly: true, Observe: s.flocks.observe})
	s.agent = startAgentWith(t, patient, "GODWIT_REMOTE_WRITE_URL="+s.server.URL(), "GODWIT_TARGETS="+dir)
	s.WaitHTTP(firstWords, s.url(healthPort, "/"), nil)
	for flock := range number {
		s.flocks.arrive(t, flock)
	}
	wait.Until(t, firstSeries, func() (bool, string) {
		scrapes, _, _ := s.flocks.tally()
		return scrapes >= number*perFlock, fmt.Sprintf("%d scrapes of %d targets", scrapes, number*perFlock)
	})
	return s
}

// cycle runs all kinds of trouble, with a calm phase before and after each.
func (s *soak) cycle(t *testing.T) {
	t.Helper()
	s.calm(t)
	s.suffer(t, rwserver.Step{Status: 503, Body: "not now"}, min(2*s.phase, longPhase))
	s.calm(t)
	s.suffer(t, rwserver.Step{Fault: rwserver.ResetAfterBody}, s.phase)
	s.calm(t)
	s.suffer(t, rwserver.Step{Delay: 10 * time.Millisecond}, s.phase)
	s.calm(t)
	s.lose(t, rwserver.Step{Status: 400, Body: "never"}, s.phase)
	s.calm(t)
	if s.phase == longPhase {
		s.suffer(t, rwserver.Step{Fault: rwserver.Hang}, s.phase)
		s.calm(t)
		s.suffer(t, rwserver.Step{Status: 503, Body: "not now, nor soon"}, longOutage)
		s.calm(t)
	}
}

// calm waits until everything scraped so far has arrived, then takes readings for half a phase.
func (s *soak) calm(t *testing.T) {
	t.Helper()
	s.arrived(t, time.Now())
	for end := time.Now().Add(s.phase / 2); time.Now().Before(end); wait.Pause(t.Context(), readingEvery) {
		s.read(t)
	}
}

// suffer makes the server misbehave in a way that must not lose data. It waits for at least one request: the agent may
// send less often than once in a short phase.
func (s *soak) suffer(t *testing.T, step rwserver.Step, d time.Duration) {
	t.Helper()
	s.server.Then(step)
	s.misbehave(t, step, d, func() (bool, string) { return s.server.Left() == 0, "no request came" })
}

// misbehave makes the server misbehave for at least d, until enough returns true.
func (s *soak) misbehave(t *testing.T, step rwserver.Step, d time.Duration, enough func() (bool, string)) {
	t.Helper()
	s.change(t)
	s.server.Always(step)
	wait.Pause(t.Context(), d)
	wait.Until(t, delivery, enough)
	s.server.Always(rwserver.Step{})
}

// lose makes the server misbehave in a way that loses data, and checks that the agent counts it.
func (s *soak) lose(t *testing.T, step rwserver.Step, d time.Duration) {
	t.Helper()
	from := time.Now()
	s.arrived(t, from)
	before := s.dropped(t)
	s.misbehave(t, step, d, func() (bool, string) {
		return s.dropped(t) > before, "data was lost, and no counter says so"
	})
	s.flocks.mayLose(from)
	s.arrived(t, time.Now())
}

func (s *soak) dropped(t *testing.T) float64 {
	t.Helper()
	return metric(t, page(t, s.url(telemetryPort, "/metrics")), "otelcol_exporter_send_failed_metric_points")
}

// change lets one flock leave and the one that left before return, and gives a third one new labels.
func (s *soak) change(t *testing.T) {
	t.Helper()
	number := len(s.flocks.all) / perFlock
	if s.absent >= 0 {
		s.flocks.arrive(t, s.absent)
	}
	s.absent = s.round % number
	s.flocks.leave(t, s.absent)
	s.flocks.arrive(t, (s.round+number/2)%number)
	s.round++
}

func (s *soak) arrived(t *testing.T, mark time.Time) {
	t.Helper()
	wait.Until(t, delivery, s.flocks.arrivedBefore(mark))
}

func (s *soak) read(t *testing.T) {
	t.Helper()
	if s.trends == nil {
		return
	}
	usage := s.Usage()
	live := metric(t, page(t, s.url(telemetryPort, "/metrics")), "otelcol_extension_runtimeprofile_heap_live")
	require.Positive(t, live)
	now := time.Now()
	for i, value := range []float64{mib(usage.Anon), live / (1 << 20), float64(usage.Threads), float64(usage.Files)} {
		s.trends[i].add(now, value)
	}
}

// stop ends the agent in order, checks that nothing was left behind, and returns the number of scrapes lost in outages.
func (s *soak) stop(t *testing.T) (lost int) {
	t.Helper()
	s.flocks.end()
	assert.Zero(t, s.Stop(syscall.SIGTERM, drainTime))
	assert.Contains(t, s.Output(), "Shutdown complete.")
	ok, why := s.flocks.arrivedBefore(time.Now())()
	assert.True(t, ok, why)
	assert.Empty(t, s.flocks.problems)
	assert.Empty(t, s.server.Violations())
	scrapes, failed, lost := s.flocks.tally()
	t.Logf("%d scrapes of %d targets, %d failed, %d lost in outages; %v; CPU %v", scrapes, len(s.flocks.all), failed, lost, s.server.Totals(), s.CPUTime())
	assert.Less(t, failed, scrapes/2, "too many scrapes failed to tell anything")
	return lost
}
