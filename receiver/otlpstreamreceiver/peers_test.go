// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/memory"
)

func TestStandardOTLPWorksOnTheSamePort(t *testing.T) {
	p := &pipeline{}
	r := start(t, p)
	cc := grpcClient(t, r)
	md, ld := pmetric.NewMetrics(), plog.NewLogs()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("metric")
	m.SetEmptyGauge().DataPoints().AppendEmpty()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("log")
	traces, metrics, logs := ptraceotlp.NewExportRequestFromTraces(spanNamed("span")), pmetricotlp.NewExportRequestFromMetrics(md), plogotlp.NewExportRequestFromLogs(ld)

	_, err := ptraceotlp.NewGRPCClient(cc).Export(testContext(t), traces)
	require.NoError(t, err)
	_, err = pmetricotlp.NewGRPCClient(cc).Export(testContext(t), metrics)
	require.NoError(t, err)
	_, err = plogotlp.NewGRPCClient(cc).Export(testContext(t), logs)
	require.NoError(t, err)
	require.Equal(t, []string{"span", "metric", "log"}, p.seen())

	for path, request := range map[string]interface {
		MarshalProto() ([]byte, error)
		MarshalJSON() ([]byte, error)
	}{"/v1/traces": traces, "/v1/metrics": metrics, "/v1/logs": logs} {
		data, err := request.MarshalProto()
		require.NoError(t, err)
		code, _, body := post(t, r, path, "application/x-protobuf", data)
		require.Equal(t, 200, code)
		require.Empty(t, body)
		data, err = request.MarshalJSON()
		require.NoError(t, err)
		code, _, body = post(t, r, path, "application/json; charset=utf-8", data)
		require.Equal(t, 200, code)
		require.Equal(t, "{}", body)
	}
	require.Len(t, p.seen(), 9)
}

func TestTheReferenceServiceIsServed(t *testing.T) {
	p := &pipeline{}
	r := start(t, p)
	stream, _ := otlpstream.Traces.ReferenceServices()
	c := openGRPC(t, grpcClient(t, r), 0, "/"+stream+"/ExportTraces")
	// Encoded by hand, with only what the specification has.
	message := protowire.AppendVarint([]byte{0x08}, 300)
	message = append(message, payload(t, "by hand")...)
	require.NoError(t, c.raw(message))
	require.Equal(t, otlpstream.Response{ID: 300}, c.answer())
	require.Equal(t, []string{"by hand"}, p.seen())
}

func TestAPeerThatKnowsNoExtensionsHasAllThatIsMandatory(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p := &pipeline{do: func(_ context.Context, name string) error {
			if name == "bad" {
				return consumererror.NewPermanent(errors.New("bad"))
			}
			return nil
		}}
		c := dial(t, start(t, p), 0)
		message := func(id byte, data []byte) []byte { return append([]byte{0x08, id}, data...) }
		require.NoError(t, c.raw(message(1, payload(t, "good"))))
		require.NoError(t, c.raw(message(2, payload(t, "bad"))))
		require.NoError(t, c.raw(message(3, nil)))
		got := c.answers(3)
		require.Equal(t, otlpstream.Success, got[1].Code)
		require.Equal(t, otlpstream.FailedNoneRetryable, got[2].Code)
		require.Equal(t, otlpstream.Success, got[3].Code)
		for id, response := range got {
			require.Equal(t, id, response.ID)
			require.Empty(t, response.IDs, "it was not asked for")
		}
		require.NoError(t, c.finish())
		st, _ := c.end()
		require.Nil(t, st)
	})
}

