// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstreamreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confighttp/xconfighttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/godwit-otel/godwit/internal/audience"
	"github.com/godwit-otel/godwit/internal/heads"
	"github.com/godwit-otel/godwit/internal/otlpstream"
	"github.com/godwit-otel/godwit/receiver/otlpstreamreceiver/internal/arrivals"
)

func (r *otlpReceiver) startHTTP(ctx context.Context, host component.Host) error {
	cfg := r.cfg.Protocols.HTTP.Get()
	var err error
	if r.frames, err = otlpstream.NewFrames(int(cfg.MaxRequestBodySize)); err != nil {
		return err
	}
	mux := http.NewServeMux()
	for _, signal := range otlpstream.Signals() {
		if !r.pipelines.has(signal) {
			continue
		}
		mux.HandleFunc(signal.HTTPPath(), func(w http.ResponseWriter, req *http.Request) { r.serveHTTP(w, req, signal) })
		mux.HandleFunc(signal.WebSocketPath(), func(w http.ResponseWriter, req *http.Request) { r.serveWebSocket(w, req, signal) })
	}
	options := []confighttp.ToServerOption{confighttp.WithErrorHandler(httpError)}
	if cfg.CompressionAlgorithms == nil || slices.Contains(cfg.CompressionAlgorithms, zstd) {
		options = append(options, confighttp.WithDecoder(zstd, inflates(r.frames)))
	}
	if audience.None(r.settings.TelemetrySettings, otelhttp.ScopeName) {
		// Spans that nobody records would take a tenth of the time of a request of a thousand points.
		silent := otelhttp.WithFilter(func(*http.Request) bool { return false })
		options = append(options, xconfighttp.WithOtelHTTPOptions(silent))
	}
	r.http, err = cfg.ToServer(ctx, host.GetExtensions(), r.settings.TelemetrySettings, mux, options...)
	if err != nil {
		return fmt.Errorf("cannot make the HTTP server: %w", err)
	}
	r.http.Handler = r.counting(r.http.Handler)
	listener, err := cfg.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("cannot listen on `protocols::http::endpoint` %q: %w", cfg.NetAddr.Endpoint, err)
	}
	r.httpAddr = listener.Addr().String()
	limited := heads.Limit(r.http, listener)
	r.servers.Go(func() {
		if err := r.http.Serve(limited); err != nil && !errors.Is(err, http.ErrServerClosed) {
			r.fatal(host, err)
		}
	})
	return nil
}

// bodies are buffers for requests, which are decoded into other memory.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxBody is the largest buffer that is kept, so that one giant request does not hold memory for ever.
const maxBody = 4 << 20

func putBody(b *bytes.Buffer) {
	if b.Cap() <= maxBody {
		bodies.Put(b)
	}
}

// serveHTTP serves OTLP/HTTP.
func (r *otlpReceiver) serveHTTP(w http.ResponseWriter, req *http.Request, signal otlpstream.Signal) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}
	f, ok := formatOf(req)
	if !ok {
		http.Error(w, "use application/x-protobuf or application/json", http.StatusUnsupportedMediaType)
		return
	}
	body := bodies.Get().(*bytes.Buffer)
	defer putBody(body)
	body.Reset()
	x := arrivalOf(req.Context())
	if _, err := body.ReadFrom(arriving{req.Body, x}); err != nil {
		r.unreadable(w, req, f, err)
		return
	}
	x.DoneAll() // from now on it is admitted, or not
	// The server's time to write runs since the request began. A pipeline that takes longer has the data, and without the answer it would come again.
	answer, timeout := http.NewResponseController(w), r.cfg.Protocols.HTTP.Get().WriteTimeout
	if timeout > 0 && req.ProtoMajor > 1 {
		_ = answer.SetWriteDeadline(time.Time{}) // over HTTP/2 the request ends with its time, whatever is being written
	}
	st, rejected, refused := r.takeUnary(req.Context(), signal, transportHTTP, f, &otlpstream.Request{Data: body.Bytes()})
	if timeout > 0 {
		_ = answer.SetWriteDeadline(time.Now().Add(timeout))
	}
	r.counts.count(transportHTTP, resultName(resultOf(st), refused, rejected), 1)
	if st != nil {
		writeStatus(w, f, httpCode(st), st)
		return
	}
	w.Header().Set("Content-Type", f.contentType())
	switch {
	case rejected.items > 0:
		if message, err := rejected.response(signal, f); err == nil { // marshalling to memory cannot fail
			_, _ = w.Write(message)
		}
	case f == formatJSON:
		_, _ = io.WriteString(w, "{}")
	}
}

// arriving is a body that counts as it comes to be in memory.
type arriving struct {
	io.Reader

	x *arrivals.Arrival
}

func (a arriving) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		if fault := a.x.Come(n); fault != nil {
			return n, fault
		}
	}
	return n, err
}

// unreadable answers a request whose body could not be read.
func (r *otlpReceiver) unreadable(w http.ResponseWriter, req *http.Request, f format, err error) {
	st, code, result := status.New(codes.InvalidArgument, fmt.Sprintf("cannot read the body: %v", err)), http.StatusBadRequest, otlpstream.FailedNoneRetryable.String()
	tooLarge := new(http.MaxBytesError)
	switch {
	case arrivalOf(req.Context()).IsOver():
		st, code, result = otlpstream.Busy(arrivals.ErrCut.Error(), placeDelay), http.StatusServiceUnavailable, overload
	case errors.As(err, &tooLarge):
		code = http.StatusRequestEntityTooLarge
	}
	r.counts.count(transportHTTP, result, 1)
	r.pipelines.traffic.fail(req.Context(), code, 0, st.Message())
	writeStatus(w, f, code, st)
}

func formatOf(req *http.Request) (format, bool) {
	mediaType, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	switch mediaType {
	case formatProto.contentType():
		return formatProto, true
	case formatJSON.contentType():
		return formatJSON, true
	}
	return formatJSON, false
}

func (f format) contentType() string {
	if f == formatJSON {
		return "application/json"
	}
	return "application/x-protobuf"
}

// httpCode is the status code that makes an OTLP client do what the status says: 429 and 503 are sent again.
func httpCode(st *status.Status) int {
	switch st.Code() {
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	}
	if retryable(st) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// httpError answers errors of the HTTP server itself, such as an unknown compression.
func httpError(w http.ResponseWriter, req *http.Request, message string, code int) {
	f, _ := formatOf(req)
	grpcCode := codes.Unknown
	switch code {
	case http.StatusBadRequest:
		grpcCode = codes.InvalidArgument
	case http.StatusUnauthorized:
		grpcCode = codes.Unauthenticated
	case http.StatusForbidden:
		grpcCode = codes.PermissionDenied
	}
	writeStatus(w, f, code, status.New(grpcCode, message))
}

func writeStatus(w http.ResponseWriter, f format, code int, st *status.Status) {
	if delay, ok := otlpstream.RetryDelay(st); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(delay.Seconds()))))
	}
	var body []byte
	var err error
	if f == formatJSON {
		body, err = protojson.Marshal(st.Proto())
	} else {
		body, err = proto.Marshal(st.Proto())
	}
	if err != nil { // a message that is not UTF-8
		body, code = nil, http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", f.contentType())
	w.WriteHeader(code)
	_, _ = w.Write(body)
}
