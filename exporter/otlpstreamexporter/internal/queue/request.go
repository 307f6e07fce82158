// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"

	"github.com/godwit-otel/godwit/internal/origin"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// Request is a batch in a destination's queue: encoded data that never changes, shared by all destinations.
type Request struct {
	Data   []byte
	Memory *otlpstream.Memory // memory of the data; nil if it came from a queue on disk
	Items  int
	// Number is its place in the order of sending; 0 if it has none yet.
	Number uint64

	queue *Queue
	// grown says that no other request shares the data.
	grown bool
	// epoch identifies the process that counted the items.
	epoch uint64
}

// ItemsCount is the number of spans, data points or log records.
func (r *Request) ItemsCount() int { return r.Items }

// BytesSize is the size of the data.
func (r *Request) BytesSize() int { return len(r.Data) }

type requestKey struct{}

// carrying returns a context with a request for the helper.
func carrying(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// carried gets a request from a context, for the helper.
func carried[T any](ctx context.Context, _ T) (xexporterhelper.Request, error) {
	return ctx.Value(requestKey{}).(*Request), nil
}

// encoding encodes requests for the disk: epoch, number of items, data about the client, data. Of the client it keeps
// what requests are sent with, and otherwise what an authenticator or middleware may ask for, as the queues of the
// Collector's own exporters do.
type encoding struct{ *Queue }

// kept returns what is stored about the client of a request.
func (e encoding) kept(ctx context.Context) origin.Origin {
	md := client.FromContext(ctx).Metadata
	if e.All {
		return origin.Of(slices.Sorted(md.Keys()), md)
	}
	return origin.Of(e.Keys, md)
}

// Marshal encodes a request.
func (e encoding) Marshal(ctx context.Context, r xexporterhelper.Request) ([]byte, error) {
	req := r.(*Request)
	if req.Number > 0 { // it was read to be queued again, when the queue was opened
		e.Line.Pass(req.Number)
	}
	from := asResource(e.kept(ctx), req.Data)
	b := make([]byte, 0, 8+binary.MaxVarintLen64+len(from)+len(req.Data))
	b = binary.LittleEndian.AppendUint64(b, req.epoch)
	b = binary.AppendUvarint(b, uint64(req.Items))
	return append(append(b, from...), req.Data...), nil
}

// Unmarshal decodes a request, which keeps b.
func (e encoding) Unmarshal(b []byte) (context.Context, xexporterhelper.Request, error) {
	if len(b) < 8 {
		return nil, nil, fmt.Errorf("cannot read a request of %d bytes from the queue", len(b))
	}
	items, n := binary.Uvarint(b[8:])
	if n <= 0 || int(items) < 0 {
		return nil, nil, fmt.Errorf("cannot read the number of items of a request of %d bytes from the queue", len(b))
	}
	from, data := cutOrigin(b[8+n:])
	md, err := from.Metadata()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read a request of %d items from the queue: %w", items, err)
	}
	if !e.Unary {
		if data, err = otlpstream.InStreamForm(data); err != nil {
			return nil, nil, fmt.Errorf("cannot read a request of %d items from the queue: %w", items, err)
		}
	}
	ctx := client.NewContext(context.Background(), client.Info{Metadata: md})
	r := &Request{epoch: binary.LittleEndian.Uint64(b), Items: int(items), Data: data, queue: e.Queue}
	if e.Line != nil {
		r.Number = e.Line.Join() // the queue reads one at a time
	}
	return ctx, r, nil
}
