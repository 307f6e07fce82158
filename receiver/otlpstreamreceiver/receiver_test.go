// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestS01UnaryAndStreamingClientsShareOnePort(t *testing.T) {
	p := &pipeline{}
	r := start(t, p)
	cc := grpcClient(t, r)
	var done sync.WaitGroup
	done.Go(func() {
		c := openGRPC(t, cc, 0, otlpstream.Traces.StreamMethod())
		for id := uint64(1); id <= 50; id++ {
			c.export(id, "stream")
		}
		c.answers(50)
	})
	done.Go(func() {
		for range 50 {
			_, err := ptraceotlp.NewGRPCClient(cc).Export(testContext(t), ptraceotlp.NewExportRequestFromTraces(spanNamed("unary")))
			require.NoError(t, err)
		}
	})
	done.Wait()
	require.Len(t, p.seen(), 100)
}

func TestS02UnaryAnswerCarriesTheID(t *testing.T) {
	p := &pipeline{}
	cc := grpcClient(t, start(t, p))
	_, reference := otlpstream.Traces.ReferenceServices()
	for _, service := range []string{otlpstream.UnaryService, reference} {
		var response otlpstream.Response
		err := cc.Invoke(testContext(t), "/"+service+"/ExportTraces", &otlpstream.Request{ID: 7, Data: payload(t, "x")}, &response,
			grpc.ForceCodecV2(otlpstream.Codec()))
		require.NoError(t, err)
		require.Equal(t, uint64(7), response.ID)
		require.Equal(t, otlpstream.Success, response.Code)
	}
	require.Len(t, p.seen(), 2)
}

func TestS03S04EachRequestIsAcknowledgedOnceByItsID(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p := &pipeline{}
		c := dial(t, start(t, p), otlpstream.AllCaps)
		const n = 500
		go func() {
			for id := uint64(1); id <= n; id++ {
				c.export(id, numbered(id))
			}
		}()
		for id, response := range c.answers(n) {
			require.Equal(t, otlpstream.Success, response.Code)
			require.LessOrEqual(t, id, uint64(n))
		}
		require.NoError(t, c.finish())
		st, more := c.end()
		require.Nil(t, st)
		require.Empty(t, more)
		require.Len(t, p.seen(), n)
	})
}

func TestS05ASlowBatchDoesNotHoldUpLaterAcks(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		release := make(chan struct{})
		p := &pipeline{do: func(_ context.Context, name string) error {
			if name == numbered(1) {
				<-release
			}
			return nil
		}}
		c := dial(t, start(t, p), 0)
		for id := uint64(1); id <= 20; id++ {
			c.export(id, numbered(id))
		}
		require.NotContains(t, c.answers(19), uint64(1))
		close(release)
		require.Equal(t, uint64(1), c.answer().ID)
	})
}

func TestS06AnEmptyRequestIsASuccess(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p := &pipeline{}
		c := dial(t, start(t, p), 0)
		require.NoError(t, c.send(&otlpstream.Request{ID: 7}))
		require.Equal(t, otlpstream.Response{ID: 7}, c.answer())
		require.Empty(t, p.seen())
	})
}

