// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/benchmarks/distance"
	"github.com/godwit-otel/godwit/benchmarks/report"
)

// within is a network with latency in this process.
func within(to string, delay time.Duration) (addr string, stop func(), err error) {
	p, err := distance.NewProxy(to, delay)
	if err != nil {
		return "", nil, err
	}
	return p.Addr(), p.Close, nil
}

func TestEveryVariantDelivers(t *testing.T) {
	for _, v := range Variants() {
		t.Run(v.Name, func(t *testing.T) {
			for _, rtt := range []int{0, 2} {
				c := Cell{Variant: v.Name, Point: report.StreamPoint{Items: 3, Attributes: 3, RTT: rtt}, Batches: 20}
				run, err := c.Run(t.Context(), within)
				if err != nil {
					t.Fatal(err)
				}
				if run.Batches != 20 || run.CPU <= 0 || run.RSSPeak <= 0 || run.Files <= 0 || run.Files >= run.RSSPeak || run.Allocated <= 0 {
					t.Errorf("got %+v", run)
				}
				if v.sequential() && rtt > 0 && run.Wall < 20*0.002 {
					t.Errorf("20 batches took %v s: less than a round trip each", run.Wall)
				}
			}
		})
	}
}

func TestTheNetworkDelaysAndKeepsOrder(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // an echo server that closes its side, too
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(c, c)
		_ = c.Close()
	}()
	const delay = 30 * time.Millisecond
	p, err := distance.NewProxy(l.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, err := net.Dial("tcp4", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := make([]byte, 4<<20)
	for i := range sent {
		sent[i] = byte(i * i >> 8)
	}
	begun := time.Now()
	go func() {
		_, _ = c.Write(sent)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	first := make([]byte, 1)
	if _, err := io.ReadFull(c, first); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 2*delay {
		t.Errorf("the first byte was back after %v, less than a round trip", took)
	}
	rest, err := io.ReadAll(c)
	if err != nil || first[0] != sent[0] || !bytes.Equal(rest, sent[1:]) {
		t.Errorf("%d bytes came back of %d, or others (%v)", 1+len(rest), len(sent), err)
	}
	if p.Sent() != int64(len(sent)) {
		t.Errorf("it counted %d bytes of %d", p.Sent(), len(sent))
	}
}

func TestBatchesAreWhatThePointSays(t *testing.T) {
	all := batches(7, 5)
	for _, td := range all {
		spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		if spans.Len() != 7 || spans.At(6).Attributes().Len() > 5 || spans.At(6).Attributes().Len() < 3 {
			t.Fatalf("%d spans with %d attributes", spans.Len(), spans.At(6).Attributes().Len())
		}
	}
	a, _ := (&ptrace.ProtoMarshaler{}).MarshalTraces(all[3])
	b, _ := (&ptrace.ProtoMarshaler{}).MarshalTraces(batches(7, 5)[3])
	if !bytes.Equal(a, b) {
		t.Error("two runs are given different batches")
	}
}

func TestTheProposalsTableIsThere(t *testing.T) {
	rows := 0
	for _, c := range Cells(Points()) {
		if run := then(c.Variant, c.Point); run != nil {
			rows++
			if run.Rate() <= 0 || run.CPU <= 0 {
				t.Errorf("%s: %+v", c.Variant, run)
			}
		}
	}
	if want := 11*5 + 5; rows != want {
		t.Errorf("%d rows have figures of the proposal, not %d", rows, want)
	}
	if run := then("stream-1", Points()[0]); run == nil || run.CPU != 12.4 || int(run.Rate()+0.5) != 1510 {
		t.Errorf("got %+v", run)
	}
	if run := then("otlp", Points()[0]); run != nil {
		t.Errorf("got %+v", run)
	}
}
