// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// reading returns the encoding of a queue with the given settings.
func reading(s Settings) encoding { return encoding{&Queue{Settings: s}} }

// streamed returns a request of one span, in stream form.
func streamed(t *testing.T, name string) []byte {
	t.Helper()
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(name)
	data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	require.NoError(t, otlpstream.ToStream(data))
	return data
}

func all(md client.Metadata) map[string][]string {
	values := map[string][]string{}
	for key := range md.Keys() {
		values[key] = md.Get(key)
	}
	return values
}

var tenants = client.NewContext(context.Background(), client.Info{
	Metadata: client.NewMetadata(map[string][]string{"x-tenant": {"blue"}, "authorization": {"secret"}}),
})

func TestAQueueOnDiskKeepsTheOrigin(t *testing.T) {
	data := streamed(t, "a")
	otlp, err := otlpstream.InOTLPForm(data)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		writes, reads encoding
		data, want    []byte
		kept          map[string][]string
	}{
		"keys":              {reading(Settings{Keys: []string{"x-tenant"}}), reading(Settings{}), data, data, map[string][]string{"x-tenant": {"blue"}}},
		"all":               {reading(Settings{All: true}), reading(Settings{}), data, data, map[string][]string{"x-tenant": {"blue"}, "authorization": {"secret"}}},
		"nothing":           {reading(Settings{}), reading(Settings{}), data, data, map[string][]string{}},
		"unary":             {reading(Settings{Unary: true, All: true}), reading(Settings{Unary: true}), otlp, otlp, map[string][]string{"x-tenant": {"blue"}, "authorization": {"secret"}}},
		"unary to a stream": {reading(Settings{Unary: true, Keys: []string{"x-tenant"}}), reading(Settings{}), otlp, data, map[string][]string{"x-tenant": {"blue"}}},
		"no data":           {reading(Settings{All: true}), reading(Settings{}), []byte{}, []byte{}, map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := c.writes.Marshal(tenants, &Request{Data: c.data, Items: 1, epoch: 7})
			require.NoError(t, err)
			ctx, got, err := c.reads.Unmarshal(b)
			require.NoError(t, err)
			require.Equal(t, &Request{Data: c.want, Items: 1, epoch: 7, queue: c.reads.Queue}, got)
			require.Equal(t, c.kept, all(client.FromContext(ctx).Metadata))
			for n := range b {
				_, _, _ = c.reads.Unmarshal(b[:n])
			}
		})
	}
}

// before converts to the encoding without origins: what it wrote can be read now, and it can read what is written now.
func before(b []byte) []byte {
	_, n := binary.Uvarint(b[8:])
	return b[8+n:]
}

func TestAnEarlierVersionMayReadTheQueue(t *testing.T) {
	data := streamed(t, "a")
	b, err := reading(Settings{All: true}).Marshal(tenants, &Request{Data: data, Items: 1})
	require.NoError(t, err)
	sent, err := otlpstream.InOTLPForm(before(b))
	require.NoError(t, err)
	// It is sent unchanged, and a server can decode it.
	decoded := ptraceotlp.NewExportRequest()
	require.NoError(t, decoded.UnmarshalProto(sent))
	require.Equal(t, 1, decoded.Traces().SpanCount())
	require.Zero(t, decoded.Traces().ResourceSpans().At(0).Resource().Attributes().Len())

	old := append(binary.AppendUvarint(make([]byte, 8), 1), data...)
	_, got, err := reading(Settings{Keys: []string{"x-tenant"}}).Unmarshal(old)
	require.NoError(t, err)
	require.Equal(t, data, got.(*Request).Data)
}

func TestRequestsSurviveTheirEncoding(t *testing.T) {
	ctx := context.Background()
	e := reading(Settings{})
	want := &Request{Data: []byte{0x12, 1, 'x'}, Items: 300, epoch: 1 << 63, queue: e.Queue}
	b, err := e.Marshal(ctx, want)
	require.NoError(t, err)
	_, got, err := e.Unmarshal(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for n := range 9 {
		_, _, err := e.Unmarshal(b[:n])
		require.Error(t, err)
	}
}

// TestNoMomentIsKeptOnDisk: the wall clock may be wrong after a restart, so the age of a request restarts.
func TestNoMomentIsKeptOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, err := reading(Settings{}).Marshal(t.Context(), &Request{epoch: 7, Items: 3, Data: []byte("data")})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		second, err := reading(Settings{}).Marshal(t.Context(), &Request{epoch: 7, Items: 3, Data: []byte("data")})
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
}