func TestS07ResultsComeFromThePipeline(t *testing.T) {
	withInfo := otlpstream.Busy("come back", 3*time.Second).Err()
	for name, test := range map[string]struct {
		err   error
		code  otlpstream.ResultCode
		unary codes.Code
		http  int
	}{
		"ok":                  {nil, otlpstream.Success, codes.OK, 200},
		"plain":               {errors.New("busy"), otlpstream.FailedRetryable, codes.Unavailable, 503},
		"permanent":           {consumererror.NewPermanent(errors.New("bad")), otlpstream.FailedNoneRetryable, codes.Internal, 500},
		"status":              {status.Error(codes.InvalidArgument, "bad"), otlpstream.FailedNoneRetryable, codes.InvalidArgument, 400},
		"denied":              {status.Error(codes.PermissionDenied, "no"), otlpstream.FailedNoneRetryable, codes.PermissionDenied, 403},
		"exhausted":           {status.Error(codes.ResourceExhausted, "full"), otlpstream.FailedRetryable, codes.ResourceExhausted, 429},
		"retry info":          {withInfo, otlpstream.FailedRetryable, codes.Unavailable, 503},
		"unknown":             {status.Error(codes.Unknown, "?"), otlpstream.FailedRetryable, codes.Unavailable, 503},
		"permanent transient": {consumererror.NewPermanent(status.Error(codes.Unavailable, "x")), otlpstream.FailedNoneRetryable, codes.Internal, 500},
		"permanent unknown":   {consumererror.NewPermanent(status.Error(codes.Unknown, "x")), otlpstream.FailedNoneRetryable, codes.Internal, 500},
		"canceled":            {context.Canceled, otlpstream.FailedRetryable, codes.Unavailable, 503},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, &pipeline{do: func(context.Context, string) error { return test.err }})
			bothTransports(t, func(t *testing.T, dial dialer) {
				c := dial(t, r, 0)
				c.export(1, "x")
				response := c.answer()
				require.Equal(t, test.code, response.Code)
				require.Equal(t, test.err != nil, response.Message != "")
				if name == "retry info" {
					require.Equal(t, 3*time.Second, response.Delay)
				}
			})
			_, err := ptraceotlp.NewGRPCClient(grpcClient(t, r)).Export(testContext(t), ptraceotlp.NewExportRequestFromTraces(spanNamed("x")))
			require.Equal(t, test.unary, status.Code(err))
			data, err := ptraceotlp.NewExportRequestFromTraces(spanNamed("x")).MarshalJSON()
			require.NoError(t, err)
			code, header, _ := post(t, r, "/v1/traces", "application/json", data)
			require.Equal(t, test.http, code)
			if name == "retry info" {
				require.Equal(t, "3", header.Get("Retry-After"))
			}
		})
	}
}

func TestS07WhatCannotBeDecodedIsNotRetryable(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p := &pipeline{}
		r := start(t, p)
		c := dial(t, r, 0)
		require.NoError(t, c.send(&otlpstream.Request{ID: 1, Data: []byte{0x12, 2, 0xff, 0xff}}))
		require.Equal(t, otlpstream.FailedNoneRetryable, c.answer().Code, "the payload")
		require.NoError(t, c.raw([]byte{0x08, 2, 0x12, 200}))
		response := c.answer()
		require.Equal(t, otlpstream.FailedNoneRetryable, response.Code, "the message")
		require.Equal(t, uint64(2), response.ID)
		c.export(3, "fine")
		require.Equal(t, otlpstream.Response{ID: 3}, c.answer(), "the stream lives on")

		require.NoError(t, c.raw([]byte{0xff}))
		st, _ := c.end()
		require.NotNil(t, st, "nobody to answer to")
	})
}

