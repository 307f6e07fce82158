// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// farSide is a pipeline that asks for unwritten values, and may have them written before it reads the points.
type farSide struct {
	settles  bool
	refuses  error
	deferred int       // the number of points with unwritten values
	values   []float64 // of the points
}

func (f *farSide) consume(ctx context.Context, md pmetric.Metrics) error {
	loan := handback.LoanOf(ctx, md)
	points, defers := loan.Defers()
	if f.deferred = 0; defers {
		f.deferred = points
	}
	if f.settles {
		loan.Settle()
	}
	f.values = f.values[:0]
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, p := range m.Gauge().DataPoints().All() {
					f.values = append(f.values, p.DoubleValue())
				}
			}
		}
	}
	return f.refuses
}

// runClient sends requests with one run of points, each with its own values, to a receiver that may leave them
// unwritten.
type runClient struct {
	receiver *remoteWriteReceiver
	sent     int
}

func newRunClient(t *testing.T, next consumer.Metrics) *runClient {
	t.Helper()
	r, err := newReceiver(createDefaultConfig().(*Config), settings(), next)
	require.NoError(t, err)
	r.reuse, r.defers = true, true
	r.prepare()
	return &runClient{receiver: r}
}

func (c *runClient) send(t *testing.T) (w *httptest.ResponseRecorder, values []float64) {
	t.Helper()
	c.sent++
	req := newV2()
	for i := range 64 {
		values = append(values, float64(c.sent*1000+i))
		req.series(sample(values[i], 1_700_000_000_000+int64(c.sent), 0), gauge, "Help.", "", "__name__", fmt.Sprint("metric_", i/4),
			"code", fmt.Sprint(i%4), "instance", "host:9100", "job", "node")
	}
	q := httptest.NewRequest(http.MethodPost, c.receiver.cfg.Path, bytes.NewReader(compress(t, promwrite.Snappy, bodyOf(promwrite.V2, &req.Request))))
	q.Header.Set("Content-Type", promwrite.ContentTypeV2)
	q.Header.Set("Content-Encoding", "snappy")
	w = httptest.NewRecorder()
	c.receiver.ServeHTTP(w, q)
	return w, values
}

// Points have the right values wherever they are read: behind the receiver and within it, whatever happened to
// unwritten values before.
func TestDeferredValuesAreSettledForWhoReadsThem(t *testing.T) {
	needRuns(t)
	var far farSide
	next, err := consumer.NewMetrics(far.consume)
	require.NoError(t, err)
	client := newRunClient(t, next)
	send := func(code int) []float64 {
		w, want := client.send(t)
		require.Equal(t, code, w.Code, w.Body)
		return want
	}
	deferring := func(code int) {
		for range 1000 { // a pool decides which memory a request gets
			if want := send(code); far.deferred == len(want) && !slices.Equal(far.values, want) {
				return
			}
		}
		require.Fail(t, "no point defers its value")
	}
	settled := func() {
		far.settles = true
		for range 20 {
			require.Equal(t, send(http.StatusNoContent), far.values)
		}
		far.settles = false
	}
	deferring(http.StatusNoContent)
	settled()

	deferring(http.StatusNoContent)
	seen := make(chan inspect.Glance, 1)
	go func() {
		g, _, _ := client.receiver.tap.Look(t.Context())
		seen <- g
	}()
	require.Eventually(t, client.receiver.tap.IsOpen, 10*time.Second, time.Millisecond)
	require.Equal(t, send(http.StatusNoContent), far.values, "it is settled for who looks at what is handed on")
	for _, p := range (<-seen).Points {
		require.Equal(t, strconv.Itoa(client.sent), p.Value[:len(p.Value)-3])
	}

	far.refuses = errors.New("data refused due to high memory usage")
	for range 20 {
		send(http.StatusServiceUnavailable)
	}
	far.refuses = nil
	settled()
}

// Values are always written until a consumer has asked for unwritten ones, and again when none asks any more.
func TestNothingIsDeferredForWhoDoesNotAsk(t *testing.T) {
	needRuns(t)
	tree := newTree(true)
	tree.mayDefer = true
	for _, asks := range []bool{false, true, true, false, false, true} {
		loan := handback.LoanOf(tree.lend(t.Context(), 0), tree.metrics)
		if asks {
			loan.Defers()
		}
		require.True(t, tree.takeBack())
		require.Equal(t, asks, tree.defers)
	}
	tree.mayDefer = false
	handback.LoanOf(tree.lend(t.Context(), 0), tree.metrics).Defers()
	require.True(t, tree.takeBack())
	require.False(t, tree.defers)
}

// A sample with a time that a point cannot have is not part of a run: consumers of unwritten values would get another
// time than readers of the points.
func TestNoTimesAreDeferredThatPointsCannotHave(t *testing.T) {
	needRuns(t)
	const usual = 1_700_000_000_000
	for _, version := range []promwrite.Version{promwrite.V1, promwrite.V2} {
		for _, odd := range [][2]int64{
			{0, 0},
			{-1, 0},
			{1, 0},
			{math.MinInt64, 0},
			{math.MaxInt64, 0},
			{math.MaxInt64/1_000_000 + 1, 0},
			{1, usual},
			{usual, -1},
			{usual, 1},
			{usual, math.MinInt64},
			{usual, math.MaxInt64},
		} {
			if version == promwrite.V1 && odd[1] != 0 {
				continue // it has no start times
			}
			w, err := newWorker(sized(1<<20), newKnown(8<<20, true))
			require.NoError(t, err)
			tree := newTree(true)
			placed := func(at, start int64) (n int) {
				req := newV2()
				for i := range 20 {
					ts := sample(float64(i), usual, 0)
					if i == 10 {
						ts = sample(float64(i), at, start)
					}
					req.series(ts, gauge, "Help.", "", "__name__", "birds", "code", fmt.Sprint(i), "instance", "host:9100", "job", "node")
				}
				tree.defers = true
				want, got, err := twin(w, sized(1<<20), version, bodyOf(version, &req.Request), tree)
				require.NoError(t, err)
				require.Equal(t, said(want), said(got))
				for _, p := range tree.placed {
					n += p.part.Len()
				}
				require.True(t, tree.takeBack())
				return n
			}
			for range 3 {
				placed(usual, 0)
			}
			require.Equal(t, 20, placed(usual, 0))
			require.Zero(t, placed(odd[0], odd[1]), odd)
		}
	}
}
