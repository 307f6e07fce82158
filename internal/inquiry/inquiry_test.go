// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inquiry_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"

	"github.com/godwit-otel/godwit/internal/inquiry"
)

type otherKey struct{}

func TestWhoAsksForTheClientIsNoticed(t *testing.T) {
	c := inquiry.New(context.WithValue(t.Context(), otherKey{}, 7), client.NewMetadata(map[string][]string{"Tenant": {"north"}}))
	require.Equal(t, 7, c.Value(otherKey{}))
	require.False(t, c.Asked(), "nobody has asked for the client")

	inner, cancel := context.WithCancel(c) // like net/http does with a request's context
	defer cancel()
	info := client.FromContext(inner)
	require.Equal(t, []string{"north"}, info.Metadata.Get("tenant"), "what is known is answered")
	require.True(t, c.Asked())
	require.False(t, c.AskedForAuth())
	require.Nil(t, info.Auth.GetAttribute("subject"))
	require.True(t, c.AskedForAuth())
}

func TestWhoAsksForItsNamesAsks(t *testing.T) {
	c := inquiry.New(t.Context(), client.Metadata{})
	require.Empty(t, client.FromContext(c).Auth.GetAttributeNames())
	require.True(t, c.AskedForAuth())
}
