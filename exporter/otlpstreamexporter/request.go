// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"

	"github.com/godwit-otel/godwit/internal/origin"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// request is a batch in a destination's queue: encoded data that never changes, and that all destinations share.
type request struct {
	data   []byte
	memory *otlpstream.Memory // that data is in; nil from a queue on disk
	items  int
	dest   *destination
	// grown tells that data is of this request alone.
	grown bool
	// epoch is the run of the exporter that has counted the items.
	epoch uint64
	// number is its place among those that are sent in order; 0 where it has none yet.
	number uint64
}

// ItemsCount is the number of spans, data points or log records.
func (r *request) ItemsCount() int { return r.items }

// BytesSize is the size of the data.
func (r *request) BytesSize() int { return len(r.data) }

type requestKey struct{}

// carrying returns a context with a request for a helper. Helpers want telemetry and encode it by themselves, once
// for each destination; the way around that is to give them nothing to encode, and the request beside it.
func carrying(ctx context.Context, r *request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// carried is how a helper gets its request.
func carried[T any](ctx context.Context, _ T) (xexporterhelper.Request, error) {
	return ctx.Value(requestKey{}).(*request), nil
}

// encoding is how requests are kept on disk: epoch, number of items, what is kept of the client, data.
type encoding struct {
	// unary tells that requests are sent in OTLP form. A run of another mode may have stored what is read in stream form,
	// or the other way round: it has to be sent as it is now, or the server would see no data in it.
	unary bool
	// keys are those of the client's metadata that are kept; without any, all are that are there, if anybody may look at them.
	keys []string
	all  bool
	// line gives requests their numbers when they are read, where they are sent in order.
	line *line
	dest *destination
}

// encoding is that of the destination's queue. It keeps what requests take along, and else what an authenticator or
// middleware may ask for, as the queues of the Collector's own exporters do.
func (d *destination) encoding() encoding {
	return encoding{
		unary: d.cfg.Mode == modeUnary,
		keys:  d.cfg.MetadataKeys,
		line:  d.line,
		dest:  d,
		all:   len(d.cfg.MetadataKeys) == 0 && (d.client.Auth.HasValue() || len(d.client.Middlewares) > 0),
	}
}

// kept is what is stored of the client that a request came from.
func (e encoding) kept(ctx context.Context) origin.Origin {
	md := client.FromContext(ctx).Metadata
	if e.all {
		return origin.Of(slices.Sorted(md.Keys()), md)
	}
	return origin.Of(e.keys, md)
}

// Marshal encodes a request.
func (e encoding) Marshal(ctx context.Context, r xexporterhelper.Request) ([]byte, error) {
	req := r.(*request)
	if req.number > 0 { // it was read to be put behind the others, when the queue was opened
		e.line.pass(req.number)
	}
	from := asResource(e.kept(ctx), req.data)
	b := make([]byte, 0, 8+binary.MaxVarintLen64+len(from)+len(req.data))
	b = binary.LittleEndian.AppendUint64(b, req.epoch)
	b = binary.AppendUvarint(b, uint64(req.items))
	return append(append(b, from...), req.data...), nil
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
	if !e.unary {
		if data, err = otlpstream.InStreamForm(data); err != nil {
			return nil, nil, fmt.Errorf("cannot read a request of %d items from the queue: %w", items, err)
		}
	}
	ctx := client.NewContext(context.Background(), client.Info{Metadata: md})
	r := &request{epoch: binary.LittleEndian.Uint64(b), items: int(items), data: data, dest: e.dest}
	if e.line != nil {
		r.number = e.line.join() // the queue reads one at a time
	}
	return ctx, r, nil
}

// newIdentity is a name that nobody else has, and nobody can guess: who has it may say what was sent.
func newIdentity() string { return cryptorand.Text() }

func newEpoch() uint64 { return rand.Uint64() } //nolint:gosec // it is no secret
