// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/advice"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/known"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// subject is the view of a test's destinations.
type subject struct {
	*consoletest.World

	view View
}

func open(t *testing.T) *subject {
	t.Helper()
	w := consoletest.New(t)
	return &subject{w, View{Sources: w.Sources, Meter: w.Meter}}
}

func (s *subject) get() deliveryJSON {
	s.T.Helper()
	return consoletest.Get[deliveryJSON](s.T, s.view.Answer, "")
}

func TestDelivery(t *testing.T) {
	s := open(t)
	d := inspect.Destination{
		Name: "http://mimir", Protocol: "remote write 2.0.0", Sent: 100, WireBytes: 1000, RawBytes: 5000, Acks: 4, AckSeconds: 2,
		Dropped: map[string]int64{"rejected": 5}, Responses: map[string]int64{"204": 3, "503": 1}, Requests: 4,
		Queue: inspect.Queue{Bytes: 10, Capacity: 40, Unit: "bytes", Age: time.Second},
	}
	s.Register(inspect.Source{
		Kind: component.KindExporter, ID: consoletest.ID("remotewrite"), Signal: "metrics",
		Delivery: func() inspect.Delivery {
			return inspect.Delivery{Shards: 2, CacheSeries: 9, Destinations: []inspect.Destination{d}}
		},
	})
	s.Register(inspect.Source{
		Kind: component.KindReceiver, ID: consoletest.ID("otlpstream"),
		Intake: func() inspect.Intake { return inspect.Intake{Streams: 3, Requests: map[string]int64{"ok": 7}} },
	})
	s.Clock.Pass(2 * meter.MostAge)
	s.Meter.Look()
	first := s.get()
	require.Nil(t, first.Over)
	require.Equal(t, []outcomeJSON{{"ok", 7}}, first.Receivers[0].Requests)
	to := first.Exporters[0].Destinations[0]
	require.Equal(t, "ok", to.State)
	require.Nil(t, to.SentRate)
	require.InDelta(t, 0.25, *to.Queue.Used, 0)
	require.InDelta(t, 0.5, *to.AckSeconds, 0, "since the start")
	require.Nil(t, to.PerItem, "what was lost took bytes, too")

	d.Sent, d.WireBytes, d.RawBytes, d.Acks, d.AckSeconds = 200, 1500, 6000, 6, 2.2
	d.Dropped = map[string]int64{"rejected": 25}
	s.Clock.Pass(meter.Interval)
	second := s.get()
	require.InDelta(t, 10, *second.Over, 0)
	to = second.Exporters[0].Destinations[0]
	require.Equal(t, "dropping", to.State)
	require.InDelta(t, 10, *to.SentRate, 0)
	require.InDelta(t, 50, *to.WireRate, 0)
	require.Nil(t, to.PerItem)
	require.InDelta(t, 0.1, *to.AckSeconds, 1e-9, "of late")
	require.InDelta(t, 2, *to.Dropped[0].Rate, 0)

	s.Clock.Pass(time.Hour)
	require.Nil(t, s.get().Over, "an hour ago is no rate")

	_, _, text := consoletest.Ask(t, s.view.Answer, "?format=csv", "")
	require.Contains(t, text, "\nremotewrite,metrics,http://mimir,ok,remote write 2.0.0,")
}

func TestWhatClientsSend(t *testing.T) {
	s := open(t)
	flow := inspect.Flow{In: 10, Out: 9, Dropped: map[string]int64{"timestamp": 1}}
	s.Register(inspect.Source{
		Kind: component.KindReceiver, ID: consoletest.ID("remotewrite"), Flow: func() inspect.Flow { return flow },
		Intake: func() inspect.Intake {
			return inspect.Intake{Last: inspect.Fault{At: time.Unix(7, 0), Text: "token=s3cr3t: no"}}
		},
	})
	for range 2 {
		s.Pass()
	}
	s.Clock.Pass(meter.Interval)
	flow = inspect.Flow{In: 110, Out: 89, Refused: 10, Dropped: map[string]int64{"timestamp": 11}}
	in := s.get().Receivers[0]
	require.InDelta(t, 4, *in.TakenRate, 0)
	require.InDelta(t, 0.5, *in.RefusedRate, 0)
	require.Equal(t, []dropJSON{{"timestamp", 11, known.Number(0.5), advice.ForLoss("timestamp")}}, in.Dropped)
	require.Equal(t, int64(7), in.LastErrorAt.Unix())
	require.NotContains(t, in.LastError, "s3cr3t")
}

