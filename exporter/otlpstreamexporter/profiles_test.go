// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/account"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/encode"
	exportermetadata "github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/metadata"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/tally"
	"github.com/godwit-otel/godwit/exporter/otlpstreamexporter/internal/transport"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// profiles returns profiles with the given number of samples each.
func profiles(n, samples int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", "cpu", "goose.fly", "goose.land")
	scope := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty()
	for i := range n {
		p := scope.Profiles().AppendEmpty()
		p.SetProfileID([16]byte{1, byte(i)})
		for j := range samples {
			p.Samples().AppendEmpty().Values().Append(int64(i*samples + j))
		}
	}
	return pd
}

func encodedProfiles(tb testing.TB, pd pprofile.Profiles) []byte {
	e, err := encode.New()
	require.NoError(tb, err)
	defer e.Close()
	m, err := e.Profiles(pd)
	require.NoError(tb, err)
	return m.Bytes()
}

func decodedProfiles(tb testing.TB, data []byte) pprofile.Profiles {
	data, err := otlpstream.Profiles.OTLPRequest(data)
	require.NoError(tb, err)
	request := pprofileotlp.NewExportRequest()
	require.NoError(tb, request.UnmarshalProto(data))
	return request.Profiles()
}

func TestProfilesAreEncodedAsOneRequest(t *testing.T) {
	pd := profiles(3, 4)
	want, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	data := encodedProfiles(t, pd)
	got, err := otlpstream.Profiles.OTLPRequest(data)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoError(t, otlpstream.ToStream(data), "which may be in either form")
	got, err = otlpstream.Profiles.OTLPRequest(data)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, wrong := range [][]byte{append(data, data...), {0x1a, 0}, {0x0a, 5, 1}} {
		_, err = otlpstream.Profiles.OTLPRequest(wrong)
		require.Error(t, err)
	}
}

func TestProfilesAreDividedBetweenProfiles(t *testing.T) {
	const n, samples = 10, 7
	data := encodedProfiles(t, profiles(n, samples))
	seen := map[pprofile.ProfileID]int{}
	parts := 0
	for part, items := range otlpstream.Split(otlpstream.Profiles, data, len(data)/3) {
		parts++
		pd := decodedProfiles(t, part)
		require.Equal(t, items, pd.SampleCount())
		require.Equal(t, 4, pd.Dictionary().StringTable().Len(), "each has the dictionary")
		for _, rp := range pd.ResourceProfiles().All() {
			for _, p := range rp.ScopeProfiles().At(0).Profiles().All() {
				seen[p.ProfileID()] += p.Samples().Len()
			}
		}
	}
	require.Greater(t, parts, 2)
	require.Len(t, seen, n)
	for id, found := range seen {
		require.Equal(t, samples, found, "profile %v is whole", id)
	}
}

// A server without support or without a pipeline for profiles refuses them: they are dropped, and the error says why.
func TestAServerThatKnowsNoProfilesIsNoMystery(t *testing.T) {
	bothTransports(t, func(t *testing.T, kind string) {
		s := run(t, &testServer{stream: echo}, kind)
		cfg := testConfig(kind, s.addr, noQueue)
		e, err := createProfiles(t.Context(), exportertest.NewNopSettings(exportermetadata.Type), cfg)
		require.NoError(t, err)
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		defer func() { require.NoError(t, e.Shutdown(context.Background())) }()
		require.ErrorContains(t, e.ConsumeProfiles(t.Context(), profiles(1, 5)), "the server takes no profiles")
		b := balanced(t, e.(*profilesExporter).dests[0])
		require.Equal(t, int64(5), b.Dropped[account.Rejected])
		require.Empty(t, s.seen())
	})
}

func TestAProfileThatIsTooLargeIsDropped(t *testing.T) {
	d := &destination{
		streamExporter: &streamExporter{signal: otlpstream.Profiles, cfg: testConfig(transport.GRPC, "nowhere:1")}, tally: &tally.Tally{},
	}
	d.account.Receive(500)
	p := d.newDelivery(t.Context(), encodedProfiles(t, profiles(1, 500)), 500)
	require.ErrorContains(t, d.inParts(t.Context(), p, 200), "cannot be divided")
	require.Equal(t, int64(500), balanced(t, d).Dropped[account.TooLarge])
}
