// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"

	"github.com/godwit-otel/godwit/internal/origin"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// MergeSplit is for queues that batch. Encoded requests are lists of resources: one behind the other they are a request. Where two are
// too much for one they stay two, for to fill up the first would cut resources in pieces that the next batch repeats.
func (r *request) MergeSplit(_ context.Context, most int, sizer exporterhelper.RequestSizerType, with xexporterhelper.Request) ([]xexporterhelper.Request, error) {
	r.enter()
	if with == nil {
		return r.split(most, sizer), nil
	}
	other := with.(*request)
	other.enter()
	if r.dest.signal == otlpstream.Profiles { // each has a dictionary, and two are not joined by putting them one behind the other
		return append(r.split(most, sizer), other.split(most, sizer)...), nil
	}
	if most > 0 && r.size(sizer)+other.size(sizer) > most {
		return append([]xexporterhelper.Request{r}, other.split(most, sizer)...), nil
	}
	return []xexporterhelper.Request{r.append(other)}, nil
}

// append is a request with the data of another behind it. Neither of the two is of use afterwards.
func (r *request) append(other *request) *request {
	size := len(r.data) + len(other.data)
	merged := &request{dest: r.dest, epoch: r.epoch, items: r.items + other.items, memory: r.memory, grown: true}
	if !r.grown || !r.memory.Extend(size) { // its data is shared, or has no room left
		merged.memory = otlpstream.NewMemory(max(size, r.dest.batchSize()))
		merged.memory.Extend(size)
		copy(merged.memory.Bytes(), r.data)
		r.memory.Release()
	}
	merged.data = merged.memory.Bytes()
	copy(merged.data[len(r.data):], other.data)
	other.memory.Release()
	return merged
}

// batchSize is how large the batches of a destination are, as the last one was: nothing is copied twice then.
func (d *destination) batchSize() int { return int(d.lastBatch.Load()) }

func (r *request) size(sizer exporterhelper.RequestSizerType) int {
	if sizer == exporterhelper.RequestSizerTypeBytes {
		return len(r.data)
	}
	return r.items
}

// split divides what is too large: in halves, by bytes, until all parts are within the limit, or cannot be divided.
func (r *request) split(most int, sizer exporterhelper.RequestSizerType) []xexporterhelper.Request {
	if most <= 0 || r.size(sizer) <= most || r.items <= 1 {
		return []xexporterhelper.Request{r}
	}
	var parts []xexporterhelper.Request
	items := 0
	for data, n := range otlpstream.Split(r.dest.signal, r.data, len(r.data)/2+messageOverhead) {
		if n == 0 {
			continue // empty resources are not worth a message
		}
		items += n
		part := &request{dest: r.dest, epoch: r.epoch, items: n, data: data}
		if n == r.items {
			return []xexporterhelper.Request{r}
		}
		parts = append(parts, part.split(most, sizer)...)
	}
	if items != r.items { // it is malformed: the server is to say so
		return []xexporterhelper.Request{r}
	}
	return parts
}

// enter counts what an earlier run has left in the queue on disk.
func (r *request) enter() {
	if r.dest != nil && r.epoch != r.dest.epoch {
		r.epoch = r.dest.epoch
		r.dest.account.Receive(r.items)
	}
}

// partition tells batches apart whose requests take different things along, or came from somebody else.
type partition struct {
	encoding

	keys []string
	auth bool
}

// GetKey is the same for requests that may be in one batch.
func (p partition) GetKey(ctx context.Context, _ xexporterhelper.Request) string {
	from := client.FromContext(ctx)
	key := string(p.kept(ctx)) + "\x00" + string(origin.Of(p.keys, from.Metadata))
	if p.auth && from.Auth != nil {
		var b strings.Builder
		for _, name := range slices.Sorted(slices.Values(from.Auth.GetAttributeNames())) {
			fmt.Fprintf(&b, "\x00%q=%q", name, fmt.Sprint(from.Auth.GetAttribute(name)))
		}
		key += b.String()
	}
	return key
}

// together is the context of a batch: its client is that of each of its requests, as far as anybody asks.
func together(ctx, _ context.Context) context.Context {
	return client.NewContext(context.Background(), client.FromContext(ctx))
}

// batches completes the settings of a queue that batches.
func (d *destination) batches(settings *xexporterhelper.QueueBatchSettings, keys []string) {
	p := partition{encoding: d.encoding(), keys: keys, auth: d.client.Auth.HasValue()}
	if len(p.encoding.keys) > 0 || p.all || p.auth || len(keys) > 0 {
		settings.Partitioner, settings.MergeCtx = p, together
	}
}
