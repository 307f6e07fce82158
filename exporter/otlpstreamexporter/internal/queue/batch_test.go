// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/encode"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// spanNames counts the spans of requests by name.
func spanNames(tb testing.TB, requests []xexporterhelper.Request) map[string]int {
	names := map[string]int{}
	for _, r := range requests {
		data, err := otlpstream.InOTLPForm(r.(*Request).Data)
		require.NoError(tb, err)
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(data)
		require.NoError(tb, err)
		require.Equal(tb, td.SpanCount(), r.ItemsCount())
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					names[span.Name()]++
				}
			}
		}
	}
	return names
}

func TestRequestsAreMergedAndSplit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	queue := &Queue{Settings: Settings{Signal: otlpstream.Traces}}
	for _, sizer := range []exporterhelper.RequestSizerType{exporterhelper.RequestSizerTypeItems, exporterhelper.RequestSizerTypeBytes} {
		for range 200 {
			most := random.IntN(60)
			if sizer == exporterhelper.RequestSizerTypeBytes {
				most *= 30
			}
			var made []xexporterhelper.Request
			want := map[string]int{}
			var current xexporterhelper.Request
			for i := range 1 + random.IntN(10) {
				n := 1 + random.IntN(100)
				td := ptrace.NewTraces()
				ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
				for j := range n {
					name := fmt.Sprintf("%d-%d", i, j)
					ss.Spans().AppendEmpty().SetName(name)
					want[name]++
				}
				data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
				require.NoError(t, err)
				require.NoError(t, otlpstream.ToStream(data))
				next := &Request{queue: queue, Items: n, Data: data[:len(data):len(data)]}
				var parts []xexporterhelper.Request
				if current == nil {
					parts, err = next.MergeSplit(context.Background(), most, sizer, nil)
				} else {
					parts, err = current.MergeSplit(context.Background(), most, sizer, next)
				}
				require.NoError(t, err)
				made, current = append(made, parts[:len(parts)-1]...), parts[len(parts)-1]
			}
			made = append(made, current)
			require.Equal(t, want, spanNames(t, made))
			for _, r := range made {
				if size := r.(*Request).size(sizer); most > 0 && r.ItemsCount() > 1 {
					require.LessOrEqual(t, size, max(most, 2*64))
				}
			}
		}
	}
}

type attributes map[string]any

func (a attributes) GetAttribute(name string) any { return a[name] }

func (a attributes) GetAttributeNames() (names []string) {
	for name := range a {
		names = append(names, name)
	}
	return names
}

func TestBatchesHaveOneClient(t *testing.T) {
	from := func(tenant, user string) context.Context {
		return client.NewContext(context.Background(), client.Info{
			Metadata: client.NewMetadata(map[string][]string{"tenant": {tenant}, "other": {user}}), Auth: attributes{"user": user},
		})
	}
	f := func(want bool, a, b context.Context, s Settings, keys ...string) {
		t.Helper()
		var batch exporterhelper.BatchConfig
		batch.Partition.MetadataKeys = keys
		s.Queue = configoptional.Some(exporterhelper.QueueBatchConfig{Batch: configoptional.Some(batch)})
		settings := (&Queue{Settings: s}).batches()
		if settings.Partitioner == nil {
			require.True(t, want)
			return
		}
		require.Equal(t, want, settings.Partitioner.GetKey(a, nil) == settings.Partitioner.GetKey(b, nil))
		require.Equal(t, client.FromContext(a), client.FromContext(settings.MergeCtx(a, b)))
	}
	keys, auth := Settings{Keys: []string{"tenant"}}, Settings{All: true, Auth: true}
	f(true, from("a", "x"), from("b", "y"), Settings{})
	f(false, from("a", "x"), from("b", "x"), keys)
	f(true, from("a", "x"), from("a", "y"), keys)
	f(false, from("a", "x"), from("a", "y"), auth)
	f(false, from("a", "x"), from("b", "x"), auth)
	f(true, from("a", "x"), from("a", "x"), auth)
	f(false, from("a", "x"), from("a", "y"), Settings{}, "other")
	f(true, from("a", "x"), from("b", "x"), Settings{}, "other")
}

// profiles returns encoded profiles.
func profiles(t *testing.T, n, samples int) []byte {
	t.Helper()
	pd := pprofile.NewProfiles()
	scope := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty()
	for i := range n {
		p := scope.Profiles().AppendEmpty()
		p.SetProfileID([16]byte{1, byte(i)})
		for j := range samples {
			p.Samples().AppendEmpty().Values().Append(int64(i*samples + j))
		}
	}
	e, err := encode.New()
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	m, err := e.Profiles(pd)
	require.NoError(t, err)
	return m.Bytes()
}

func TestProfilesAreNotJoined(t *testing.T) {
	d := &Queue{Settings: Settings{Signal: otlpstream.Profiles}}
	one := &Request{Data: profiles(t, 2, 50), Items: 100, queue: d}
	two := &Request{Data: profiles(t, 1, 50), Items: 50, queue: d}
	got, err := one.MergeSplit(t.Context(), 200, exporterhelper.RequestSizerTypeItems, two)
	require.NoError(t, err)
	require.Len(t, got, 2, "each has a dictionary of its own")
	got, err = one.MergeSplit(t.Context(), 50, exporterhelper.RequestSizerTypeItems, nil)
	require.NoError(t, err)
	require.Len(t, got, 2, "what is too much is divided")
	got, err = two.MergeSplit(t.Context(), 20, exporterhelper.RequestSizerTypeItems, nil)
	require.NoError(t, err)
	require.Len(t, got, 1, "as far as it can be")
}