func post(tb testing.TB, r *sharedReceiver, path, contentType string, body []byte) (int, http.Header, string) {
	req, err := http.NewRequestWithContext(testContext(tb), http.MethodPost, "http://"+r.httpAddr+path, bytes.NewReader(body))
	require.NoError(tb, err)
	req.Header.Set("Content-Type", contentType)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	require.NoError(tb, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(tb, err)
	return resp.StatusCode, resp.Header, string(text)
}

// stuck fills a receiver with one batch that does not leave until released.
func stuck(t *testing.T, change ...func(*Config)) (r *sharedReceiver, release func()) {
	gate := make(chan struct{})
	p := &pipeline{do: func(_ context.Context, name string) error {
		if name == "first" {
			<-gate
		}
		return nil
	}}
	r = start(t, p, append(change, func(cfg *Config) { cfg.InFlight.Bytes = 100 })...)
	c := dialGRPC(t, r, otlpstream.AllCaps)
	c.export(1, "first")
	eventually(t, func() bool { return len(p.seen()) == 1 }, "it arrives")
	once := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(once)
	return r, once
}

func TestS08S09S10OverloadIsSignalled(t *testing.T) {
	r, release := stuck(t)
	big := string(make([]byte, 100))

	bothTransports(t, func(t *testing.T, dial dialer) {
		capable := dial(t, r, otlpstream.CapDelay)
		capable.export(1, big)
		response := capable.answer()
		require.Equal(t, otlpstream.FailedRetryable, response.Code)
		require.GreaterOrEqual(t, response.Delay, minDelay)
		require.NoError(t, capable.send(&otlpstream.Request{ID: 2}))
		require.Equal(t, otlpstream.Response{ID: 2}, capable.answer(), "the stream goes on")

		plain := dial(t, r, 0)
		plain.export(1, big)
		require.Equal(t, otlpstream.FailedRetryable, plain.answer().Code)
		st, _ := plain.end()
		require.Equal(t, codes.Unavailable, st.Code())
		delay, ok := otlpstream.RetryDelay(st)
		require.True(t, ok)
		require.GreaterOrEqual(t, delay, minDelay)
	})

	_, err := ptraceotlp.NewGRPCClient(grpcClient(t, r)).Export(testContext(t), ptraceotlp.NewExportRequestFromTraces(spanNamed(big)))
	require.Equal(t, codes.Unavailable, status.Code(err))
	_, ok := otlpstream.RetryDelay(status.Convert(err))
	require.True(t, ok)

	data, err := ptraceotlp.NewExportRequestFromTraces(spanNamed(big)).MarshalProto()
	require.NoError(t, err)
	code, header, _ := post(t, r, "/v1/traces", "application/x-protobuf", data)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.NotEmpty(t, header.Get("Retry-After"))

	release()
	eventually(t, func() bool { return r.admission.inFlight() == 0 }, "it drains")
	c := dialGRPC(t, r, 0)
	c.export(9, big)
	require.Equal(t, otlpstream.Response{ID: 9}, c.answer())
}

func TestS11TheDelayFollowsHowLongRequestsStay(t *testing.T) {
	a := admission{limit: 1000}
	now := time.Unix(1000, 0)
	refused := func() time.Duration {
		wait, ok := a.acquire(1000, now)
		require.False(t, ok)
		return wait
	}
	_, ok := a.acquire(5000, now)
	require.True(t, ok, "alone it goes, however large")
	require.Equal(t, minDelay, refused(), "nothing is known yet")
	now = now.Add(2 * time.Second)
	require.Equal(t, 2*time.Second, refused(), "it stands still")
	now = now.Add(time.Hour)
	require.Equal(t, maxDelay, refused(), "it is stuck")
	a.release(4000, now.Add(-8*time.Second), now)
	require.Equal(t, time.Second, refused(), "it moves, if not fast")
	for range 100 {
		a.release(1, now, now)
	}
	require.Equal(t, minDelay, refused(), "it has recovered")
	a.release(900, now, now)
	require.Zero(t, a.inFlight())
	_, ok = a.acquire(1000, now)
	require.True(t, ok)
}

func TestS12S14StreamsEndAtTheirLimitsAndNothingIsResent(t *testing.T) {
	limits := map[string]func(*Config){
		"requests": func(cfg *Config) { cfg.Streams.MaxRequests = 10 },
		"age":      func(cfg *Config) { cfg.Streams.MaxAge = 50 * time.Millisecond },
	}
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			bothTransports(t, func(t *testing.T, dial dialer) {
				p := &pipeline{}
				c := dial(t, start(t, p, limit), otlpstream.AllCaps)
				got := map[uint64]bool{}
				id := uint64(0)
				for drain := false; !drain; {
					for range 10 {
						id++
						c.export(id, numbered(id))
					}
					for len(got) < int(id) {
						response := c.answer()
						if response.Drain {
							drain = true
							continue
						}
						for _, id := range append(response.IDs, response.ID) {
							got[id] = true
						}
					}
				}
				id++
				c.export(id, "was on its way")
				require.NoError(t, c.finish())
				st, more := c.end()
				require.Nil(t, st, "the client closed it")
				require.Equal(t, []otlpstream.Response{{ID: id, IDs: more[0].IDs}}, more)
				require.Len(t, p.seen(), int(id))
			})
		})
	}
}

