// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// window is a registry that returns what is registered.
type window struct {
	component.StartFunc
	component.ShutdownFunc

	shown *inspect.Source
}

func (w *window) RegisterInspection(s inspect.Source) func() {
	w.shown = &s
	return func() { w.shown = nil }
}

func (w *window) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("window"): w}
}

func TestItShowsWhatClientsSend(t *testing.T) {
	var refuse error
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return refuse })
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	cfg.HTTP.NetAddr.Endpoint = "localhost:0"
	r, err := newReceiver(cfg, settings(), next)
	require.NoError(t, err)
	w := &window{}
	require.NoError(t, r.Start(t.Context(), w))
	url := "http://" + r.address.String() + cfg.Path
	require.Equal(t, []string{r.address.String()}, w.shown.Intake().Addresses)
	require.Zero(t, w.shown.Intake().Last)
	require.Zero(t, w.shown.Flow().In)

	good := newV2().series(sample(1, 1, 0), gauge, "", "", "__name__", "x")
	require.Equal(t, 204, postV2(t, url, &good.Request).code)
	half := newV2().series(sample(1, 1, 0), gauge, "", "", "__name__", "x").series(sample(1, 1, 0), gauge, "", "", "a", "b")
	require.Equal(t, 400, postV2(t, url, &half.Request).code)
	require.Equal(t, 400, post(t, url, promwrite.ContentTypeV1, "snappy", []byte("no snappy")).code)
	require.Contains(t, w.shown.Intake().Last.Text, "answered 400 to 127.0.0.1: cannot decompress 9 bytes of snappy")
	require.Equal(t, 415, post(t, url, "text/plain", "snappy", nil).code)
	refuse = errors.New("data refused due to high memory usage")
	require.Equal(t, 503, postV2(t, url, &good.Request).code)
	require.Contains(t, w.shown.Intake().Last.Text, "answered 503 to 127.0.0.1: cannot pass 1 points on: data refused")
	refuse = consumererror.NewPermanent(errors.New(strings.Repeat("never ", 10_000)))
	require.Equal(t, 400, postV2(t, url, &good.Request).code)

	in := w.shown.Intake()
	require.Equal(t, map[string]int64{"2.0 204": 1, "2.0 400": 2, "1.0 400": 1, "unknown 415": 1, "2.0 503": 1}, in.Requests)
	require.Less(t, len(in.Last.Text), 2*maxFault)
	require.False(t, in.Last.At.IsZero())
	f := w.shown.Flow()
	require.Equal(t, int64(5), f.In)
	require.Equal(t, int64(2), f.Out)
	require.Equal(t, int64(1), f.Refused)
	require.Equal(t, map[string]int64{"labels": 1, reasonPipeline: 1}, f.Dropped)
	require.Equal(t, map[string]int64{"400": 3, "415": 1, "503": 1}, f.Failed)
	require.Greater(t, f.RawBytes, int64(50))
	require.Greater(t, f.WireBytes, int64(50))

	f.Dropped["labels"] = 0 // the result belongs to the caller
	require.Equal(t, int64(1), w.shown.Flow().Dropped["labels"])
	require.NoError(t, r.Shutdown(context.Background()))
	require.Nil(t, w.shown)
}

func TestWithoutAnAudienceItRunsAlike(t *testing.T) {
	r, err := newReceiver(createDefaultConfig().(*Config), settings(), nil)
	require.NoError(t, err)
	require.NoError(t, r.Shutdown(context.Background()), "never started")
	require.Equal(t, inspect.Flow{}, r.tally.flow())
	require.NotPanics(t, inspect.Register(componenttest.NewNopHost(), r.inspection()))
}
