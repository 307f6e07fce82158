// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/godwit-otel/godwit/internal/certtest"
	"github.com/godwit-otel/godwit/internal/heads"
	"github.com/godwit-otel/godwit/internal/promwrite"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/metadatatest"
)

func TestEveryVersionInEveryEncoding(t *testing.T) {
	second := newV2().series(sample(0, 1000, 0), unspecified, "", "", "__name__", "x", "job", "j")
	bodyV2, err := second.Marshal()
	require.NoError(t, err)
	bodies := map[promwrite.Version][]byte{promwrite.V1: v1(t, []string{"__name__", "x", "job", "j"}), promwrite.V2: bodyV2}

	sink := new(consumertest.MetricsSink)
	url := start(t, settings(), sink)
	for version, body := range bodies {
		for _, encoding := range []promwrite.Encoding{promwrite.Snappy, promwrite.Zstd, promwrite.Identity} {
			got := post(t, url, version.ContentType(), encoding.String(), compress(t, encoding, body))
			require.Equal(t, 204, got.code, got.body)
			require.Equal(t, "1", got.header.Get(promwrite.HeaderSamplesWritten))
			require.Equal(t, "0", got.header.Get(promwrite.HeaderHistogramsWritten))
			require.Equal(t, "0", got.header.Get(promwrite.HeaderExemplarsWritten))
		}
	}
	require.Len(t, sink.AllMetrics(), 6)
	for _, md := range sink.AllMetrics() {
		require.Equal(t, []string{`{service.name=j} x{} = gauge 0 @0..1000 (unknown, "", "")`}, describe(md))
	}
}

func TestRequestsWithoutSeriesAreFine(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	got := postV2(t, start(t, settings(), sink), &writev2.Request{Symbols: []string{""}})
	require.Equal(t, 204, got.code)
	require.Equal(t, "0", got.header.Get(promwrite.HeaderSamplesWritten))
	require.Empty(t, sink.AllMetrics())
}

func TestWhatIsRefusedAndWhy(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	url := start(t, settings(), sink, func(cfg *Config) {
		cfg.HTTP.MaxRequestBodySize = 4 << 10
		cfg.MaxDecodedBodySize = 64 << 10
	})
	body := compress(t, promwrite.Snappy, v1(t, []string{"__name__", "x"}))
	f := func(contentType, encoding string, body []byte, code int, reason string) {
		t.Helper()
		got := post(t, url, contentType, encoding, body)
		require.Equal(t, code, got.code, got.body)
		require.Contains(t, got.body, reason)
		require.Zero(t, got.written)
		require.Empty(t, got.header.Get("Retry-After"))
	}
	const v1, v2 = promwrite.ContentTypeV1, promwrite.ContentTypeV2
	f("application/json", "snappy", body, 415, `cannot accept Content-Type "application/json"`)
	f(v1+";proto=io.prometheus.write.v3.Request", "snappy", body, 415, "cannot accept message")
	f(v1, "gzip", body, 415, `cannot accept Content-Encoding "gzip"`)
	f(v1, "zstd", body, 400, "cannot decompress")
	f(v1, "snappy", []byte("no snappy"), 400, "cannot decompress 9 bytes of snappy")
	f(v1, "identity", []byte("\x0a\x05"), 400, "cannot decode request of 2 bytes")
	f(v2, "identity", []byte("\x0a\x05"), 400, "cannot decode request of 2 bytes")
	f(v1, "identity", make([]byte, 5<<10), 413, "cannot read the body")
	f(v1, "snappy", compress(t, promwrite.Snappy, make([]byte, 65<<10)), 413, "decoded size is over the limit")
	f(v1, "zstd", compress(t, promwrite.Zstd, make([]byte, 65<<10)), 413, "decoded size is over the limit")
	require.Empty(t, sink.AllMetrics())

	resp, err := http.Get(url)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 405, resp.StatusCode)
	require.Equal(t, 404, post(t, url+"/elsewhere", v1, "snappy", body).code)
	http.DefaultClient.CloseIdleConnections()
}

