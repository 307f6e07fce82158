// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

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
	data := testRequest(t, "a")
	otlp, err := otlpstream.InOTLPForm(data)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		writes, reads encoding
		data, want    []byte
		kept          map[string][]string
	}{
		"keys":              {encoding{keys: []string{"x-tenant"}}, encoding{}, data, data, map[string][]string{"x-tenant": {"blue"}}},
		"all":               {encoding{all: true}, encoding{}, data, data, map[string][]string{"x-tenant": {"blue"}, "authorization": {"secret"}}},
		"nothing":           {encoding{}, encoding{}, data, data, map[string][]string{}},
		"unary":             {encoding{unary: true, all: true}, encoding{unary: true}, otlp, otlp, map[string][]string{"x-tenant": {"blue"}, "authorization": {"secret"}}},
		"unary to a stream": {encoding{unary: true, keys: []string{"x-tenant"}}, encoding{}, otlp, data, map[string][]string{"x-tenant": {"blue"}}},
		"no data":           {encoding{all: true}, encoding{}, []byte{}, []byte{}, map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := c.writes.Marshal(tenants, &request{data: c.data, items: 1, epoch: 7})
			require.NoError(t, err)
			ctx, got, err := c.reads.Unmarshal(b)
			require.NoError(t, err)
			require.Equal(t, &request{data: c.want, items: 1, epoch: 7}, got)
			require.Equal(t, c.kept, all(client.FromContext(ctx).Metadata))
			for n := range b {
				_, _, _ = c.reads.Unmarshal(b[:n])
			}
		})
	}
}

// before is the encoding as it was without origins: what it has written is read, and what is written now it can read.
func before(b []byte) []byte {
	_, n := binary.Uvarint(b[8:])
	return b[8+n:]
}

func TestAnEarlierVersionMayReadTheQueue(t *testing.T) {
	data := testRequest(t, "a")
	b, err := encoding{all: true}.Marshal(tenants, &request{data: data, items: 1})
	require.NoError(t, err)
	sent, err := otlpstream.InOTLPForm(before(b))
	require.NoError(t, err)
	// It is sent as it is, and a server makes of it what is in it.
	decoded := ptraceotlp.NewExportRequest()
	require.NoError(t, decoded.UnmarshalProto(sent))
	require.Equal(t, 1, decoded.Traces().SpanCount())
	require.Zero(t, decoded.Traces().ResourceSpans().At(0).Resource().Attributes().Len())

	old := append(binary.AppendUvarint(make([]byte, 8), 1), data...)
	_, got, err := encoding{keys: []string{"x-tenant"}}.Unmarshal(old)
	require.NoError(t, err)
	require.Equal(t, data, got.(*request).data)
}

func TestWhatAQueueKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   encoding
	}{
		"nothing":       {func(*Config) {}, encoding{}},
		"keys":          {func(cfg *Config) { cfg.MetadataKeys = []string{"a"}; authenticated(cfg) }, encoding{keys: []string{"a"}}},
		"authenticated": {authenticated, encoding{all: true}},
	} {
		cfg := testConfig(transport.GRPC, "localhost:1", c.change)
		got := (&destination{streamExporter: &streamExporter{cfg: cfg}, client: cfg.Client}).encoding()
		got.dest = nil
		require.Equal(t, c.want, got, name)
	}
}

func authenticated(cfg *Config) {
	cfg.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: diskID})
}

func TestMetadataKeysAreNamesOfHeaders(t *testing.T) {
	for _, keys := range [][]string{{"x-tenant", "X-Tenant"}, {""}, {"content-type"}, {"Host"}, {"a b"}, {"x-bytes-bin"}, {"grpc-timeout"}, {":path"}} {
		cfg := testConfig(transport.GRPC, "localhost:1", func(cfg *Config) { cfg.MetadataKeys = keys })
		require.ErrorContains(t, cfg.Validate(), "`metadata_keys`", keys)
	}
	cfg := testConfig(transport.GRPC, "localhost:1", func(cfg *Config) {
		cfg.MetadataKeys = []string{"Authorization", "x-scope-orgid"}
		cfg.MetadataCardinalityLimit = 0
		cfg.Client.Headers = configopaque.MapList{{Name: "X-Scope-OrgID", Value: "blue"}}
	})
	require.EqualError(t, cfg.Validate(), "`metadata_cardinality_limit` must be positive, got 0\n"+
		"`headers` must not have \"X-Scope-OrgID\", which is one of `metadata_keys`: it would be sent twice")
}
