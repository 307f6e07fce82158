// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/chart"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// A stream is replaced at this age, give or take 10 %.
	rebalancePeriod = 4 * time.Second
	// How long there is only one server.
	alone = 2 * time.Second
	// How long both servers are measured once the load should be even.
	watched = 3 * time.Second
	// The least share of each server: half, minus tolerance for a busy machine.
	leastShare = 0.35
	// Between the requests of a producer.
	steadyPause = 10 * time.Millisecond
)

var rebalancing = fmt.Sprintf("exporters: {otlpstream: {streams: 8, rebalance: {timeout: %v}}}", rebalancePeriod)

// named makes a server send its name to the destination.
func named(name string) string {
	return fmt.Sprintf("exporters: {otlp_grpc: {headers: {server: %s}}}", name)
}

// through returns, by server, the items that came to a destination in a period.
func through(destination *otlpserver.Server, from, to time.Time) map[string]int {
	n := map[string]int{}
	for _, r := range destination.Requests() {
		if !r.At.Before(from) && r.At.Before(to) {
			n[r.Header.Get("Server")] += r.Items
		}
	}
	return n
}

// steadily sends at a steady rate until it is stopped.
func (l *ledger) steadily(t *testing.T, addr string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	conn := dial(t, addr)
	var producers sync.WaitGroup
	for range floodSenders {
		producers.Go(func() {
			for wait.Pause(ctx, steadyPause) {
				if err := l.send(ctx, conn); err != nil && ctx.Err() == nil {
					t.Errorf("cannot send: %v", err)
				}
			}
		})
	}
	return func() {
		cancel()
		producers.Wait()
	}
}

// eachBalancer runs a test with each of the balancers, over each transport.
func eachBalancer(t *testing.T, f func(t *testing.T, program, transport string)) {
	t.Helper()
	for _, program := range []string{"nginx", "haproxy"} {
		for _, transport := range []string{overGRPC, overWebSocket} {
			t.Run(program+"/"+transport, func(t *testing.T) {
				t.Parallel()
				f(t, program, transport)
			})
		}
	}
}

// The figure of the protocol's proposal: a server is added behind the balancer, and one rebalance period after it gets
// its first stream, it has half of the load. Nothing is lost or sent twice.
func TestStreamsSpreadOverAServerThatIsAdded(t *testing.T) {
	t.Parallel()
	eachBalancer(t, func(t *testing.T, program, transport string) {
		destination := otlpserver.New(t, otlpserver.Options{})
		one := startReceiving(t, destination.GRPCAddr(), named("one"))
		b := startBalancer(t, program, one)
		two := startReceiving(t, destination.GRPCAddr(), named("two"))
		sender := startSending(t, transport, b.addr(transport), rebalancing)
		l := &ledger{padding: 100} // no metrics: their streams send deltas, and last for delta_timeout
		stop := l.steadily(t, sender.grpc)
		flows(t, l, perRequest)
		begun := time.Now()
		wait.Pause(t.Context(), alone)
		streams := sender.counter(t, streamOpened)
		b.balance(t, one, two)
		added := time.Now()
		wait.Until(t, delivery, func() (bool, string) {
			return through(destination, added, time.Now())["two"] > 0, "nothing comes through the second server"
		})
		opened := sender.counter(t, streamOpened)
		wait.Until(t, 5*rebalancePeriod, func() (bool, string) { // once for each stream; a busy machine may be late
			anew := sender.counter(t, streamOpened) - opened
			return anew >= streams, fmt.Sprintf("%v of %v streams were opened anew", anew, streams)
		})
		even := time.Now()
		wait.Pause(t.Context(), watched)
		ended := time.Now()
		stop()
		wait.Until(t, delivery, l.arrived(destination))
		sender.settles(t)

		assert.Zero(t, through(destination, begun, added)["two"])
		after := through(destination, even, ended)
		all := float64(after["one"] + after["two"])
		assert.Greater(t, float64(after["one"])/all, leastShare, after)
		assert.Greater(t, float64(after["two"])/all, leastShare, after)
		t.Logf("%v streams: even %.1f s after the second server was added: %v", streams, even.Sub(added).Seconds(), after)
		assert.Zero(t, sender.counter(t, streamResent))
		assert.Zero(t, l.repeated(t, destination))
		drawSpread(t, destination, program, transport, begun, added, ended)
	})
}

// drawSpread draws the load of each server over time.
func drawSpread(t *testing.T, destination *otlpserver.Server, program, transport string, begun, added, ended time.Time) {
	t.Helper()
	const step = time.Second / 4
	one, two := chart.Line{Name: "first server"}, chart.Line{Name: "second server"}
	for at := begun; at.Add(step).Before(ended); at = at.Add(step) {
		x, n := at.Add(step/2).Sub(begun).Seconds(), through(destination, at, at.Add(step))
		one.Points = append(one.Points, chart.Point{X: x, Y: float64(n["one"]) / step.Seconds()})
		two.Points = append(two.Points, chart.Point{X: x, Y: float64(n["two"]) / step.Seconds()})
	}
	chart.Chart{
		Title:  fmt.Sprintf("A second server behind %s, over %s; streams are rebalanced every %v", program, transport, rebalancePeriod),
		XLabel: "seconds", YLabel: "items/s",
		Lines: []chart.Line{one, two},
		Marks: []chart.Mark{{X: added.Sub(begun).Seconds(), Text: "added"}},
	}.Save(t, fmt.Sprintf("streams-spread-%s-%s", program, transport))
}

// Servers without streaming are replaced, one by one, by servers with it.
func TestStreamsBeginDuringARollingUpgrade(t *testing.T) {
	t.Parallel()
	eachBalancer(t, func(t *testing.T, program, transport string) {
		destination := otlpserver.New(t, otlpserver.Options{})
		oldOne, oldTwo := startOld(t, destination.GRPCAddr()), startOld(t, destination.GRPCAddr())
		b := startBalancer(t, program, oldOne, oldTwo)
		sender := startSending(t, transport, b.addr(transport), rebalancing, "exporters: {otlpstream: {reprobe_interval: 500ms}}")
		l := &ledger{padding: 100, withMetrics: true}
		stop := l.steadily(t, sender.grpc)
		flows(t, l, streamProgress)
		assert.Zero(t, sender.counter(t, "streaming"), "nobody knows streams")

		newOne := startReceiving(t, destination.GRPCAddr())
		b.balance(t, newOne, oldTwo)
		flows(t, l, streamProgress)
		assert.Zero(t, oldOne.Stop(syscall.SIGTERM, drainTime))
		newTwo := startReceiving(t, destination.GRPCAddr())
		flows(t, l, streamProgress)
		b.balance(t, newOne, newTwo)
		flows(t, l, streamProgress)
		assert.Zero(t, oldTwo.Stop(syscall.SIGTERM, drainTime))
		wait.Until(t, delivery, func() (bool, string) {
			on := sender.counter(t, "streaming")
			return on > 0, "nothing is streamed"
		})
		flows(t, l, streamProgress)
		stop()
		wait.Until(t, delivery, l.arrived(destination))
		sender.settles(t)
		assert.Zero(t, l.repeated(t, destination))
	})
}

// startOld starts a server that knows only standard OTLP, as before the upgrade.
func startOld(t *testing.T, destination string) *receiving {
	t.Helper()
	r := &receiving{grpc: freeport.Addr(t), http: freeport.Addr(t)}
	config := fmt.Sprintf(streamServer, r.grpc, r.http, destination)
	r.collector = startDistribution(t, "godwit-gateway", strings.ReplaceAll(config, "otlpstream", "otlp"))
	return r
}