// A small body may contain many points with many labels each.
func TestRequestsThatGrowTooMuchAreRefused(t *testing.T) {
	labels := []string{"__name__", "x"}
	for i := range 200 {
		labels = append(labels, strings.Repeat("a", i+1), "v")
	}
	ts := writev2.TimeSeries{Samples: make([]writev2.Sample, 20_000)}
	got := postV2(t, start(t, settings(), new(consumertest.MetricsSink)), &newV2().series(ts, gauge, "", "", labels...).Request)
	require.Equal(t, 413, got.code)
	require.Contains(t, got.body, "send smaller requests")
}

func TestThePipelinesErrorsDecideWhetherToSendAgain(t *testing.T) {
	f := func(err error, code int, retryAfter string) {
		t.Helper()
		url := start(t, settings(), consumertest.NewErr(err))
		got := postV2(t, url, &newV2().series(sample(1, 1, 0), gauge, "", "", "__name__", "x").Request)
		require.Equal(t, code, got.code)
		require.Equal(t, retryAfter, got.header.Get("Retry-After"))
		require.Equal(t, "cannot pass 1 points on: "+err.Error(), got.body)
		require.Equal(t, "0", got.header.Get(promwrite.HeaderSamplesWritten))
	}
	busy := errors.New("busy")
	f(busy, 503, "1")
	f(consumererror.NewPermanent(busy), 400, "")
	f(status.Error(codes.ResourceExhausted, "busy"), 429, "1")
	f(status.Error(codes.Unavailable, "busy"), 503, "1")
	f(consumererror.NewOTLPHTTPError(busy, 429), 429, "1")
}

func TestTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	set := settings()
	set.TelemetrySettings = tel.NewTelemetrySettings()
	url := start(t, set, consumertest.NewNop())
	orphan := writev2.TimeSeries{Exemplars: []writev2.Exemplar{{Value: 1, Timestamp: 1}}}
	postV2(t, url, &newV2().
		series(sample(1, 1, 0), gauge, "", "", "__name__", "x").
		series(orphan, gauge, "", "", "__name__", "y").Request)
	postV2(t, url, &newV2().
		series(sample(1, 1, 0), gauge, "", "", "a", "b").
		series(sample(1, -1, 0), gauge, "", "", "__name__", "x").
		series(native(writev2.Histogram{Schema: 99}), histogram, "", "", "__name__", "x").Request)
	post(t, url, "text/plain", "snappy", nil)

	count := func(n int64, attributes ...attribute.KeyValue) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(append(attributes, attribute.String("receiver", set.ID.String()))...)}
	}
	metadatatest.AssertEqualReceiverRemotewriteRequests(t, tel, []metricdata.DataPoint[int64]{
		count(1, attribute.String("version", "2.0.0"), attribute.Int("code", 204)),
		count(1, attribute.String("version", "2.0.0"), attribute.Int("code", 400)),
		count(1, attribute.String("version", "unknown"), attribute.Int("code", 415)),
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	metadatatest.AssertEqualReceiverRemotewriteRejectedItems(t, tel, []metricdata.DataPoint[int64]{
		count(1, attribute.String("reason", "labels")),
		count(1, attribute.String("reason", "timestamp")),
		count(1, attribute.String("reason", "histogram")),
		count(1, attribute.String("reason", "orphan_exemplar")),
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	accepted, err := tel.GetMetric("otelcol_receiver_accepted_metric_points")
	require.NoError(t, err)
	require.Equal(t, int64(1), accepted.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
}

// TestWhatComesAgainIsCountedOnce: a retry of a refused request contains its rejected items again, and those of other
// replicas.
func TestWhatComesAgainIsCountedOnce(t *testing.T) {
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	set := settings()
	set.TelemetrySettings = tel.NewTelemetrySettings()
	left := 5
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
		if left--; left >= 0 {
			return errors.New("busy")
		}
		return nil
	})
	require.NoError(t, err)
	url := start(t, set, next, func(c *Config) { c.Replicas.Deduplicate = true })
	req := &newV2().
		series(sample(1, 1, 0), gauge, "", "", "__name__", "x", "__replica__", "a", "cluster", "c").
		series(sample(1, 1, 0), gauge, "", "", "__name__", "x", "__replica__", "b", "cluster", "c").
		series(sample(1, -1, 0), gauge, "", "", "__name__", "y").Request
	for range 5 {
		require.Equal(t, http.StatusServiceUnavailable, postV2(t, url, req).code)
	}
	require.Equal(t, http.StatusBadRequest, postV2(t, url, req).code)
	own := attribute.String("receiver", set.ID.String())
	metadatatest.AssertEqualReceiverRemotewriteRejectedItems(t, tel, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(own, attribute.String("reason", "timestamp"))},
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	metadatatest.AssertEqualReceiverRemotewriteDeduplicatedPoints(t, tel, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(own)},
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
}

func TestShutdownWaitsForRequestsInFlight(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
		close(entered)
		<-leave
		return nil
	})
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	cfg.HTTP.NetAddr.Endpoint = "localhost:0"
	r, err := newReceiver(cfg, settings(), next)
	require.NoError(t, err)
	require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))

	body := compress(t, promwrite.Snappy, v1(t, []string{"__name__", "x"}))
	codes, stopped := make(chan int, 1), make(chan error, 1)
	go func() {
		resp, err := http.Post("http://"+r.address.String()+cfg.Path, promwrite.ContentTypeV1, bytes.NewReader(body))
		if err == nil {
			err = resp.Body.Close()
			codes <- resp.StatusCode
		}
		assert.NoError(t, err)
	}()
	<-entered
	expired, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, r.server.Shutdown(expired), context.Canceled, "the request is still in flight")
	go func() { stopped <- r.Shutdown(context.Background()) }()
	close(leave)
	require.Equal(t, 204, <-codes)
	require.NoError(t, <-stopped)
	http.DefaultClient.CloseIdleConnections()
}

