// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
)

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

type nothing struct {
	component.StartFunc
	component.ShutdownFunc
}

type registry struct {
	nothing

	shown map[component.ID]Source
}

func (r *registry) RegisterInspection(s Source) func() {
	r.shown[s.ID] = s
	return func() { delete(r.shown, s.ID) }
}

func TestEveryRegistryIsTold(t *testing.T) {
	a, b := &registry{shown: map[component.ID]Source{}}, &registry{shown: map[component.ID]Source{}}
	h := host{
		component.MustNewID("a"): a, component.MustNewID("b"): b, component.MustNewID("other"): nothing{},
	}
	source := Source{Kind: component.KindReceiver, ID: component.MustNewID("r")}
	unregister := Register(h, source)
	require.Contains(t, a.shown, source.ID)
	require.Contains(t, b.shown, source.ID)
	unregister()
	unregister()
	require.Empty(t, a.shown)
	require.Empty(t, b.shown)
}

func TestNoRegistryIsNoFault(t *testing.T) {
	for _, h := range []host{nil, {}, {component.MustNewID("other"): nothing{}}} {
		require.NotPanics(t, Register(h, Source{}))
	}
}
