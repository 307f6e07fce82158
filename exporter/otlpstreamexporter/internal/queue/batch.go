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

// MergeSplit is for queues that batch. Encoded requests are lists of resources: concatenated, they are a request. If
// two are too large for one they stay two, since filling up the first would cut resources into pieces that the next
// batch repeats.
func (r *Request) MergeSplit(_ context.Context, most int, sizer exporterhelper.RequestSizerType, with xexporterhelper.Request) ([]xexporterhelper.Request, error) {
	r.enter()
	if with == nil {
		return r.split(most, sizer), nil
	}
	other := with.(*Request)
	other.enter()
	if r.queue.Signal == otlpstream.Profiles { // each has a dictionary, so they cannot be concatenated
		return append(r.split(most, sizer), other.split(most, sizer)...), nil
	}
	if most > 0 && r.size(sizer)+other.size(sizer) > most {
		return append([]xexporterhelper.Request{r}, other.split(most, sizer)...), nil
	}
	return []xexporterhelper.Request{r.append(other)}, nil
}

// append returns a request with the data of both. Neither of the two may be used afterwards.
func (r *Request) append(other *Request) *Request {
	size := len(r.Data) + len(other.Data)
	merged := &Request{queue: r.queue, epoch: r.epoch, Items: r.Items + other.Items, Memory: r.Memory, grown: true}
	if !r.grown || !r.Memory.Extend(size) { // its data is shared, or has no capacity left
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

// split divides a request that is too large: in halves, by bytes, until all parts are within the limit, or cannot be
// divided.
func (r *Request) split(most int, sizer exporterhelper.RequestSizerType) []xexporterhelper.Request {
	if most <= 0 || r.size(sizer) <= most || r.Items <= 1 {
		return []xexporterhelper.Request{r}
	}
	var parts []xexporterhelper.Request
	items := 0
	const more = 64 // in bytes; otherwise halves would often become three parts
	for data, n := range otlpstream.Split(r.queue.Signal, r.Data, len(r.Data)/2+more) {
		if n == 0 {
			continue // an empty resource needs no message
		}
		items += n
		part := &Request{queue: r.queue, epoch: r.epoch, Items: n, Data: data}
		if n == r.Items {
			return []xexporterhelper.Request{r}
		}
		parts = append(parts, part.split(most, sizer)...)
	}
	if items != r.Items { // it is malformed, as the server will say
		return []xexporterhelper.Request{r}
	}
	return parts
}

// enter counts what an earlier process left in the queue on disk.
func (r *Request) enter() {
	if r.queue != nil && r.epoch != r.queue.Epoch {
		r.epoch = r.queue.Epoch
		r.queue.Account.Receive(r.Items)
	}
}

// partition separates batches whose requests have other metadata, or another client.
type partition struct {
	encoding

	keys []string // of metadata, as configured
}

// GetKey is equal for requests that may be in one batch.
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

// together returns the context of a batch: its client is that of each of its requests, as far as anybody asks.
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
