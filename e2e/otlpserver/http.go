// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/godwit-otel/godwit/e2e/serve"
)

const (
	protobufType = "application/x-protobuf"
	jsonType     = "application/json"
)

// exchange is implemented by the messages of all signals.
type exchange interface {
	UnmarshalProto(b []byte) error
	UnmarshalJSON(b []byte) error
}

type answer interface {
	MarshalProto() ([]byte, error)
	MarshalJSON() ([]byte, error)
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		req, resp := pmetricotlp.NewExportRequest(), pmetricotlp.NewExportResponse()
		partial := resp.PartialSuccess()
		s.answerHTTP(w, r, req, resp, func() export { return exportMetrics(req.Metrics()) },
			partial.SetRejectedDataPoints, partial.SetErrorMessage)
	})
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		req, resp := ptraceotlp.NewExportRequest(), ptraceotlp.NewExportResponse()
		partial := resp.PartialSuccess()
		s.answerHTTP(w, r, req, resp, func() export { return exportTraces(req.Traces()) },
			partial.SetRejectedSpans, partial.SetErrorMessage)
	})
	mux.HandleFunc("POST /v1/logs", func(w http.ResponseWriter, r *http.Request) {
		req, resp := plogotlp.NewExportRequest(), plogotlp.NewExportResponse()
		partial := resp.PartialSuccess()
		s.answerHTTP(w, r, req, resp, func() export { return exportLogs(req.Logs()) },
			partial.SetRejectedLogRecords, partial.SetErrorMessage)
	})
	return mux
}

func (s *Server) answerHTTP(w http.ResponseWriter, r *http.Request, req exchange, resp answer,
	decoded func() export, setRejected func(int64), setMessage func(string),
) {
	contentType := r.Header.Get("Content-Type")
	if contentType != protobufType && contentType != jsonType {
		http.Error(w, fmt.Sprintf("cannot take content type %q", contentType), http.StatusUnsupportedMediaType)
		return
	}
	body, err := readBody(r)
	if err == nil && contentType == jsonType {
		err = req.UnmarshalJSON(body)
	} else if err == nil {
		err = req.UnmarshalProto(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	step, going := s.take(r.Context(), r.Header.Clone(), decoded())
	switch {
	case !going:
		panic(http.ErrAbortHandler)
	case step.Fault == Hang:
		serve.Hang(r)
	case step.Fault == Reset:
		serve.Cut(s.http, r)
	}
	step.reject(setRejected, setMessage)
	writeAnswer(w, contentType, step, resp)
}

func writeAnswer(w http.ResponseWriter, contentType string, step Step, resp answer) {
	var body []byte
	var err error
	switch {
	case step.ok() && contentType == jsonType:
		body, err = resp.MarshalJSON()
	case step.ok():
		body, err = resp.MarshalProto()
	case contentType == jsonType:
		body, err = protojson.Marshal(step.proto())
	default:
		body, err = proto.Marshal(step.proto())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if step.RetryInfo != nil {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(step.RetryInfo.Seconds()))))
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(step.httpStatus())
	_, _ = w.Write(body)
}

func readBody(r *http.Request) ([]byte, error) {
	var from io.Reader = r.Body
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		zr, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, fmt.Errorf("cannot decompress gzip: %w", err)
		}
		from = zr
	case "zstd":
		zr, err := zstd.NewReader(r.Body, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("cannot decompress zstd: %w", err)
		}
		defer zr.Close()
		from = zr
	default:
		return nil, fmt.Errorf("cannot take encoding %q", encoding)
	}
	return io.ReadAll(io.LimitReader(from, maxMessage))
}
