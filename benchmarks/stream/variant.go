// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"maps"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/report"
)

// Variant is one way to send batches from a client to a server.
type Variant struct {
	Name  string
	Title string
	Party string // collector for the Collector's own exporter and receiver
	// Callers is the number of batches that the client has in flight.
	Callers int
	// client and server are settings beside those that all variants share.
	client, server map[string]any
	websocket      bool
}

// sequential reports whether each batch waits for the response to the previous one.
func (v *Variant) sequential() bool { return v.Callers == 1 }

// window is the exporter's default number of requests in flight.
const window = 128

// Variants returns the proposal's variants, with the proposal's names if it has them, and some more.
func Variants() []Variant {
	unary := func(callers int) map[string]any {
		return map[string]any{"mode": "unary", "in_flight": map[string]any{"requests": callers}}
	}
	stream := func(streams, callers int, rebalance map[string]any, more ...map[string]any) map[string]any {
		client := map[string]any{
			"mode": "stream", "streams": streams, "rebalance": rebalance,
			"in_flight": map[string]any{"requests": callers},
		}
		for _, m := range more {
			maps.Copy(client, m)
		}
		return client
	}
	never := map[string]any{"timeout": "0s", "requests": 0}
	always := map[string]any{"timeout": "1ns", "requests": 0}
	timed := map[string]any{"timeout": "30s", "requests": 1000}
	bySent := map[string]any{"streams": map[string]any{"max_requests": 1000, "max_age": "30s"}}
	webSocket := map[string]any{"transport": "websocket"}
	zstd := map[string]any{"compression": "zstd"}
	return []Variant{
		{Name: "unary", Title: "Unary", Callers: 1, client: unary(1)},
		{Name: "unary-async", Title: "Unary/Async, 10 in flight", Callers: 10, client: unary(10)},
		{Name: "stream-sync", Title: "Stream/NoLB/Sync", Callers: 1, client: stream(1, 1, never)},
		{Name: "stream-lbalways", Title: "Stream/LBAlways/Sync", Callers: 1, client: stream(1, 1, always)},
		{Name: "stream-lbtimed", Title: "Stream/LBTimed/Sync", Callers: 1, client: stream(1, 1, timed)},
		{Name: "stream-1", Title: "Stream/LBTimed/Async/1", Callers: window, client: stream(1, window, timed)},
		{Name: "stream-10", Title: "Stream/LBTimed/Async/10", Callers: window, client: stream(10, window, timed)},
		{Name: "stream-lbsrv", Title: "Stream/LBSrv/Async", Callers: window, client: stream(1, window, never), server: bySent},
		{Name: "websocket-sync", Title: "WebSocket/Sync", Callers: 1, client: stream(1, 1, timed, webSocket), websocket: true},
		{Name: "websocket", Title: "WebSocket/Async", Callers: window, client: stream(1, window, timed, webSocket), websocket: true},
		{Name: "websocket-zstd", Title: "WebSocket/Async, zstd (zlib in 2019)", Callers: window, client: stream(1, window, timed, webSocket, zstd), websocket: true},
		{Name: "otlp", Title: "Collector otlp", Party: "collector", Callers: 1},
		{Name: "otlp-10", Title: "Collector otlp, 10 in flight", Party: "collector", Callers: 10},
	}
}

// Points returns the proposal's sizes and latencies.
func Points() []report.StreamPoint {
	return []report.StreamPoint{
		{Batches: 8000, Items: 100, Attributes: 4},
		{Batches: 800, Items: 500, Attributes: 10},
		{Batches: 800, Items: 500, Attributes: 10, RTT: 2},
		{Batches: 400, Items: 500, Attributes: 10, RTT: 20},
		{Batches: 40, Items: 500, Attributes: 10, RTT: 200},
		{Batches: 400, Items: 500, Attributes: 10, RTT: 200, Pipelined: true},
	}
}

// Cell is one variant at one point.
type Cell struct {
	Variant string             `json:"variant"`
	Point   report.StreamPoint `json:"point"`
	// Batches is the number of batches to send, which may differ from the point's.
	Batches int `json:"batches"`
	// Profile is the file for a CPU profile, empty for none.
	Profile string `json:"profile,omitempty"`
}

func (c *Cell) variant() (*Variant, error) {
	for _, v := range Variants() {
		if v.Name == c.Variant {
			return &v, nil
		}
	}
	return nil, fmt.Errorf("cannot find variant %q", c.Variant)
}

// Cells returns the cells of a run in order. Sequential variants take a round trip per batch, so that with latency
// fewer batches suffice.
func Cells(points []report.StreamPoint) []Cell {
	var all []Cell
	for _, p := range points {
		for _, v := range Variants() {
			if p.Pipelined && v.sequential() {
				continue
			}
			n := p.Batches
			if v.sequential() && p.RTT >= 20 {
				n = min(n, int(4*time.Second/(2*p.Delay())))
			}
			all = append(all, Cell{Variant: v.Name, Point: p, Batches: n})
		}
	}
	return all
}
