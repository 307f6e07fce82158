// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
)

// The credit of a stream and the maximal message, as in the receiver's defaults.
const (
	streamRequests = 256
	streamBytes    = 32 << 20
	streamMessage  = 16 << 20
	// packWindow is the window of packed payloads in the specification; keptHistory limits the state of deltas.
	packWindow  = 256 << 10
	keptHistory = 16 << 20
)

// Fields of otlp.MetricExportRequest; otlp.ExportResponse has the same ID.
const (
	streamID        = 1
	streamResources = 2
	streamPacked    = 20
	streamSize      = 21
	streamDelta     = 22
)

// greeting is the header that opens a stream. `window` makes clients pack their payloads, and `delta` makes them send
// only changes.
var greeting = metadata.Pairs(
	"otlp-stream-caps", "window,delta",
	"otlp-stream-window-size", strconv.Itoa(packWindow),
	"otlp-stream-history", strconv.Itoa(keptHistory),
	"otlp-stream-window-requests", strconv.Itoa(streamRequests),
	"otlp-stream-window-bytes", strconv.Itoa(streamBytes),
	"otlp-stream-max-message", strconv.Itoa(streamMessage),
)

// streamService receives metrics by otlpstream, as in docs/otlpstream.md.
func streamService(l *Ledger) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "otlp.StreamExporter",
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "ExportMetrics", ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return l.stream(s) },
		}},
	}
}

// stream accounts for each request of a stream and acknowledges it.
func (l *Ledger) stream(s grpc.ServerStream) error {
	_ = grpc.SetSendCompressor(s.Context(), encoding.Identity) // responses are numbers
	if err := s.SendHeader(greeting); err != nil {
		return err
	}
	var u unpacker
	defer u.close()
	for {
		var message []byte
		if err := s.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		id, e, err := u.request(message)
		if err != nil {
			l.failed()
			return err
		}
		l.add(e)
		answer := protowire.AppendVarint(protowire.AppendTag(nil, streamID, protowire.VarintType), id)
		if err := s.SendMsg(&answer); err != nil {
			return err
		}
	}
}

var (
	errNumber = errors.New("the request has no number")
	errPacked = errors.New("it does not unpack to the size it tells")
)

// unpacker is the state of a stream between requests: all its packed payloads are one zstd frame, and deltas refer to
// earlier requests.
type unpacker struct {
	in      bytes.Buffer
	decoder *zstd.Decoder
	plain   []byte
	history *history
}

// request accounts for a message of a stream.
func (u *unpacker) request(message []byte) (id uint64, e *entry, err error) {
	var packed []byte
	var size, delta uint64
	if err := walk(message, func(f *field) error {
		switch f.id {
		case streamID:
			id = f.number
		case streamPacked:
			packed = f.bytes
		case streamSize:
			size = f.number
		case streamDelta:
			delta = f.number
		}
		return nil
	}); err != nil {
		return 0, nil, err
	}
	if id == 0 {
		return 0, nil, errNumber
	}
	e = newEntry(len(message))
	if packed == nil {
		return id, e, resources(message, streamResources, e)
	}
	e.stats.Raw += int64(size) - int64(len(packed))
	inFrame := size
	if delta > 0 {
		inFrame = delta
	}
	plain, err := u.unpack(packed, max(size, inFrame), inFrame)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot unpack request %d: %w", id, err)
	}
	if delta == 0 {
		return id, e, resources(plain, streamResources, e)
	}
	if u.history == nil {
		u.history = newHistory(keptHistory)
	}
	return id, e, u.history.resources(plain, size, e.resource)
}

// unpack returns a payload, which is valid until the next call.
func (u *unpacker) unpack(packed []byte, largest, size uint64) ([]byte, error) {
	if largest > streamMessage {
		return nil, errPacked
	}
	u.in.Write(packed)
	if u.decoder == nil {
		var err error
		in := struct{ io.Reader }{&u.in} // from a plain buffer, the decoder would assume that the frame ends with it
		if u.decoder, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(packWindow)); err != nil {
			return nil, err
		}
	}
	if uint64(cap(u.plain)) < size {
		u.plain = make([]byte, size)
	}
	u.plain = u.plain[:size]
	if _, err := io.ReadFull(u.decoder, u.plain); err != nil {
		return nil, fmt.Errorf("%w: %w", errPacked, err)
	}
	if u.in.Len() > 0 {
		return nil, errPacked
	}
	return u.plain, nil
}

func (u *unpacker) close() {
	if u.decoder != nil {
		u.decoder.Close()
	}
}
