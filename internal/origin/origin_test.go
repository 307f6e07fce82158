// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package origin_test

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"

	"github.com/godwit-otel/godwit/internal/origin"
)

func all(md client.Metadata) map[string][]string {
	values := map[string][]string{}
	for key := range md.Keys() {
		values[key] = md.Get(key)
	}
	return values
}

func TestAnOriginIsWhatItWasMadeOf(t *testing.T) {
	text := func() string {
		b := make([]byte, rand.IntN(200))
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		return string(b)
	}
	seen := map[origin.Origin]map[string][]string{}
	for range 1000 {
		md := map[string][]string{}
		for range rand.IntN(4) {
			key := strings.ToLower(text())
			for range 1 + rand.IntN(3) {
				md[key] = append(md[key], text())
			}
		}
		o := origin.Of(slices.Sorted(maps.Keys(md)), client.NewMetadata(md))
		got, err := o.Metadata()
		require.NoError(t, err)
		require.Equal(t, md, all(got))
		require.Equal(t, len(md) == 0, o == "")
		if before, ok := seen[o]; ok {
			require.Equal(t, before, md, "two origins are never the same")
		}
		seen[o] = md
	}
	for o := range seen {
		for n := range len(o) {
			_, err := o[:n].Metadata() // a truncated one may be an error, but nothing worse
			_ = err
		}
	}
	_, err := origin.Origin("\x01a\xff\xff\xff\xff\x0f").Metadata()
	require.Error(t, err)
}

func TestAnOriginHasTheKeysThatAreAskedFor(t *testing.T) {
	md := client.NewMetadata(map[string][]string{"X-Tenant": {"blue"}, "authorization": {"secret"}})
	o := origin.Of([]string{"x-TENANT", "absent"}, md)
	require.Equal(t, []origin.Header{{Key: "x-tenant", Value: "blue"}}, o.Headers())
	require.Empty(t, origin.Of([]string{"absent"}, md))
	require.Empty(t, origin.Of(nil, md))
	require.True(t, origin.Header{Key: "a", Value: "printable ~"}.Fits())
	for _, value := range []string{"a\nb", "\x00", "ü", "\x7f", "\xff"} {
		require.False(t, origin.Header{Key: "a", Value: value}.Fits(), value)
	}
}

func TestHeadersAreSetWholeOrNotAtAll(t *testing.T) {
	of := func(values map[string][]string) origin.Origin {
		return origin.Of(slices.Sorted(maps.Keys(values)), client.NewMetadata(values))
	}
	h := http.Header{"X-Tenant": {"default"}, "Accept": {"all"}}
	o := of(map[string][]string{"x-tenant": {"blue", "red"}, "x-team": {"birds"}})
	require.NoError(t, o.SetHeaders(h))
	require.Equal(t, http.Header{"X-Tenant": {"blue", "red"}, "X-Team": {"birds"}, "Accept": {"all"}}, h)
	require.Equal(t, `x-team="birds" x-tenant="blue" x-tenant="red"`, o.String())

	before := h.Clone()
	require.ErrorContains(t, of(map[string][]string{"a": {"fine"}, "x-tenant": {"a\nb"}}).SetHeaders(h), "x-tenant")
	require.Error(t, origin.Origin("plain").SetHeaders(h), "it is no origin")
	require.Equal(t, before, h)
}