func TestS14PlainClientsGetAllTheirAcksBeforeTheEnd(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		release := make(chan struct{})
		p := &pipeline{do: func(context.Context, string) error { <-release; return nil }}
		c := dial(t, start(t, p, func(cfg *Config) { cfg.Streams.MaxRequests = 10 }), 0)
		for id := uint64(1); id <= 10; id++ {
			c.export(id, numbered(id))
		}
		eventually(t, func() bool { return len(p.seen()) == 10 }, "all are in")
		close(release)
		st, answers := c.end()
		require.Equal(t, codes.Unavailable, st.Code())
		acked := map[uint64]bool{}
		for _, a := range answers {
			require.Equal(t, otlpstream.Success, max(a.Code, otlpstream.Success)*otlpstream.ResultCode(min(1, a.ID)))
			if a.ID != 0 {
				acked[a.ID] = true
			}
		}
		require.Len(t, acked, 10)
	})
}

func TestS14AClientThatDoesNotFinishIsCutOffAfterTheDrainTimeout(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		c := dial(t, start(t, &pipeline{}, func(cfg *Config) {
			cfg.Streams.MaxRequests = 1
			cfg.DrainTimeout = 50 * time.Millisecond
		}), otlpstream.AllCaps)
		c.export(1, "x")
		st, answers := c.end()
		require.Equal(t, codes.Unavailable, st.Code())
		require.GreaterOrEqual(t, len(answers), 2)
	})
}

func TestS13ServersKeepStreamsLongerThanClients(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	const clientAge, clientRequests = 30 * time.Second, 1000 // the specification's reference
	require.Greater(t, cfg.Streams.MaxAge, clientAge)
	require.True(t, cfg.Streams.MaxRequests == 0 || cfg.Streams.MaxRequests > clientRequests)
}

func TestV02StandardOTLPWorksOnTheSamePort(t *testing.T) {
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

func TestV01TheReferenceServiceIsServed(t *testing.T) {
	p := &pipeline{}
	r := start(t, p)
	stream, _ := otlpstream.Traces.ReferenceServices()
	c := openGRPC(t, grpcClient(t, r), 0, "/"+stream+"/ExportTraces")
	// By hand, with no more than the specification has.
	message := protowire.AppendVarint([]byte{0x08}, 300)
	message = append(message, payload(t, "by hand")...)
	require.NoError(t, c.raw(message))
	require.Equal(t, otlpstream.Response{ID: 300}, c.answer())
	require.Equal(t, []string{"by hand"}, p.seen())
}

func TestV05V06AcksAreCoalescedOnlyForThoseWhoAsked(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		for _, caps := range []otlpstream.Caps{0, otlpstream.CapCoalesce} {
			gate := make(chan struct{})
			p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
			c := dial(t, start(t, p), caps)
			require.Equal(t, otlpstream.AllCaps.String(), c.header(otlpstream.HeaderCaps))
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

// recorded is the sending half of a stream.
type recorded struct{ sent []otlpstream.Response }

func (*recorded) Recv(*otlpstream.Request) error { return io.EOF }

func (c *recorded) Send(response *otlpstream.Response) error {
	c.sent = append(c.sent, *response)
	return nil
}

func TestV06OneMessageAcksAllThatIsReady(t *testing.T) {
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
		s := r.newSession(c, otlpstream.Traces, caps, transportStream)
		for id := uint64(1); id <= 6; id++ {
			a := answer{id: id}
			if id == 4 {
				a.status = failed
			}
			s.slots <- struct{}{}
			s.reply(a)
		}
		require.NoError(t, s.send(<-s.answers))
		require.Equal(t, want, c.sent)
	}
}

func TestV07TheFirstMessageMayBeARequest(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		c := dial(t, start(t, &pipeline{}), 0)
		c.export(1, "x")
		require.Equal(t, otlpstream.Response{ID: 1}, c.answer())
	})
}

