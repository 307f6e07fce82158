// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/internal/inspect"
)

// A processor has an instance in each of its pipelines. Removing one does not affect the others.
func TestInstancesAreToldApart(t *testing.T) {
	r := NewRegistry(time.Now)
	x := component.MustNewIDWithName("cardinality", "x")
	add := func(id component.ID, pipeline string) func() {
		return r.Register(inspect.Source{Kind: component.KindProcessor, ID: id, Pipeline: pipeline})
	}
	names := func() (out []string) {
		for _, s := range r.All() {
			out = append(out, s.Name())
		}
		return out
	}
	plain := component.MustNewID("cardinality")
	first := add(plain, "")
	require.Equal(t, []string{"cardinality"}, names())
	add(plain, "")
	add(x, "metrics/b")
	require.Equal(t, []string{"cardinality", "cardinality#2", "cardinality/x"}, names())
	add(x, "metrics/a")
	before := r.All()
	require.Equal(t, []string{"cardinality", "cardinality#2", "cardinality/x in metrics/a", "cardinality/x in metrics/b"}, names())
	first()
	first()
	require.Equal(t, []string{"cardinality#2", "cardinality/x in metrics/a", "cardinality/x in metrics/b"}, names())
	require.Len(t, before, 4, "whoever goes through them has the old list")
	require.Equal(t, "processor/cardinality/x", before[2].Node())
}