func TestStartSaysWhatItCannotListenOn(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.HTTP.NetAddr.Endpoint = "localhost:99999"
	r, err := newReceiver(cfg, settings(), consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, r.Start(context.Background(), componenttest.NewNopHost()), "cannot listen on `endpoint` \"localhost:99999\"")
	require.NoError(t, r.Shutdown(context.Background()))
}

// FuzzHandler checks the promises of responses, for any input: with a 2xx, everything that it counts was passed on; any
// other response has a reason; and the data that was passed on can be marshalled.
func FuzzHandler(f *testing.F) {
	second, err := newV2().
		series(sample(1, 1000, 500), counter, "help", "seconds", "__name__", "a_total", "job", "ns/j", "instance", "i").
		series(native(writev2.Histogram{
			Count: &writev2.Histogram_CountInt{CountInt: 3}, Sum: 1, PositiveDeltas: []int64{1, 1},
			PositiveSpans: []writev2.BucketSpan{{Offset: 1, Length: 2}},
		}), histogram, "", "", "__name__", "h").
		series(native(writev2.Histogram{
			Count: &writev2.Histogram_CountFloat{CountFloat: 3}, Sum: 1, Schema: -53, CustomValues: []float64{1, 2}, PositiveCounts: []float64{1, 1},
			PositiveSpans: []writev2.BucketSpan{{Offset: 1, Length: 2}},
		}), histogram, "", "", "__name__", "h").Marshal()
	require.NoError(f, err)
	first := v1(f, []string{"__name__", "x", "job", "j"}, []string{"b", "1", "__name__", "x"})
	for _, encoding := range []promwrite.Encoding{promwrite.Snappy, promwrite.Zstd, promwrite.Identity} {
		f.Add(promwrite.ContentTypeV1, encoding.String(), compress(f, encoding, first))
		f.Add(promwrite.ContentTypeV2, encoding.String(), compress(f, encoding, second))
	}
	var passed int
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		passed = md.DataPointCount()
		_, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		return err
	})
	require.NoError(f, err)
	r := offline(f, settings(), next)
	f.Fuzz(func(t *testing.T, contentType, encoding string, body []byte) {
		passed = 0
		req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		req.Header.Set("Content-Type", contentType)
		req.Header.Set("Content-Encoding", encoding)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		written, _ := promwrite.ParseWritten(w.Header())
		require.Equal(t, passed, written.Samples+written.Histograms)
		switch w.Code {
		case 204:
			require.Empty(t, w.Body.String())
		case 400, 413, 415:
			require.NotEmpty(t, w.Body.String())
		default:
			t.Fatalf("answer %d: %s", w.Code, w.Body)
		}
	})
}

