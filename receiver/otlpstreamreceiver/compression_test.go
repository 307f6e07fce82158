// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

// compressed returns a message as gRPC's clients compress it: as a stream without its size.
func compressed(tb testing.TB, message []byte) []byte {
	var frame bytes.Buffer
	w, err := encoding.GetCompressor(zstd).Compress(&frame)
	require.NoError(tb, err)
	_, err = w.Write(message)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return frame.Bytes()
}

// sized returns a frame with its size, of data that does not compress.
func sized(tb testing.TB, size int) []byte {
	message, random := make([]byte, size), rand.New(rand.NewPCG(1, 2))
	for i := range message {
		message[i] = byte(random.Uint32())
	}
	return sizedFrame(tb, message)
}

// inflateLimit is smaller than the window of gRPC's clients.
const inflateLimit = 64 << 10

func inflateSeeds(tb testing.TB) [][]byte {
	one, err := otlpstream.Zstd.AppendFrame(nil, bytes.Repeat([]byte("name and value "), 100))
	require.NoError(tb, err)
	zeros, err := otlpstream.Zstd.AppendFrame(nil, make([]byte, 10*inflateLimit))
	require.NoError(tb, err)
	return [][]byte{
		nil,
		{0},
		one[1:], one[1 : len(one)-5], zeros[1:],
		append(bytes.Clone(one[1:]), one[1:]...),
		append(bytes.Clone(one[1:]), "trailing"...),
		sized(tb, inflateLimit), sized(tb, inflateLimit+1),
		compressed(tb, bytes.Repeat([]byte("streamed "), 1000)),
		compressed(tb, make([]byte, inflateLimit)),
		compressed(tb, make([]byte, 2*inflateLimit)),
		boastful([]byte("boastful")), append(boastful(make([]byte, inflateLimit)), boastful([]byte{1})...),
	}
}

// Our decompressor has the same results as gRPC's own.
func FuzzInflater(f *testing.F) {
	for _, seed := range inflateSeeds(f) {
		f.Add(seed)
	}
	ours, err := newInflater(inflateLimit)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, frame []byte) {
		theirs := func() ([]byte, error) {
			r, err := encoding.GetCompressor(zstd).Decompress(bytes.NewReader(frame))
			if err != nil {
				return nil, err
			}
			return io.ReadAll(io.LimitReader(r, inflateLimit+1))
		}
		want, wantErr := theirs()
		got, gotErr := ours.Do(bytes.NewReader(frame))
		require.Equal(t, wantErr == nil, gotErr == nil, "%v, %v", wantErr, gotErr)
		switch {
		case wantErr != nil:
		case len(want) > inflateLimit:
			require.Len(t, got, inflateLimit+1, "for gRPC to say that it is too large")
		default:
			require.True(t, bytes.Equal(want, got))
		}
	})
}

// heard records the compressions of the responses to a client's calls.
type heard struct {
	mu           sync.Mutex
	compressions []string
}

func (*heard) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*heard) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*heard) HandleConn(context.Context, stats.ConnStats)                       {}

func (h *heard) HandleRPC(_ context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InHeader); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.compressions = append(h.compressions, in.Compression)
	}
}

func TestAnswersAreNotCompressed(t *testing.T) {
	for _, name := range []string{zstd, gzip.Name} {
		t.Run(name, func(t *testing.T) {
			r, h := start(t, &pipeline{}), &heard{}
			cc, err := grpc.NewClient(r.grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultCallOptions(grpc.UseCompressor(name)), grpc.WithStatsHandler(h))
			require.NoError(t, err)
			defer cc.Close()
			c := openGRPC(t, cc, otlpstream.AllCaps, otlpstream.Traces.StreamMethod())
			c.export(1, "x")
			require.Equal(t, otlpstream.Success, c.answer().Code)
			_, err = ptraceotlp.NewGRPCClient(cc).Export(testContext(t), ptraceotlp.NewExportRequestFromTraces(spanNamed("y")))
			require.NoError(t, err)
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, c := range h.compressions {
				require.Contains(t, []string{"", encoding.Identity}, c)
			}
			require.Len(t, h.compressions, 2)
		})
	}
}

