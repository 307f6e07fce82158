// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/balance"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/delivery"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// subject is the history of a test's world.
type subject struct {
	*consoletest.World

	hour Hour
}

func open(t *testing.T) *subject {
	t.Helper()
	s := &subject{World: consoletest.New(t)}
	s.sample()
	return s
}

func (s *subject) sample() {
	span := s.Meter.Look()
	s.hour.Add(span, balance.Of(span, s.Service.Graph()))
}

func (s *subject) pass() {
	s.Clock.Pass(meter.Interval)
	s.sample()
}

func (s *subject) get() historyOfDestinations {
	s.T.Helper()
	return consoletest.Get[historyOfDestinations](s.T, s.hour.Destinations, "")
}

// known returns the history of a destination, by line; as in JSON, null means unknown.
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
	x := s.Exporter("remotewrite", inspect.Destination{Name: "http://a"}, inspect.Destination{Name: "http://me:s3cr3t@b"})
	for range 2 * points {
		s.Clock.Pass(meter.Interval)
		a, b := &x.Delivery.Destinations[0], &x.Delivery.Destinations[1]
		a.Taken, a.Sent, a.WireBytes, a.Acks, a.AckSeconds = a.Taken+51000, a.Sent+51000, a.WireBytes+1000, a.Acks+2, a.AckSeconds+1
		b.Taken, b.Waiting, b.Dropped = b.Taken+51000, b.Waiting+50990, map[string]int64{"max_age": meter.Total(b.Dropped) + 10}
		s.sample()
	}
	h := s.get()
	require.Len(t, h.Times, points)
	require.Equal(t, s.Clock.Now().Unix(), h.Times[points-1])
	require.Len(t, h.Destinations, 2)
	a, b := h.known("http://a"), h.known("http://[REDACTED]@b")
	for name, want := range map[string]float64{"taken": 5100, "sent": 5100, "dropped": 0, "waiting": 0, "wire_bytes": 100, "ack_seconds": 0.5} {
		require.Len(t, a[name], points, name)
		require.InDelta(t, want, *a[name][0], 0, name)
		require.InDelta(t, want, *a[name][points-1], 0, name)
	}
	require.InDelta(t, 0, *b["sent"][0], 0)
	require.Nil(t, b["ack_seconds"][0], "there were no answers")
	require.InEpsilon(t, float64(x.Delivery.Destinations[1].Waiting), *b["waiting"][points-1], 0.001, "four digits")

	// The last point is the console's current number.
	now := delivery.Of(s.Meter.Look(), s.Sources.All()[0])
	require.InDelta(t, *now[1].LostRate, *b["dropped"][points-1], 0.001)
}

// A destination that is removed keeps its history, and missing values are not zero.
func TestADestinationThatIsGoneKeepsItsHour(t *testing.T) {
	s := open(t)
	x := s.Exporter("remotewrite", inspect.Destination{Name: "a"})
	pass := func(n int) (out historyOfDestinations) {
		for range n {
			s.pass()
		}
		return s.get()
	}
	pass(3)
	x.Delivery.Destinations = []inspect.Destination{{Name: "b"}}
	h := pass(2)
	// The first point is from the start, when there was neither.
	require.Equal(t, []bool{false, true, true, true, false, false}, there(h.known("a")["waiting"]))
	require.Equal(t, []bool{false, false, false, false, true, true}, there(h.known("b")["waiting"]))
	h = pass(points)
	require.Empty(t, h.known("a"))
	require.Len(t, h.Destinations, 1)
}

func there(values []*float64) (out []bool) {
	for _, v := range values {
		out = append(out, v != nil)
	}
	return out
}

// However many destinations there are or have been, their history is limited; a new one begins when there is room.
func TestHistoryOfManyDestinationsIsBounded(t *testing.T) {
	s := open(t)
	some := func(prefix string, n int) (out []inspect.Destination) {
		for i := range n {
			out = append(out, inspect.Destination{Name: fmt.Sprint(prefix, i)})
		}
		return out
	}
	x := s.Exporter("remotewrite", some("early", maxTrails+10)...)
	for range 3 {
		s.pass()
	}
	count := func(prefix string) (n int) {
		for _, d := range s.get().Destinations {
			if strings.HasPrefix(d.Destination, prefix) {
				n++
			}
		}
		return n
	}
	require.Equal(t, maxTrails, count("early"))
	x.Delivery.Destinations = some("late", 5)
	s.pass()
	require.Zero(t, count("late"), "there is no room yet")
	for range points {
		s.pass()
	}
	require.Equal(t, 5, count("late"))
	require.Zero(t, count("early"))
	status, _, text := consoletest.Ask(t, s.hour.Destinations, "", "")
	require.Equal(t, http.StatusOK, status)
	require.Less(t, len(text), 5*len(destinationLines)*points*len("0.1234,"))
}

func TestHistoryIsTheLastHour(t *testing.T) {
	s := open(t)
	receiver := s.Counter(component.KindReceiver, "fastprometheus")
	for range 2 * points {
		s.Clock.Pass(meter.Interval)
		receiver.Flow.In += 100
		s.sample()
	}
	h := consoletest.Get[historyJSON](t, s.hour.Everything, "")
	require.Len(t, h.Times, points)
	require.Len(t, h.Series, len(lines))
	require.Equal(t, s.Clock.Now().Unix(), h.Times[points-1])
	require.Equal(t, int64(10), h.Times[1]-h.Times[0])
	for _, line := range h.Series {
		require.Len(t, line.Values, points)
		switch line.Name {
		case "in":
			require.InDelta(t, 10, *line.Values[0], 0)
			require.InDelta(t, 10, *line.Values[points-1], 0)
		case "out", "bytes_per_sample":
			require.Nil(t, line.Values[0], line.Name)
		}
	}
}
