// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/certtest"
	"github.com/godwit-otel/godwit/internal/otlpstream"
)

func TestUnaryAndStreamingClientsShareOnePort(t *testing.T) {
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

func TestWebSocketAndHTTPClientsShareOnePort(t *testing.T) {
	p := &pipeline{}
	r := start(t, p)
	data, err := ptraceotlp.NewExportRequestFromTraces(spanNamed("unary")).MarshalProto()
	require.NoError(t, err)
	var done sync.WaitGroup
	done.Go(func() {
		c := dialWebSocket(t, r, 0)
		for id := uint64(1); id <= 50; id++ {
			c.export(id, "stream")
		}
		c.answers(50)
	})
	done.Go(func() {
		for range 50 {
			code, _, _ := post(t, r, "/v1/traces", "application/x-protobuf", data)
			require.Equal(t, http.StatusOK, code)
		}
	})
	done.Wait()
	require.Len(t, p.seen(), 100)
}

func TestUnaryAnswerCarriesTheID(t *testing.T) {
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

func TestEachRequestIsAcknowledgedOnceByItsID(t *testing.T) {
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

func TestASlowBatchDoesNotHoldUpLaterAcks(t *testing.T) {
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

func TestAnEmptyRequestIsASuccess(t *testing.T) {
	bothTransports(t, func(t *testing.T, dial dialer) {
		p := &pipeline{}
		c := dial(t, start(t, p), 0)
		require.NoError(t, c.send(&otlpstream.Request{ID: 7}))
		require.Equal(t, otlpstream.Response{ID: 7}, c.answer())
		require.Empty(t, p.seen())
	})
}

func TestResultsComeFromThePipeline(t *testing.T) {
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

func TestWhatCannotBeDecodedIsNotRetryable(t *testing.T) {
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

// The write timeout does not include the time of the pipeline: clients without a response would retry data that was
// accepted. Over TLS the client speaks HTTP/2.
func TestASlowPipelineIsAnsweredFor(t *testing.T) {
	certificate, key := certtest.SelfSigned(t)
	f := func(scheme string, protocol int, with map[string]any) {
		t.Helper()
		const timeout = time.Second
		p := &pipeline{do: func(context.Context, string) error { time.Sleep(5 * timeout / 4); return nil }}
		r := start(t, p, func(cfg *Config) {
			httpOf(cfg).WriteTimeout = timeout
			require.NoError(t, confmap.NewFromStringMap(with).Unmarshal(httpOf(cfg)))
		})
		body, err := ptraceotlp.NewExportRequestFromTraces(spanNamed("slow")).MarshalProto()
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(testContext(t), http.MethodPost, scheme+"://"+r.httpAddr+otlpstream.Traces.HTTPPath(), bytes.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/x-protobuf")
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: certtest.Pool(t, certificate)}}
		defer transport.CloseIdleConnections()
		response, err := transport.RoundTrip(req)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, protocol, response.ProtoMajor)
	}
	f("http", 1, nil)
	f("https", 2, map[string]any{"tls": map[string]any{"cert_pem": certificate, "key_pem": key}})
}
