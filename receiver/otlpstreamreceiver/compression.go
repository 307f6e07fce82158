// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

const zstd = "zstd"

// uncompressed disables compression of a call's answers. gRPC would compress them like the requests: an answer of a few
// bytes becomes no smaller, and compressing it takes as long as the request itself.
func uncompressed(ctx context.Context) {
	_ = grpc.SetSendCompressor(ctx, encoding.Identity) // it fails without a call, and then there is nothing to send
}

// inflater decompresses messages of gRPC clients with zstd. gRPC's own way makes a stream of each message, takes as
// much memory as the message claims to need, and leaves it to the garbage collector. An inflater is never closed: an
// aborted call may still use it, and it only holds memory.
type inflater struct {
	frames *otlpstream.Frames
	// over is larger than a message may be: returning it makes gRPC report that the message was. Nobody reads it, so it
	// takes no memory.
	over func() []byte
}

func newInflater(limit int) (inflater, error) {
	frames, err := otlpstream.NewFrames(limit)
	return inflater{frames, sync.OnceValue(func() []byte { return make([]byte, limit+1) })}, err
}

// Type returns the name of the encoding.
func (inflater) Type() string { return zstd }

// Do decompresses a message.
func (d inflater) Do(r io.Reader) ([]byte, error) {
	frame := bodies.Get().(*bytes.Buffer)
	defer putBody(frame)
	frame.Reset()
	if _, err := frame.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("cannot read a message: %w", err)
	}
	message, err := d.frames.Inflate(nil, frame.Bytes())
	if errors.Is(err, otlpstream.ErrInflated) {
		return d.over(), nil
	}
	return message, err
}

// inflatedBody is a decompressed HTTP body. It is read completely first: see Frames.Inflate.
type inflatedBody struct {
	io.ReadCloser // compressed

	frames *otlpstream.Frames
	left   []byte
	err    error
}

// inflates returns a function that decompresses bodies with zstd.
func inflates(frames *otlpstream.Frames) func(io.ReadCloser) (io.ReadCloser, error) {
	return func(body io.ReadCloser) (io.ReadCloser, error) {
		return &inflatedBody{ReadCloser: body, frames: frames}, nil
	}
}

func (b *inflatedBody) Read(p []byte) (int, error) {
	if b.err == nil {
		b.left, b.err = b.inflate()
	}
	if len(b.left) == 0 {
		return 0, b.err
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// inflate returns the whole body, and the error to return after it.
func (b *inflatedBody) inflate() ([]byte, error) {
	frame := bodies.Get().(*bytes.Buffer)
	defer putBody(frame)
	frame.Reset()
	if _, err := frame.ReadFrom(b.ReadCloser); err != nil {
		return nil, err
	}
	message, err := b.frames.Inflate(nil, frame.Bytes())
	switch {
	case errors.Is(err, otlpstream.ErrInflated):
		return nil, &http.MaxBytesError{Limit: int64(b.frames.Limit())}
	case err != nil:
		return nil, err
	}
	return message, io.EOF
}