func TestStatesOfDestinations(t *testing.T) {
	f := func(want string, d inspect.Destination) {
		t.Helper()
		got := newDestination(&d, &inspect.Destination{}, time.Unix(1000, 0), time.Second)
		require.Equal(t, want, got.State)
		if want == stateDropping {
			require.NotEmpty(t, got.Dropped[0].Next, "what to do")
		} else {
			require.Equal(t, want == stateDelivering, got.Next == "", "what to do")
		}
	}
	f("ok", inspect.Destination{})
	f("retrying", inspect.Destination{Retries: 1})
	f("retrying", inspect.Destination{LastError: "x"})
	f("throttled", inspect.Destination{ThrottledUntil: time.Unix(1001, 0), LastError: "x"})
	f("dropping", inspect.Destination{Dropped: map[string]int64{"x": 1}})
	f("breaker_open", inspect.Destination{BreakerOpen: true, Dropped: map[string]int64{"x": 1}})
}

// The bytes per item are known only while each request is accepted the first time.
func TestBytesOfAnItem(t *testing.T) {
	f := func(before, now inspect.Destination, age time.Duration, want float64) {
		t.Helper()
		got := newDestination(&now, &before, time.Unix(1000, 0), age).PerItem
		if want == 0 {
			require.Nil(t, got)
			return
		}
		require.NotNil(t, got)
		require.InDelta(t, want, *got, 1e-9)
	}
	f(inspect.Destination{Sent: 100, WireBytes: 1000}, inspect.Destination{Sent: 200, WireBytes: 1500}, time.Second, 5)
	f(inspect.Destination{Sent: 100, WireBytes: 1000}, inspect.Destination{Sent: 100, WireBytes: 1000}, time.Second, 10)
	f(inspect.Destination{}, inspect.Destination{Sent: 100, WireBytes: 1000}, 0, 10)
	f(inspect.Destination{Sent: 100, WireBytes: 1000}, inspect.Destination{Sent: 200, WireBytes: 1900, Retries: 1}, time.Second, 0)
	f(inspect.Destination{Sent: 100, WireBytes: 1000}, inspect.Destination{Sent: 200, WireBytes: 1900, Dropped: map[string]int64{"r": 1}}, time.Second, 0)
	f(inspect.Destination{Sent: 100, WireBytes: 1000, Retries: 1}, inspect.Destination{Sent: 200, WireBytes: 1500, Retries: 1}, time.Second, 5)
	f(inspect.Destination{Sent: 100, WireBytes: 1000, Retries: 1}, inspect.Destination{Sent: 100, WireBytes: 1000, Retries: 1}, time.Second, 0)
	f(inspect.Destination{}, inspect.Destination{}, time.Second, 0)
}

// Data that was refused for good is not retried, whatever the error says.
func TestARefusalForGoodIsALoss(t *testing.T) {
	d := inspect.Destination{LastError: "answered 400", Dropped: map[string]int64{"rejected": 2}}
	require.Equal(t, "dropping", newDestination(&d, &d, time.Unix(1000, 0), time.Second).State)
	d.Queue.Items = 1
	require.Equal(t, "retrying", newDestination(&d, &d, time.Unix(1000, 0), time.Second).State)
}

func TestWhatIsNotCountedIsNull(t *testing.T) {
	d := newDestination(&inspect.Destination{WireBytes: -1, RawBytes: -1}, &inspect.Destination{WireBytes: -1, RawBytes: -1}, time.Unix(1, 0), time.Second)
	require.Nil(t, d.WireBytes)
	require.Nil(t, d.WireRate)
	require.Nil(t, d.RawRate)
	require.Nil(t, d.PerItem)
	require.Nil(t, d.Queue.Used)
}

func TestRatesAreUnknownAtFirst(t *testing.T) {
	s := open(t)
	x := s.Exporter("remotewrite", inspect.Destination{Name: "a", Taken: 10, Sent: 4, Waiting: 6})
	d := s.get()
	require.Nil(t, d.Exporters[0].Destinations[0].LostRate, "it is not zero: nobody knows yet")
	require.Nil(t, d.Exporters[0].Destinations[0].WaitingRate)

	s.Clock.Pass(meter.Interval)
	x.Delivery.Destinations[0].Taken, x.Delivery.Destinations[0].Sent, x.Delivery.Destinations[0].Dropped, x.Delivery.Destinations[0].Waiting = 100, 50, map[string]int64{"rejected": 40}, 10
	to := s.get().Exporters[0].Destinations[0]
	require.InDelta(t, *to.TakenRate, *to.SentRate+*to.LostRate+*to.WaitingRate, 0.001)
}