func TestShutdownFinishesWhatIsIn(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		gate := make(chan struct{})
		p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
		r := start(t, p)
		capable, plain := dial(t, r, otlpstream.AllCaps), dial(t, r, 0)
		capable.export(1, "x")
		plain.export(1, "y")
		eventually(t, func() bool { return len(p.seen()) == 2 }, "both are in")
		stopped := make(chan error)
		go func() { stopped <- r.Shutdown(context.Background()) }()
		require.True(t, capable.answer().Drain)
		require.NoError(t, capable.finish())
		close(gate)
		st, answers := capable.end()
		require.Nil(t, st)
		require.Equal(t, []otlpstream.Response{{ID: 1}}, answers)
		st, answers = plain.end()
		require.Equal(t, codes.Unavailable, st.Code())
		require.Equal(t, uint64(1), answers[0].ID)
		require.NoError(t, <-stopped)
		require.NoError(t, r.Shutdown(context.Background()), "twice")
	})
}

func TestShutdownHasADeadline(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p := &pipeline{do: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }}
		r := start(t, p, func(cfg *Config) { cfg.DrainTimeout = 50 * time.Millisecond })
		c := dial(t, r, otlpstream.AllCaps)
		c.export(1, "x")
		eventually(t, func() bool { return len(p.seen()) == 1 }, "it is in")
		require.NoError(t, r.Shutdown(context.Background()))
	})
}

func TestAStreamStaysWithinItsWindow(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		gate := make(chan struct{})
		p := &pipeline{do: func(context.Context, string) error { <-gate; return nil }}
		c := dial(t, start(t, p, func(cfg *Config) { cfg.InFlight.RequestsPerStream = 3 }), 0)
		for id := uint64(1); id <= 10; id++ {
			c.export(id, "x")
		}
		eventually(t, func() bool { return len(p.seen()) == 3 }, "three are taken")
		require.Never(t, func() bool { return len(p.seen()) > 3 }, 50*time.Millisecond, time.Millisecond)
		close(gate)
		c.answers(10)
	})
}

func TestStreamsAreBounded(t *testing.T) {
	r := start(t, &pipeline{}, func(cfg *Config) { cfg.Streams.Max = 1 })
	first := dialGRPC(t, r, 0)
	first.export(1, "x")
	first.answer()
	st, _ := dialGRPC(t, r, 0).end()
	require.Equal(t, codes.Unavailable, st.Code())
	code, _, _ := post(t, r, otlpstream.Traces.WebSocketPath(), "", nil)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.NoError(t, first.finish())
	first.end()
	eventually(t, func() bool {
		c := dialGRPC(t, r, 0)
		return c.send(&otlpstream.Request{ID: 1}) == nil && c.recv(new(otlpstream.Response)) == nil
	}, "the place is free again")
}

func TestTooLargeMessages(t *testing.T) {
	small := func(cfg *Config) {
		grpcOf(cfg).MaxRecvMsgSizeMiB = 1
		httpOf(cfg).MaxRequestBodySize = 1 << 20
	}
	r := start(t, &pipeline{}, small)
	bothTransports(t, func(t *testing.T, dial dialer) {
		c := dial(t, r, 0)
		require.Equal(t, "1048576", c.header(otlpstream.HeaderMaxMessage))
		_ = c.send(&otlpstream.Request{ID: 1, Data: payload(t, string(make([]byte, 1<<20+1)))})
		st, answers := c.end()
		// WebSocket compresses, so there the limit is found out when the ID is not known yet.
		require.NotNil(t, st)
		require.LessOrEqual(t, len(answers), 1)
	})
	code, _, _ := post(t, r, "/v1/traces", "application/x-protobuf", make([]byte, 1<<20+1))
	require.GreaterOrEqual(t, code, 400)
}

