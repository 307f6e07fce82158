// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// impatient has short retry intervals, so that a test need not wait.
const impatient = `
exporters:
  remotewrite:
    endpoint: %s
    timeout: 1s
    batch: {timeout: 100ms}
    retry: {initial_interval: 50ms, max_interval: 200ms}
    circuit_breaker: {open_for: 200ms}
receivers:
  otlp: {protocols: {grpc: {endpoint: %s}}}
service:
  pipelines: {metrics: {receivers: [otlp], exporters: [remotewrite]}}
`

const (
	// The least number of requests that meet a fault.
	sufferers = 3
	// Much smaller than a usual request.
	smallRequest = 4 << 10
)

// Faults by which no data are lost, the log messages about each from its beginning to its end, and how long the server
// asks to wait.
var harmless = []struct {
	name  string
	step  rwserver.Step
	said  []string
	pause time.Duration
}{
	{"200", rwserver.Step{Status: 200, Body: "fine"}, nil, 0},
	{"204", rwserver.Step{}, nil, 0},
	{"500", rwserver.Step{Status: 500, Body: "broken"}, downAndUp, 0},
	{"503", rwserver.Step{Status: 503}, downAndUp, 0},
	{"429 with Retry-After", rwserver.Step{Status: 429, Header: rwserver.RetryAfterSeconds(1)}, nil, time.Second},
	{"429 with a date", rwserver.Step{Status: 429, RetryDate: 2 * time.Second}, nil, time.Second},
	{"429 without", rwserver.Step{Status: 429}, nil, 0},
	{"408", rwserver.Step{Status: 408}, downAndUp, 0},
	{"401", rwserver.Step{Status: 401, Body: "who are you?"}, downAndUp, 0},
	{"403", rwserver.Step{Status: 403}, downAndUp, 0},
	{"404", rwserver.Step{Status: 404}, downAndUp, 0},
	{"redirect", rwserver.Step{Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}}, downAndUp, 0},
	{"reset before the body is read", rwserver.Step{Fault: rwserver.ResetBeforeBody}, downAndUp, 0},
	{"reset after the body was read", rwserver.Step{Fault: rwserver.ResetAfterBody}, downAndUp, 0},
	{"reset after it was stored", rwserver.Step{Fault: rwserver.ResetAfterBody, Keep: true}, downAndUp, 0},
	{"stored, then 500", rwserver.Step{Status: 500, Keep: true}, downAndUp, 0},
	{"no answer", rwserver.Step{Fault: rwserver.Hang}, downAndUp, 0},
	{"slow reader", rwserver.Step{ReadPause: 20 * time.Millisecond}, nil, 0},
	{"slow answer", rwserver.Step{Delay: 300 * time.Millisecond}, nil, 0},
	{"413", rwserver.Step{MaxRaw: smallRequest}, nil, 0},
	// From here on, each fault excludes a format.
	{"415", rwserver.Step{Status: 415}, otherFormat, 0},
	{"204 without the headers of 2.0", rwserver.Step{NoWritten: true}, otherFormat, 0},
}

// Log messages.
var (
	isDown      = "destination accepts no data; it stays in the queue and is retried"
	downAndUp   = []string{isDown, "destination accepts data again"}
	otherFormat = []string{"format of the destination changed"}
	lostSome    = []string{"lost data of a block; more of the same is counted, not logged"}
)

// Whatever a destination does, all acknowledged data arrive, in order.
func TestRemoteWriteOutlivesItsDestinationsFaults(t *testing.T) {
	t.Parallel()
	y := newTally()
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	addr := freeport.Addr(t)
	c := startCollector(t, fmt.Sprintf(impatient, server.URL(), addr), patient)
	stop := y.flood(t, addr)
	y.progress(t)
	for _, fault := range harmless {
		if fault.pause > 0 || fault.step.Fault == rwserver.Hang {
			continue // slow: TestFaultsOfDestinations runs these in parallel
		}
		asked := len(server.Requests())
		before := y.sound(t)
		spoil(server, fault.step)
		y.progress(t)
		if fault.step.Fault != rwserver.ResetBeforeBody { // the server does not record such requests
			wait.Until(t, delivery, func() (bool, string) {
				n := len(server.Requests()) - asked
				return n >= sufferers, fmt.Sprintf("%s: %d of %d requests", fault.name, n, sufferers)
			})
		}
		server.Always(rwserver.Step{})
		arrived := y.arrivedBut(0)
		wait.Until(t, delivery, func() (bool, string) {
			ok, why := arrived()
			return ok, fault.name + ": " + why
		})
		if repeated := y.sound(t) - before; repeated > 0 {
			assert.True(t, fault.step.Keep || fault.step.NoWritten, "%s: %d samples arrived twice", fault.name, repeated)
		}
	}
	requests := server.Requests() // more keep coming
	assert.Equal(t, rwserver.V1, requests[len(requests)-1].Version, "what takes 2.0 for something else gets 1.0")
	assert.Zero(t, c.metric(t, "otelcol_exporter_send_failed_metric_points"))

	// Requests that are rejected for good are lost and counted, and affect no others.
	from := len(server.Requests())
	refused := func() (samples int) {
		for _, r := range server.Requests()[from:] {
			if refusedForGood(r) {
				samples += r.Samples
			}
		}
		return samples
	}
	server.Always(rwserver.Step{Status: 400, Body: "never"})
	wait.Until(t, delivery, func() (bool, string) { return refused() > 0, "nothing was refused" })
	server.Always(rwserver.Step{})
	y.progress(t)
	stop()
	lost := 0
	wait.Until(t, delivery, func() (bool, string) {
		lost = refused()
		return y.arrivedBut(lost)()
	})
	wait.Until(t, telemetryWait, func() (bool, string) {
		n := c.metric(t, "otelcol_exporter_send_failed_metric_points")
		return int(n) == lost, fmt.Sprintf("%d samples were refused and %v are counted", lost, n)
	})
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.NotContains(t, c.Output(), "panic:")
	assert.Empty(t, server.Violations())
	y.sound(t)
	t.Logf("%d samples acknowledged, %d lost to 400; %v", y.acknowledged(), lost, server.Totals())
}

// refusedForGood reports whether a request was rejected in the last format; in other formats, the data are sent again.
func refusedForGood(r rwserver.Request) bool {
	return r.Status == http.StatusBadRequest && r.Version == rwserver.V1 && r.Encoding == rwserver.Snappy
}

// spoil gives a server a fault, permanently, except 415: after one such response it accepts the next format.
func spoil(server *rwserver.Server, step rwserver.Step) {
	if step.Status == http.StatusUnsupportedMediaType {
		server.Then(step)
	} else {
		server.Always(step)
	}
}
