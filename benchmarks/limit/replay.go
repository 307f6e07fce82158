// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	// senders is the maximum of requests in flight.
	senders = 4
	// podLife is the lifetime of a pod in W5: a tenth of them is replaced each minute.
	podLife = 10 * time.Minute
)

// Totals are sums of what a replay has sent.
type Totals struct {
	Points   int64 `json:"points"`  // in accepted requests
	Healthy  int64 `json:"healthy"` // those of them that limits must not affect
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"`
	Refused  int64 `json:"refused"` // requests that were not accepted
	Late     int64 `json:"late"`    // requests sent more than a second after their time
}

// A Replay sends a shape repeatedly.
type Replay struct {
	shape           string
	rate            int
	perRequest      int
	steady, hostile []*request
	client          *http.Client

	next, ids                                        atomic.Int64
	points, healthy, requests, bytes, refused, tardy atomic.Int64
}

// NewReplay encodes a shape. Rate 0 means as fast as possible. page is the file for relays.
func NewReplay(shape string, rate int, page string) (*Replay, error) {
	r := &Replay{shape: shape, rate: rate, perRequest: PerRequest, client: &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: senders, DisableCompression: true},
	}}
	if ofPages(shape) {
		var err error
		if r.steady, err = relayRequests(shape, page); err != nil {
			return nil, err
		}
		r.perRequest = int(r.steady[0].healthy)
		return r, nil
	}
	size := rate
	if size == 0 {
		size = 100_000
	}
	steady, hostile, err := build(shape, size)
	if err != nil {
		return nil, err
	}
	for _, set := range []struct {
		of   []pmetric.Metrics
		into *[]*request
	}{{steady, &r.steady}, {hostile, &r.hostile}} {
		for _, md := range set.of {
			encoded, err := encode(md)
			if err != nil {
				return nil, err
			}
			*set.into = append(*set.into, encoded)
		}
	}
	return r, nil
}

// Totals returns what was sent so far.
func (r *Replay) Totals() Totals {
	return Totals{
		Points: r.points.Load(), Healthy: r.healthy.Load(), Requests: r.requests.Load(),
		Bytes: r.bytes.Load(), Refused: r.refused.Load(), Late: r.tardy.Load(),
	}
}

// Run sends to a URL until ctx ends, and returns once all requests are answered.
func (r *Replay) Run(ctx context.Context, url string) {
	begun := time.Now()
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			var body, packed []byte
			for ctx.Err() == nil {
				n := r.next.Add(1) - 1
				if !r.wait(ctx, begun, n) {
					return
				}
				body, packed = r.send(ctx, url, body, packed, begun, n)
			}
		})
	}
	if len(r.hostile) > 0 {
		all.Go(func() { r.explode(ctx, url, begun) })
	}
	all.Wait()
	r.client.CloseIdleConnections()
}

// wait waits until the nth request is due.
func (r *Replay) wait(ctx context.Context, begun time.Time, n int64) bool {
	if r.rate == 0 {
		return true
	}
	due := begun.Add(time.Duration(float64(n) * float64(r.perRequest) / float64(r.rate) * float64(time.Second)))
	left := time.Until(due)
	if left < -time.Second {
		r.tardy.Add(1)
	}
	if left <= 0 {
		return true
	}
	select {
	case <-time.After(left):
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Replay) send(ctx context.Context, url string, body, packed []byte, begun time.Time, n int64) ([]byte, []byte) {
	i := int(n) % len(r.steady)
	round := int(n) / len(r.steady)
	offset := podLife * time.Duration(i) / time.Duration(len(r.steady))
	body = r.steady[i].write(body[:0], moment{
		now: time.Now(), start: begun, value: uint64(round) * 7,
		generation: int((time.Since(begun) + offset) / podLife),
	})
	wire := body
	if r.steady[i].snappy {
		packed = s2.EncodeSnappy(packed[:cap(packed)], body)
		wire = packed
	}
	r.post(ctx, url, wire, r.steady[i])
	return body, packed
}

// explode sends new series twice a second.
func (r *Replay) explode(ctx context.Context, url string, begun time.Time) {
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		q := r.hostile[0]
		id := r.ids.Add(PerRequest) - PerRequest
		r.post(ctx, url, q.write(nil, moment{now: time.Now(), start: begun, id: uint64(id)}), q)
	}
}

// post completes a request even if ctx ends, because all requests that were started count.
func (r *Replay) post(ctx context.Context, url string, body []byte, q *request) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, url, bytes.NewReader(body))
	if err == nil {
		req.Header.Set("Content-Type", cmp.Or(q.contentType, "application/x-protobuf"))
		if q.snappy {
			req.Header.Set("Content-Encoding", "snappy")
		}
		err = r.exchange(req)
	}
	if err != nil {
		r.refused.Add(1)
		return
	}
	r.requests.Add(1)
	r.bytes.Add(int64(len(body)))
	r.points.Add(q.healthy + q.hostile)
	r.healthy.Add(q.healthy)
}

func (r *Replay) exchange(req *http.Request) error {
	resp, err := r.client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot send: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("cannot send: %s", resp.Status)
	}
	return nil
}