func TestWhatIsTooLargeDecompressedIsSaidToBe(t *testing.T) {
	r := start(t, &pipeline{}, func(cfg *Config) { grpcOf(cfg).MaxRecvMsgSizeMiB = 1 })
	cc := grpcClient(t, r)
	_, err := ptraceotlp.NewGRPCClient(cc).Export(testContext(t),
		ptraceotlp.NewExportRequestFromTraces(spanNamed(strings.Repeat("x", 2<<20))), grpc.UseCompressor(zstd))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	limit, ok := otlpstream.TooLarge(status.Convert(err))
	require.True(t, ok, err)
	require.Equal(t, 1<<20, limit, "clients divide requests by it")
}

// boastful returns a frame with an uncompressed message that claims to need half a GiB for decompression.
func boastful(message []byte) []byte {
	const halfGiB = (29 - 10) << 3
	const last = 1
	block := uint32(len(message))<<3 | last
	return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, halfGiB, byte(block), byte(block >> 8), byte(block >> 16)}, message...)
}

// raw makes calls send data that is already compressed.
type raw struct{}

func (raw) Type() string { return zstd }

func (raw) Do(w io.Writer, message []byte) error {
	_, err := w.Write(boastful(message))
	return err
}

// A few bytes with a large window are decompressed, like those of any encoder, without allocating the window.
func TestAWindowThatIsNamedTakesNoMemory(t *testing.T) {
	message, err := ptraceotlp.NewExportRequestFromTraces(spanNamed("boastful")).MarshalProto()
	require.NoError(t, err)
	overGRPC := func(t *testing.T, r *sharedReceiver) {
		cc, err := grpc.NewClient(r.grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithCompressor(raw{})) //nolint:staticcheck // no other is for one client alone
		require.NoError(t, err)
		defer cc.Close()
		_, err = ptraceotlp.NewGRPCClient(cc).Export(testContext(t), ptraceotlp.NewExportRequestFromTraces(spanNamed("boastful")))
		require.NoError(t, err)
	}
	overHTTP := func(t *testing.T, r *sharedReceiver) {
		req, err := http.NewRequestWithContext(testContext(t), http.MethodPost, "http://"+r.httpAddr+otlpstream.Traces.HTTPPath(), bytes.NewReader(boastful(message)))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/x-protobuf")
		req.Header.Set("Content-Encoding", zstd)
		response, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	for name, send := range map[string]func(*testing.T, *sharedReceiver){"gRPC": overGRPC, "HTTP": overHTTP} {
		t.Run(name, func(t *testing.T) {
			p := &pipeline{}
			r := start(t, p)
			took := allocated(func() { send(t, r) })
			require.Equal(t, []string{"boastful"}, p.seen())
			require.Less(t, took, 32<<20)
		})
	}
}

func TestABodyThatIsTooLargeDecompressedIsSaidToBe(t *testing.T) {
	r := start(t, &pipeline{}, func(cfg *Config) { httpOf(cfg).MaxRequestBodySize = 1 << 20 })
	for name, frame := range map[string][]byte{
		"zeros": sizedFrame(t, make([]byte, 2<<20)), "streamed zeros": compressed(t, make([]byte, 2<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(testContext(t), http.MethodPost, "http://"+r.httpAddr+otlpstream.Traces.HTTPPath(), bytes.NewReader(frame))
			require.NoError(t, err)
			req.Header.Set("Content-Type", "application/x-protobuf")
			req.Header.Set("Content-Encoding", zstd)
			response, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer response.Body.Close()
			require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
		})
	}
}

func sizedFrame(tb testing.TB, message []byte) []byte {
	frame, err := otlpstream.Zstd.AppendFrame(nil, message)
	require.NoError(tb, err)
	return frame[1:]
}
