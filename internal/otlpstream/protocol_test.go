// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstream

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIDsAreSequentialFromOne(t *testing.T) {
	p := NewPending[string]()
	for want := uint64(1); want <= 100; want++ {
		require.Equal(t, want, p.Add("", time.Now()).ID)
		if want%3 == 0 {
			p.Take(want)
		}
	}
}

func TestPendingForgetsWhatIsAnswered(t *testing.T) {
	p := NewPending[int]()
	now := time.Unix(1000, 0)
	for i := range 100 {
		p.Add(i, now.Add(time.Duration(i)*time.Second))
	}
	ids := rand.Perm(100)
	for _, i := range ids {
		e := p.Take(uint64(i + 1))
		require.Equal(t, i, e.Value)
		require.Nil(t, p.Take(e.ID), "answered twice")
	}
	require.Nil(t, p.Take(1000), "never sent")
	require.Nil(t, p.Oldest())
	require.Zero(t, p.Len())
}

func TestPendingKeepsTheOrderOfSending(t *testing.T) {
	p := NewPending[int]()
	now := time.Unix(1000, 0)
	a, b, c := p.Add(1, now), p.Add(2, now.Add(1)), p.Add(3, now.Add(2))
	require.Same(t, a, p.Oldest())
	p.Resent(a, now.Add(3))
	require.Same(t, b, p.Oldest())
	var order []uint64
	p.All(func(e *Entry[int]) bool { order = append(order, e.ID); return true })
	require.Equal(t, []uint64{2, 3, 1}, order)

	p.All(func(e *Entry[int]) bool { p.Take(e.ID); return e != b })
	require.Equal(t, 2, p.Len(), "it stops when told")
	require.Same(t, c, p.Oldest())
	p.All(func(e *Entry[int]) bool { p.Resent(e, now.Add(9)); return true })
	require.Equal(t, 2, p.Len(), "each is visited once, though it moves to the end")
	p.All(func(e *Entry[int]) bool { p.Take(e.ID); return true })
	require.Zero(t, p.Len())
	p.All(func(*Entry[int]) bool { t.Fatal("there is none"); return true })
}

func TestCapabilitiesTravelInHeaders(t *testing.T) {
	require.Equal(t, "coalesce,delay,drain,window,working,delta", AllCaps.String())
	require.Equal(t, AllCaps, ParseCaps(AllCaps.String()))
	require.Equal(t, CapDrain, ParseCaps(" drain , telepathy"))
	require.Zero(t, ParseCaps(""))

	limits := Limits{Requests: 3, Bytes: 4, MaxMessage: 5, Keep: Keep{Window: 6, History: 7}}
	headers := limits.Headers()
	read := func(name string) string { return headers[slices.Index(headers, name)+1] }
	require.Equal(t, limits, ParseLimits(read))
	require.Zero(t, ParseLimits(func(string) string { return "" }))
	require.Zero(t, ParseLimits(func(string) string { return "-1" }))
}

func TestCreditBoundsWhatIsUnacknowledged(t *testing.T) {
	var none Credit
	none.Spend(1 << 40)
	require.True(t, none.Fits(1<<40))

	c := Credit{Limits: Limits{Requests: 2, Bytes: 100}}
	require.True(t, c.Fits(1000), "alone even a giant goes")
	c.Spend(60)
	require.False(t, c.Fits(41))
	require.True(t, c.Fits(40))
	c.Spend(40)
	require.False(t, c.Fits(0), "two requests are the limit")
	c.Return(60)
	require.True(t, c.Fits(60))
}

func TestRetryInfo(t *testing.T) {
	delay, ok := RetryDelay(Busy("full", 3*time.Second))
	require.True(t, ok)
	require.Equal(t, 3*time.Second, delay)
	require.Equal(t, codes.Unavailable, Busy("full", 0).Code())
	_, ok = RetryDelay(status.New(codes.Unavailable, ""))
	require.False(t, ok)
	delay, _ = RetryDelay(Busy("", 1000*time.Hour))
	require.Equal(t, maxDelay, delay)

	require.True(t, Transient(status.New(codes.Unavailable, "")))
	require.False(t, Transient(status.New(codes.InvalidArgument, "")))
	require.False(t, Transient(status.New(codes.ResourceExhausted, "")))
	withInfo, err := status.New(codes.ResourceExhausted, "").WithDetails(&errdetails.RetryInfo{})
	require.NoError(t, err)
	require.True(t, Transient(withInfo))
}

func TestFrames(t *testing.T) {
	message := []byte(strings.Repeat("a message that compresses ", 100))
	frames, err := NewFrames(len(message))
	require.NoError(t, err)
	defer frames.Close()
	for _, c := range []Compression{NoCompression, Gzip, Zstd} {
		frame, err := c.AppendFrame(nil, message[:10], message[10:])
		require.NoError(t, err)
		require.Equal(t, byte(c), frame[0])
		got, err := frames.Message(nil, frame)
		require.NoError(t, err)
		require.Equal(t, message, got)
		if c != NoCompression {
			require.Less(t, len(frame), len(message)/5)
		}
		over, err := c.AppendFrame(nil, message, []byte("x"))
		require.NoError(t, err)
		_, err = frames.Message(nil, over)
		require.ErrorIs(t, err, ErrInflated)
	}
	for _, bad := range []string{"", "\x07x", "\x01x", "\x02x"} {
		_, err := frames.Message(nil, []byte(bad))
		require.Error(t, err)
	}
	_, err = Compression(9).AppendFrame(nil)
	require.Error(t, err)
}

func FuzzFrame(f *testing.F) {
	const limit = 1 << 16
	frames, err := NewFrames(limit)
	require.NoError(f, err)
	f.Cleanup(frames.Close)
	for c := range Zstd + 1 {
		frame, err := c.AppendFrame(nil, []byte("some message, some message"))
		require.NoError(f, err)
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		message, err := frames.Message(nil, frame)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(message), limit)
		again, err := Compression(frame[0]).AppendFrame(nil, message)
		require.NoError(t, err)
		back, err := frames.Message(nil, again)
		require.NoError(t, err)
		require.Equal(t, string(message), string(back))
	})
}

func TestSignalsHaveNames(t *testing.T) {
	require.Equal(t, "/otlp.StreamExporter/ExportTraces", Traces.StreamMethod())
	require.Equal(t, "/opentelemetry.proto.collector.logs.v1.LogsService/Export", Logs.OTLPMethod())
	require.Equal(t, "/v1/stream/metrics", Metrics.WebSocketPath())
	require.Equal(t, "/v1/metrics", Metrics.HTTPPath())
	for _, s := range Signals() {
		stream, unary := s.ReferenceServices()
		require.Equal(t, s == Traces, stream != "" && unary != "")
	}
	require.Equal(t, "success failed_none_retryable failed_retryable result_code_9",
		strings.Join([]string{Success.String(), FailedNoneRetryable.String(), FailedRetryable.String(), ResultCode(9).String()}, " "))
}
