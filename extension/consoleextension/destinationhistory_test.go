// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// known is what a history has of a destination, by line; as in JSON, null is not known.
func (h *historyOfDestinations) known(name string) map[string][]*float64 {
	out := map[string][]*float64{}
	for _, d := range h.Destinations {
		if d.Destination == name {
			for _, line := range d.Series {
				out[line.Name] = line.Values
			}
		}
	}
	return out
}

type historyOfDestinations struct {
	Times        []int64
	Destinations []struct {
		Exporter, Destination string
		Series                []struct {
			Name   string
			Values []*float64
		}
	}
}

func TestEachDestinationHasAnHour(t *testing.T) {
	s := open(t)
	x := s.delivering("remotewrite", inspect.Destination{Name: "http://a"}, inspect.Destination{Name: "http://me:s3cr3t@b"})
	for range 2 * ringSize {
		s.clock.pass(sampleInterval)
		a, b := &x.d.Destinations[0], &x.d.Destinations[1]
		a.Taken, a.Sent, a.WireBytes, a.Acks, a.AckSeconds = a.Taken+51000, a.Sent+51000, a.WireBytes+1000, a.Acks+2, a.AckSeconds+1
		b.Taken, b.Waiting, b.Dropped = b.Taken+51000, b.Waiting+50990, map[string]int64{"max_age": total(b.Dropped) + 10}
		s.sample()
	}
	h := get[historyOfDestinations](s, "/api/v1/delivery/history")
	require.Len(t, h.Times, ringSize)
	require.Equal(t, s.clock.now().Unix(), h.Times[ringSize-1])
	require.Len(t, h.Destinations, 2)
	a, b := h.known("http://a"), h.known("http://[REDACTED]@b")
	for name, want := range map[string]float64{"taken": 5100, "sent": 5100, "dropped": 0, "waiting": 0, "wire_bytes": 100, "ack_seconds": 0.5} {
		require.Len(t, a[name], ringSize, name)
		require.InDelta(t, want, *a[name][0], 0, name)
		require.InDelta(t, want, *a[name][ringSize-1], 0, name)
	}
	require.InDelta(t, 0, *b["sent"][0], 0)
	require.Nil(t, b["ack_seconds"][0], "there were no answers")
	require.InEpsilon(t, float64(x.d.Destinations[1].Waiting), *b["waiting"][ringSize-1], 0.001, "four digits")

	// The last point is the number that the console says now.
	d := get[deliveryJSON](s, "/api/v1/delivery")
	require.Equal(t, s.clock.now(), d.Now)
	require.InDelta(t, *d.Exporters[0].Destinations[1].LostRate, *b["dropped"][ringSize-1], 0.001)
}

// A destination that goes keeps its hour, and what nobody sent is not zero.
func TestADestinationThatIsGoneKeepsItsHour(t *testing.T) {
	s := open(t)
	x := s.delivering("remotewrite", inspect.Destination{Name: "a"})
	pass := func(n int) (out historyOfDestinations) {
		for range n {
			s.clock.pass(sampleInterval)
			s.sample()
		}
		return get[historyOfDestinations](s, "/api/v1/delivery/history")
	}
	pass(3)
	x.d.Destinations = []inspect.Destination{{Name: "b"}}
	h := pass(2)
	// The first point is of the start, when there was neither.
	require.Equal(t, []bool{false, true, true, true, false, false}, there(h.known("a")["waiting"]))
	require.Equal(t, []bool{false, false, false, false, true, true}, there(h.known("b")["waiting"]))
	h = pass(ringSize)
	require.Empty(t, h.known("a"))
	require.Len(t, h.Destinations, 1)
}

func there(values []*float64) (out []bool) {
	for _, v := range values {
		out = append(out, v != nil)
	}
	return out
}

// However many destinations there are or have been, their history has a bound; who comes later begins when there is room.
func TestHistoryOfManyDestinationsIsBounded(t *testing.T) {
	s := open(t)
	some := func(prefix string, n int) (out []inspect.Destination) {
		for i := range n {
			out = append(out, inspect.Destination{Name: fmt.Sprint(prefix, i)})
		}
		return out
	}
	x := s.delivering("remotewrite", some("early", maxTrails+10)...)
	for range 3 {
		s.clock.pass(sampleInterval)
		s.sample()
	}
	count := func(prefix string) (n int) {
		for _, d := range get[historyOfDestinations](s, "/api/v1/delivery/history").Destinations {
			if strings.HasPrefix(d.Destination, prefix) {
				n++
			}
		}
		return n
	}
	require.Equal(t, maxTrails, count("early"))
	x.d.Destinations = some("late", 5)
	s.clock.pass(sampleInterval)
	s.sample()
	require.Zero(t, count("late"), "there is no room yet")
	for range ringSize {
		s.clock.pass(sampleInterval)
		s.sample()
	}
	require.Equal(t, 5, count("late"))
	require.Zero(t, count("early"))
	status, _, text := s.do(http.MethodGet, "/api/v1/delivery/history", "")
	require.Equal(t, http.StatusOK, status)
	require.Less(t, len(text), 5*len(destinationLines)*ringSize*len("0.1234,"))
}
