// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamexporter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// request is a batch in a destination's queue: encoded data that never changes, and that all destinations share.
type request struct {
	data   []byte
	memory *otlpstream.Memory // that data is in; nil from a queue on disk
	items  int
	// epoch is the run of the exporter that has counted the items.
	epoch uint64
}

// ItemsCount is the number of spans, data points or log records.
func (r *request) ItemsCount() int { return r.items }

// BytesSize is the size of the data.
func (r *request) BytesSize() int { return len(r.data) }

// MergeSplit is for queues that batch; this one does not.
func (*request) MergeSplit(context.Context, int, exporterhelper.RequestSizerType, xexporterhelper.Request) ([]xexporterhelper.Request, error) {
	return nil, errors.New("cannot merge or split requests: they are encoded")
}

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

// encoding is how requests are kept on disk: epoch, number of items, data.
type encoding struct {
	// unary tells that requests are sent in OTLP form. A run of another mode may have stored what is read in stream form,
	// or the other way round: it has to be sent as it is now, or the server would see no data in it.
	unary bool
}

// Marshal encodes a request.
func (encoding) Marshal(_ context.Context, r xexporterhelper.Request) ([]byte, error) {
	req := r.(*request)
	b := make([]byte, 0, 8+binary.MaxVarintLen64+len(req.data))
	b = binary.LittleEndian.AppendUint64(b, req.epoch)
	b = binary.AppendUvarint(b, uint64(req.items))
	return append(b, req.data...), nil
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
	data := b[8+n:]
	if !e.unary {
		var err error
		if data, err = otlpstream.InStreamForm(data); err != nil {
			return nil, nil, fmt.Errorf("cannot read a request of %d items from the queue: %w", items, err)
		}
	}
	return context.Background(), &request{epoch: binary.LittleEndian.Uint64(b), items: int(items), data: data}, nil
}

func newEpoch() uint64 { return rand.Uint64() } //nolint:gosec // it is no secret
