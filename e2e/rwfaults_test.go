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

// A destination that is tried again soon, so that a test need not wait.
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
	// Requests that suffer a fault, at least.
	sufferers = 3
	// Much smaller than a request would be.
	smallRequest = 4 << 10
)

// What a destination may do to a request without anything being lost.
var harmless = []struct {
	name string
	step rwserver.Step
}{
	{"200", rwserver.Step{Status: 200, Body: "fine"}},
	{"204", rwserver.Step{}},
	{"500", rwserver.Step{Status: 500, Body: "broken"}},
	{"503", rwserver.Step{Status: 503}},
	{"429 with Retry-After", rwserver.Step{Status: 429, Header: rwserver.RetryAfterSeconds(1)}},
	{"429 without", rwserver.Step{Status: 429}},
	{"408", rwserver.Step{Status: 408}},
	{"401", rwserver.Step{Status: 401, Body: "who are you?"}},
	{"403", rwserver.Step{Status: 403}},
	{"404", rwserver.Step{Status: 404}},
	{"redirect", rwserver.Step{Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/"}}}},
	{"reset before the body is read", rwserver.Step{Fault: rwserver.ResetBeforeBody}},
	{"reset after the body was read", rwserver.Step{Fault: rwserver.ResetAfterBody}},
	{"reset after it was stored", rwserver.Step{Fault: rwserver.ResetAfterBody, Keep: true}},
	{"stored, then 500", rwserver.Step{Status: 500, Keep: true}},
	{"no answer", rwserver.Step{Fault: rwserver.Hang}},
	{"slow reader", rwserver.Step{ReadPause: 20 * time.Millisecond}},
	{"slow answer", rwserver.Step{Delay: 300 * time.Millisecond}},
	{"413", rwserver.Step{MaxRaw: smallRequest}},
	// From here on each takes a format away.
	{"415", rwserver.Step{Status: 415}},
	{"204 without the headers of 2.0", rwserver.Step{NoWritten: true}},
}

// Whatever a destination does, what was acknowledged arrives, and in order.
func TestRemoteWriteOutlivesItsDestinationsFaults(t *testing.T) {
	t.Parallel()
	y := newTally()
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: y.observe})
	addr := freeport.Addr(t)
	c := startCollector(t, fmt.Sprintf(impatient, server.URL(), addr))
	stop := y.flood(t, addr)
	y.progress(t)
	for _, fault := range harmless {
		asked := len(server.Requests())
		before := y.sound(t)
		if fault.name == "415" { // the next format is taken
			server.Then(fault.step)
		} else {
			server.Always(fault.step)
		}
		y.progress(t)
		if fault.step.Fault != rwserver.ResetBeforeBody { // of which the server remembers nothing
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
			assert.True(t, fault.step.Keep || fault.step.NoWritten || fault.step.ReadPause > 0, "%s: %d samples arrived twice", fault.name, repeated)
		}
	}
	last := server.Requests()[len(server.Requests())-1]
	assert.Equal(t, rwserver.V1, last.Version, "what takes 2.0 for something else gets 1.0")
	assert.Zero(t, c.metric(t, "otelcol_exporter_send_failed_metric_points"))

	// What can never be taken is lost, counted, and stops nothing else.
	from := len(server.Requests())
	refused := func() (samples int) {
		for _, r := range server.Requests()[from:] {
			if r.Status == 400 {
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
