// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

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
func (r *Request) MergeSplit(_ context.Context, most int, sizer exporterhelper.RequestSizerType, with xexporterhelper.Request) ([]xexporterhelper.Request, error) {
	r.enter()
	if with == nil {
		return r.split(most, sizer), nil
	}
	other := with.(*Request)
	other.enter()
	if r.queue.Signal == otlpstream.Profiles { // each has a dictionary, and two are not joined by putting them one behind the other
		return append(r.split(most, sizer), other.split(most, sizer)...), nil
	}
	if most > 0 && r.size(sizer)+other.size(sizer) > most {
		return append([]xexporterhelper.Request{r}, other.split(most, sizer)...), nil
	}
	return []xexporterhelper.Request{r.append(other)}, nil
}

// append is a request with the data of another behind it. Neither of the two is of use afterwards.
func (r *Request) append(other *Request) *Request {
	size := len(r.Data) + len(other.Data)
	merged := &Request{queue: r.queue, epoch: r.epoch, Items: r.Items + other.Items, Memory: r.Memory, grown: true}
	if !r.grown || !r.Memory.Extend(size) { // its data is shared, or has no room left
		merged.Memory = otlpstream.NewMemory(max(size, r.queue.batchSize()))
		merged.Memory.Extend(size)
		copy(merged.Memory.Bytes(), r.Data)
		r.Memory.Release()
	}
	merged.Data = merged.Memory.Bytes()
	copy(merged.Data[len(r.Data):], other.Data)
	other.Memory.Release()
	return merged
}

func (r *Request) size(sizer exporterhelper.RequestSizerType) int {
	if sizer == exporterhelper.RequestSizerTypeBytes {
		return len(r.Data)
	}
	return r.Items
}

// split divides what is too large: in halves, by bytes, until all parts are within the limit, or cannot be divided.
func (r *Request) split(most int, sizer exporterhelper.RequestSizerType) []xexporterhelper.Request {
	if most <= 0 || r.size(sizer) <= most || r.Items <= 1 {
		return []xexporterhelper.Request{r}
	}
	var parts []xexporterhelper.Request
	items := 0
	const more = 64 // bytes, or halves would often be three parts
	for data, n := range otlpstream.Split(r.queue.Signal, r.Data, len(r.Data)/2+more) {
		if n == 0 {
			continue // empty resources are not worth a message
		}
		items += n
		part := &Request{queue: r.queue, epoch: r.epoch, Items: n, Data: data}
		if n == r.Items {
			return []xexporterhelper.Request{r}
		}
		parts = append(parts, part.split(most, sizer)...)
	}
	if items != r.Items { // it is malformed: the server is to say so
		return []xexporterhelper.Request{r}
	}
	return parts
}

// enter counts what an earlier run has left in the queue on disk.
func (r *Request) enter() {
	if r.queue != nil && r.epoch != r.queue.Epoch {
		r.epoch = r.queue.Epoch
		r.queue.Account.Receive(r.Items)
	}
}

// partition tells batches apart whose requests take different things along, or came from somebody else.
type partition struct {
	encoding

	keys []string // of the metadata, as configured
}

// GetKey is the same for requests that may be in one batch.
func (p partition) GetKey(ctx context.Context, _ xexporterhelper.Request) string {
	from := client.FromContext(ctx)
	key := string(p.kept(ctx)) + "\x00" + string(origin.Of(p.keys, from.Metadata))
	if p.Auth && from.Auth != nil {
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

// batches are the settings of a queue, which may batch.
func (q *Queue) batches() xexporterhelper.QueueBatchSettings {
	settings := xexporterhelper.QueueBatchSettings{Encoding: encoding{q}}
	if batch := q.Queue.Get().Batch; batch.HasValue() {
		p := partition{encoding{q}, batch.Get().Partition.MetadataKeys}
		if len(q.Keys) > 0 || q.All || q.Auth || len(p.keys) > 0 {
			settings.Partitioner, settings.MergeCtx = p, together
		}
	}
	return settings
}
