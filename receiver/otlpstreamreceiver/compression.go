// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

const zstd = "zstd"

// uncompressed has the answers of a call go as they are. gRPC would compress them as the requests were: an answer of a few bytes
// becomes no smaller, and that takes as long as the request itself.
func uncompressed(ctx context.Context) {
	_ = grpc.SetSendCompressor(ctx, encoding.Identity) // it fails where there is no call, and then there is nothing to send
}

// inflater decompresses what gRPC clients have compressed with zstd. What gRPC has for that makes a stream of each message,
// and gives back its memory with the help of the garbage collector. It is never closed: a call that is cut off may still be in it, and
// it has nothing but memory.
type inflater struct {
	frames *otlpstream.Frames
	limit  int
}

func newInflater(limit int) (inflater, error) {
	frames, err := otlpstream.NewFrames(limit)
	return inflater{frames, limit}, err
}

// Type is the name of the encoding.
func (inflater) Type() string { return zstd }

// Do decompresses a message.
func (d inflater) Do(r io.Reader) ([]byte, error) {
	frame := bodies.Get().(*bytes.Buffer)
	defer putBody(frame)
	frame.Reset()
	_ = frame.WriteByte(byte(otlpstream.Zstd))
	if _, err := frame.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("cannot read a message: %w", err)
	}
	if message, err := d.frames.Message(nil, frame.Bytes()); err == nil {
		return message, nil
	}
	return d.slowly(frame.Bytes()[1:])
}

// slowly decompresses what has a window larger than the limit, and finds what is wrong with a message. One that is too large comes
// back a byte larger than it may be, for gRPC to say so.
func (d inflater) slowly(frame []byte) ([]byte, error) {
	r, err := encoding.GetCompressor(d.Type()).Decompress(bytes.NewReader(frame))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, int64(d.limit)+1))
}