func TestFieldsOfLaterVersionsAreIgnored(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p := &pipeline{}
		c := dial(t, start(t, p), 0)
		message := protowire.AppendVarint(protowire.AppendTag(nil, 15, protowire.VarintType), 7)
		message = append(append(message, 0x08, 5), payload(t, "x")...)
		message = protowire.AppendString(protowire.AppendTag(message, 100, protowire.BytesType), "of the future")
		message = protowire.AppendFixed32(protowire.AppendTag(message, 101, protowire.Fixed32Type), 1)
		message = protowire.AppendFixed64(protowire.AppendTag(message, 102, protowire.Fixed64Type), 1)
		require.NoError(t, c.raw(message))
		require.Equal(t, otlpstream.Response{ID: 5}, c.answer())
		require.Equal(t, []string{"x"}, p.seen())
	})
}

func TestAcksAreCoalescedOnlyForThoseWhoAsked(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		for _, caps := range []otlpstream.Caps{0, otlpstream.CapCoalesce} {
			gate := make(chan struct{})
			p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
			c := dial(t, start(t, p), caps)
			require.Equal(t, (memory.Caps &^ otlpstream.CapDelta).String(), c.header(otlpstream.HeaderCaps))
			require.Equal(t, "256", c.header(otlpstream.HeaderWindowRequests))
			const n = 200
			for id := uint64(1); id <= n; id++ {
				c.export(id, numbered(id))
			}
			eventually(t, func() bool { return len(p.seen()) == n }, "all wait")
			close(gate)
			messages := 0
			for acked := 0; acked < n; messages++ {
				response := c.answer()
				acked += 1 + len(response.IDs)
			}
			if caps == 0 {
				require.Equal(t, n, messages)
			}
		}
	})
}

// recorded is the sending side of a stream.
type recorded struct{ sent []otlpstream.Response }

func (*recorded) Recv(func() *otlpstream.Request) (*otlpstream.Request, error) { return nil, io.EOF }

func (c *recorded) Send(response *otlpstream.Response) error {
	c.sent = append(c.sent, *response)
	return nil
}

func TestOneMessageAcksAllThatIsReady(t *testing.T) {
	r := prepare(t, &pipeline{})
	defer r.Shutdown(context.Background())
	failed := status.New(codes.Internal, "bad")
	for caps, want := range map[otlpstream.Caps][]otlpstream.Response{
		0: {{ID: 1}},
		otlpstream.CapCoalesce: {
			{ID: 1, IDs: []uint64{2, 3}},
			{ID: 4, Code: otlpstream.FailedNoneRetryable, Message: "bad"},
		},
	} {
		c := &recorded{}
		s := r.newSession(c, otlpstream.Traces, caps, transportStream, otlpstream.Limits{MaxMessage: 1 << 20})
		for id := uint64(1); id <= 6; id++ {
			a := answer{id: id}
			if id == 4 {
				a.status = failed
			}
			s.slots <- struct{}{}
			s.reply(a)
		}
		first, _ := s.answers.take()
		require.NoError(t, s.send(first))
		require.Equal(t, want, c.sent)
	}
}

// A broken stream ends when everything that was read has a response, although it cannot be sent: so no response may be
// forgotten.
func TestAnswersThatCannotBeSentAreNotWaitedFor(t *testing.T) {
	r := prepare(t, &pipeline{})
	defer r.Shutdown(context.Background())
	s := r.newSession(cut{&recorded{}}, otlpstream.Traces, otlpstream.CapCoalesce, transportStream, otlpstream.Limits{MaxMessage: 1 << 20})
	for _, st := range []*status.Status{nil, nil, status.New(codes.Internal, "bad"), nil} {
		s.slots <- struct{}{}
		s.reply(answer{status: st})
	}
	first, _ := s.answers.take()
	require.ErrorIs(t, s.send(first), io.ErrClosedPipe)
	require.Len(t, s.slots, len(s.answers.answers)-s.answers.first)
}

// cut is a broken stream.
type cut struct{ *recorded }

func (cut) Send(*otlpstream.Response) error { return io.ErrClosedPipe }

func TestTheFirstMessageMayBeARequest(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		c := dial(t, start(t, &pipeline{}), 0)
		c.export(1, "x")
		require.Equal(t, otlpstream.Response{ID: 1}, c.answer())
	})
}