// offline returns a receiver without a server.
func offline(tb testing.TB, set receiver.Settings, next consumer.Metrics) *remoteWriteReceiver {
	r, err := newReceiver(createDefaultConfig().(*Config), set, next)
	require.NoError(tb, err)
	r.cfg.MaxDecodedBodySize = 1 << 20
	r.prepare()
	return r
}

// The write timeout does not include the time of the pipeline: senders without a response would retry what was
// accepted. Over TLS, net/http serves, and ends a request of HTTP/2 after that time.
func TestASlowPipelineIsAnsweredFor(t *testing.T) {
	certificate, key := certtest.SelfSigned(t)
	secure := map[string]any{"tls": map[string]any{"cert_pem": certificate, "key_pem": key}}
	f := func(scheme string, protocol int, with map[string]any) {
		t.Helper()
		const timeout = time.Second
		next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { time.Sleep(5 * timeout / 4); return nil })
		require.NoError(t, err)
		_, address := running(t, next, func(c *Config) {
			c.HTTP.WriteTimeout = timeout
			require.NoError(t, confmap.NewFromStringMap(with).Unmarshal(&c.HTTP))
		})
		series := newV2().series(sample(1, 1, 0), writev2.Metadata_METRIC_TYPE_GAUGE, "", "", "__name__", "slow")
		body, err := series.Marshal()
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, scheme+strings.TrimPrefix(address, "http"), bytes.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", promwrite.ContentTypeV2)
		req.Header.Set("Content-Encoding", "identity")
		transport := &http.Transport{ForceAttemptHTTP2: protocol == 2, TLSClientConfig: &tls.Config{RootCAs: certtest.Pool(t, certificate)}}
		defer transport.CloseIdleConnections()
		response, err := transport.RoundTrip(req)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusNoContent, response.StatusCode)
		require.Equal(t, protocol, response.ProtoMajor)
	}
	f("http", 1, nil)
	f("https", 1, secure)
	f("https", 2, secure)
}

// A head that never ends must not take net/http's megabyte for each connection: behind TLS they share no limit.
func TestHeadsBehindTLSAreLimited(t *testing.T) {
	certificate, key := certtest.SelfSigned(t)
	secure := map[string]any{"tls": map[string]any{"cert_pem": certificate, "key_pem": key}}
	_, address := running(t, consumertest.NewNop(), func(c *Config) {
		require.NoError(t, confmap.NewFromStringMap(secure).Unmarshal(&c.HTTP))
	})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: certtest.Pool(t, certificate)}}
	defer transport.CloseIdleConnections()
	for length, want := range map[int]int{heads.Largest / 2: http.StatusNoContent, 2 * heads.Largest: http.StatusRequestHeaderFieldsTooLarge} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https"+strings.TrimPrefix(address, "http"), http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Content-Type", promwrite.ContentTypeV2)
		req.Header.Set("Content-Encoding", "identity")
		req.Header.Set("X-Long", strings.Repeat("a", length))
		response, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode)
	}
}

// A large body keeps memory that those in all the slots may wait for.
func TestALargeBodyDoesNotWaitForASlot(t *testing.T) {
	r, address := running(t, consumertest.NewNop(), func(c *Config) { c.MaxMemory = minMemory })
	for range cap(r.slots) {
		r.slots <- struct{}{}
	}
	body, err := (&writev2.Request{Symbols: []string{"", strings.Repeat("a", 3<<19)}}).Marshal()
	require.NoError(t, err)
	require.True(t, r.memory.InTurn(len(body)))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", promwrite.ContentTypeV2)
	req.Header.Set("Content-Encoding", "identity")
	req.Close = true
	response, err := (&http.Client{Timeout: time.Minute}).Do(req)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusNoContent, response.StatusCode)
}
