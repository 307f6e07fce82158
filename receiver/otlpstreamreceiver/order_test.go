// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/order"
)

// about returns a request with a span of each of these resources.
func about(tb testing.TB, id uint64, resources ...int) *otlpstream.Request {
	td := ptrace.NewTraces()
	const few = 10
	name := fmt.Sprintf("%d of %v", id, resources[:min(few, len(resources))])
	for _, resource := range resources {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutInt("resource", int64(resource))
		rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(name)
	}
	data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(tb, err)
	require.NoError(tb, otlpstream.ToStream(data))
	return &otlpstream.Request{ID: id, Items: uint64(len(resources)), Data: data}
}

func TestRequestsAboutAResourceKeepTheirOrder(t *testing.T) {
	const n, resources, both = 600, 5, 7
	bothTransports(t, func(t *testing.T, dial dialer) {
		var mu sync.Mutex
		running := map[string]int{}
		last := map[string]uint64{}
		most, now := 0, 0
		p := &pipeline{do: func(_ context.Context, name string) error {
			var id uint64
			var list string
			_, err := fmt.Sscanf(strings.Replace(strings.Trim(strings.SplitN(name, "[", 2)[1], "]"), " ", ",", 1)+" "+name, "%s %d", &list, &id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				return err
			}
			now++
			most = max(most, now)
			for resource := range strings.SplitSeq(list, ",") {
				if running[resource]++; running[resource] > 1 || last[resource] >= id {
					return fmt.Errorf("%d of resource %s comes after %d, or beside it", id, resource, last[resource])
				}
				last[resource] = id
			}
			mu.Unlock()
			time.Sleep(time.Duration(rand.IntN(int(time.Millisecond))))
			mu.Lock()
			now--
			for resource := range strings.SplitSeq(list, ",") {
				running[resource]--
			}
			return nil
		}}
		c := dial(t, start(t, p), otlpstream.AllCaps|otlpstream.CapOrdered)
		var requests []*otlpstream.Request
		for id := uint64(1); id <= n; id++ {
			of := []int{int(id % resources)}
			if id%both == 0 {
				of = append(of, int((id+1)%resources))
			}
			requests = append(requests, about(t, id, of...))
		}
		go func() {
			for _, request := range requests {
				if c.send(request) != nil {
					return
				}
			}
		}()
		for id, response := range c.answers(n) {
			require.Equal(t, otlpstream.Success, response.Code, "%d: %s", id, response.Message)
		}
		require.Greater(t, most, 1, "others do not wait")
	})
}

// Requests that fail do not delay those after them, and neither do requests with more resources than can be
// distinguished.
func TestOrderGoesOnAfterAFailure(t *testing.T) {
	p := &pipeline{do: func(_ context.Context, name string) error {
		if strings.HasPrefix(name, "2 ") {
			return context.DeadlineExceeded
		}
		return nil
	}}
	c := dialGRPC(t, start(t, p), otlpstream.AllCaps|otlpstream.CapOrdered)
	many := make([]int, order.MaxResources+1)
	for i := range many {
		many[i] = i
	}
	for id, resources := range [][]int{{1}, {1}, many, {1}, {2}, many, {1, 2}} {
		require.NoError(t, c.send(about(t, uint64(id+1), resources...)))
	}
	answers := c.answers(7)
	for id, answer := range answers {
		require.Equal(t, id == 2, answer.Code == otlpstream.FailedRetryable, id)
	}
	seen := p.seen()
	require.Len(t, seen, 7)
	var ids []byte
	for _, name := range seen {
		ids = append(ids, name[0])
	}
	require.Contains(t, []string{"1234567", "1235467"}, string(ids))
}
