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
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// request is a batch in the queue: encoded data that never changes.
type request struct {
	data  []byte
	items int
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

func (e *streamExporter) newRequest(data []byte, items int, err error) (xexporterhelper.Request, error) {
	if err == nil && e.cfg.Mode != modeUnary {
		err = otlpstream.ToStream(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCannotMarshal, err)
	}
	return &request{data: data, items: items, epoch: e.epoch}, nil
}

func (e *streamExporter) fromTraces(_ context.Context, td ptrace.Traces) (xexporterhelper.Request, error) {
	data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	return e.newRequest(data, td.SpanCount(), err)
}

func (e *streamExporter) fromMetrics(_ context.Context, md pmetric.Metrics) (xexporterhelper.Request, error) {
	data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	return e.newRequest(data, md.DataPointCount(), err)
}

func (e *streamExporter) fromLogs(_ context.Context, ld plog.Logs) (xexporterhelper.Request, error) {
	data, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	return e.newRequest(data, ld.LogRecordCount(), err)
}

// encoding is how requests are kept on disk: epoch, number of items, data.
type encoding struct{}

// Marshal encodes a request.
func (encoding) Marshal(_ context.Context, r xexporterhelper.Request) ([]byte, error) {
	req := r.(*request)
	b := make([]byte, 0, 8+binary.MaxVarintLen64+len(req.data))
	b = binary.LittleEndian.AppendUint64(b, req.epoch)
	b = binary.AppendUvarint(b, uint64(req.items))
	return append(b, req.data...), nil
}

// Unmarshal decodes a request, which keeps b.
func (encoding) Unmarshal(b []byte) (context.Context, xexporterhelper.Request, error) {
	if len(b) < 8 {
		return nil, nil, fmt.Errorf("cannot read a request of %d bytes from the queue", len(b))
	}
	items, n := binary.Uvarint(b[8:])
	if n <= 0 || int(items) < 0 {
		return nil, nil, fmt.Errorf("cannot read the number of items of a request of %d bytes from the queue", len(b))
	}
	return context.Background(), &request{epoch: binary.LittleEndian.Uint64(b), items: int(items), data: b[8+n:]}, nil
}

func newEpoch() uint64 { return rand.Uint64() } //nolint:gosec // it is no secret