func TestHostileClients(t *testing.T) {
	p := &pipeline{}
	r := start(t, p)
	bothTransports(t, func(t *testing.T, dial dialer) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			c := dial(t, r, otlpstream.Caps(random.IntN(8)))
			for range random.IntN(5) {
				garbage := make([]byte, random.IntN(100))
				for i := range garbage {
					garbage[i] = byte(random.Uint32())
				}
				_ = c.raw(garbage)
			}
			if random.IntN(2) == 0 {
				_ = c.finish()
				c.end()
			}
		}
		c := dial(t, r, 0)
		c.export(1, "still there")
		require.Equal(t, otlpstream.Response{ID: 1}, c.answer())
	})
	eventually(t, func() bool { return r.admission.inFlight() == 0 }, "nothing is left behind")
}

func TestClientMetadataReachesThePipeline(t *testing.T) {
	p := &pipeline{}
	r := start(t, p, func(cfg *Config) { grpcOf(cfg).IncludeMetadata = true; httpOf(cfg).IncludeMetadata = true })
	bothTransports(t, func(t *testing.T, dial dialer) {
		c := dial(t, r, otlpstream.AllCaps)
		c.export(1, "x")
		c.answer()
		p.mu.Lock()
		defer p.mu.Unlock()
		info := client.FromContext(p.ctxs[len(p.ctxs)-1])
		require.Equal(t, []string{otlpstream.AllCaps.String()}, info.Metadata.Get(otlpstream.HeaderCaps))
		require.NotNil(t, info.Addr)
	})
}

func TestHTTPSaysWhatIsWrong(t *testing.T) {
	r := start(t, &pipeline{})
	code, _, _ := post(t, r, "/v1/traces", "text/plain", nil)
	require.Equal(t, http.StatusUnsupportedMediaType, code)
	code, _, body := post(t, r, "/v1/traces", "application/json", []byte("{"))
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "cannot decode 1 bytes of json")
	code, _, _ = post(t, r, "/v1/traces", "application/x-protobuf", []byte{0xff})
	require.Equal(t, http.StatusBadRequest, code)
	code, _, _ = post(t, r, otlpstream.Traces.WebSocketPath(), "", nil)
	require.Equal(t, http.StatusUpgradeRequired, code)
	resp, err := http.Get("http://" + r.httpAddr + "/v1/traces")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()
}

func TestOnlyPipelinesThatExistAreServed(t *testing.T) {
	cfg := testConfig()
	traces, err := NewFactory().CreateTraces(context.Background(), settings(), cfg, &pipeline{})
	require.NoError(t, err)
	r := traces.(*sharedReceiver)
	require.NoError(t, r.Start(context.Background(), nopHost))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	_, err = plogotlp.NewGRPCClient(grpcClient(t, r)).Export(testContext(t), plogotlp.NewExportRequest())
	require.Equal(t, codes.Unimplemented, status.Code(err))
	st, _ := openGRPC(t, grpcClient(t, r), 0, otlpstream.Logs.StreamMethod()).end()
	require.Equal(t, codes.Unimplemented, st.Code())
	code, _, _ := post(t, r, "/v1/logs", "application/json", []byte("{}"))
	require.Equal(t, http.StatusNotFound, code)
}

func TestAPortThatIsTakenIsAnError(t *testing.T) {
	first := start(t, &pipeline{})
	for key, taken := range map[string]func(*Config){
		"grpc": func(cfg *Config) { grpcOf(cfg).NetAddr.Endpoint = first.grpcAddr },
		"http": func(cfg *Config) { httpOf(cfg).NetAddr.Endpoint = first.httpAddr },
	} {
		r := prepare(t, &pipeline{}, taken)
		require.ErrorContains(t, r.Start(context.Background(), nopHost), fmt.Sprintf("`protocols::%s::endpoint`", key))
		require.NoError(t, r.Shutdown(context.Background()))
	}
}
