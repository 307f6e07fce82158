// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// about returns a payload with some resources.
func about(tb testing.TB, resources ...int) []byte {
	tb.Helper()
	td := ptrace.NewTraces()
	for _, resource := range resources {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutInt("resource", int64(resource))
		rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("s")
	}
	data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(tb, err)
	return data
}

func TestAnOrderForgetsWhatIsDone(t *testing.T) {
	o := New()
	for i := range 20_000 {
		turn := o.Next(about(t, i))
		turn.Wait()
		turn.End()
		if i%1000 == 0 {
			require.NotEmpty(t, o.last)
			require.Less(t, len(o.last), 200)
		}
	}
	var none *Order
	turn := none.Next(nil)
	turn.Wait()
	turn.End()
}

// BenchmarkOrder measures finding a request's place.
func BenchmarkOrder(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("resources=%d", n), func(b *testing.B) {
			resources := make([]int, n)
			for i := range resources {
				resources[i] = i
			}
			data := about(b, resources...)
			o := New()
			for b.Loop() {
				o.Next(data).End()
			}
		})
	}
}
