// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

func TestDelivery(t *testing.T) {
	s := open(t)
	d := inspect.Destination{
		Name: "http://mimir", Protocol: "remote write 2.0.0", Sent: 100, WireBytes: 1000, RawBytes: 5000, Acks: 4, AckSeconds: 2,
		Dropped: map[string]int64{reasonRejected: 5}, Responses: map[string]int64{"204": 3, "503": 1}, Requests: 4,
		Queue: inspect.Queue{Bytes: 10, Capacity: 40, Unit: "bytes", Age: time.Second},
	}
	s.RegisterInspection(inspect.Source{
		Kind: component.KindExporter, ID: id("remotewrite"), Signal: "metrics",
		Delivery: func() inspect.Delivery {
			return inspect.Delivery{Shards: 2, CacheSeries: 9, Destinations: []inspect.Destination{d}}
		},
	})
	s.RegisterInspection(inspect.Source{
		Kind: component.KindReceiver, ID: id("otlpstream"),
		Intake: func() inspect.Intake { return inspect.Intake{Streams: 3, Requests: map[string]int64{"ok": 7}} },
	})
	s.clock.pass(2 * mostAge)
	s.sample()
	first := get[deliveryJSON](s, "/api/v1/delivery")
	require.Nil(t, first.Over)
	require.Equal(t, []outcomeJSON{{"ok", 7}}, first.Receivers[0].Requests)
	to := first.Exporters[0].Destinations[0]
	require.Equal(t, "ok", to.State)
	require.Nil(t, to.SentRate)
	require.InDelta(t, 0.25, *to.Queue.Used, 0)
	require.InDelta(t, 0.5, *to.AckSeconds, 0, "since the start")
	require.Nil(t, to.PerItem, "what was lost took bytes, too")

	d.Sent, d.WireBytes, d.RawBytes, d.Acks, d.AckSeconds = 200, 1500, 6000, 6, 2.2
	d.Dropped = map[string]int64{reasonRejected: 25}
	s.clock.pass(sampleInterval)
	second := get[deliveryJSON](s, "/api/v1/delivery")
	require.InDelta(t, 10, *second.Over, 0)
	to = second.Exporters[0].Destinations[0]
	require.Equal(t, "dropping", to.State)
	require.InDelta(t, 10, *to.SentRate, 0)
	require.InDelta(t, 50, *to.WireRate, 0)
	require.Nil(t, to.PerItem)
	require.InDelta(t, 0.1, *to.AckSeconds, 1e-9, "of late")
	require.InDelta(t, 2, *to.Dropped[0].Rate, 0)

	s.clock.pass(time.Hour)
	require.Nil(t, get[deliveryJSON](s, "/api/v1/delivery").Over, "an hour ago is no rate")

	_, _, text := s.do(http.MethodGet, "/api/v1/delivery?format=csv", "")
	require.Contains(t, text, "\nremotewrite,metrics,http://mimir,ok,remote write 2.0.0,")
}

func TestWhatClientsSend(t *testing.T) {
	s := open(t)
	flow := inspect.Flow{In: 10, Out: 9, Dropped: map[string]int64{reasonTimestamp: 1}}
	s.RegisterInspection(inspect.Source{
		Kind: component.KindReceiver, ID: id("remotewrite"), Flow: func() inspect.Flow { return flow },
		Intake: func() inspect.Intake {
			return inspect.Intake{Last: inspect.Fault{At: time.Unix(7, 0), Text: "token=s3cr3t: no"}}
		},
	})
	for range 2 {
		s.clock.pass(sampleInterval)
		s.sample()
	}
	s.clock.pass(sampleInterval)
	flow = inspect.Flow{In: 110, Out: 89, Refused: 10, Dropped: map[string]int64{reasonTimestamp: 11}}
	in := get[deliveryJSON](s, "/api/v1/delivery").Receivers[0]
	require.InDelta(t, 4, *in.TakenRate, 0)
	require.InDelta(t, 0.5, *in.RefusedRate, 0)
	require.Equal(t, []dropJSON{{reasonTimestamp, 11, number(0.5), nextForDrop(reasonTimestamp)}}, in.Dropped)
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

func TestWhatToDoAboutClients(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"answered 400 to 10.0.0.7: cannot decompress": nextForNonsense,
		"answered 503 to 10.0.0.7: no room":           "Clients send it again",
		"answered 429 to 10.0.0.7: slow down":         "Clients send it again",
		"answered 401 to 10.0.0.7: who are you":       "See the log of the client",
	} {
		require.Contains(t, nextForClient(text), want, text)
		require.Equal(t, text == "", nextForClient(text) == "")
	}
}

// What an item takes on the wire is known while each request is taken at once.
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

// What was refused for good is not tried again, whatever the error says.
func TestARefusalForGoodIsALoss(t *testing.T) {
	d := inspect.Destination{LastError: "answered 400", Dropped: map[string]int64{reasonRejected: 2}}
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
