// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// zipped is the only encoding of answers.
const zipped = "gzip"

// A fault is an error as the API reports it.
type fault struct {
	kind string
	err  error
}

// The kinds of faults, and the status each has.
const (
	badData     = "bad_data"
	unavailable = "execution"
	notFound    = "not_found"
)

var statuses = map[string]int{
	badData:     http.StatusBadRequest,
	unavailable: http.StatusUnprocessableEntity,
	notFound:    http.StatusNotFound,
}

// withoutQueries are the paths of Prometheus' API that an agent serves no data for.
var withoutQueries = []string{
	"query", "query_range", "query_exemplars", "format_query", "parse_query", "labels", "label/", "series",
	"alertmanagers", "alerts", "rules", "status/tsdb", "admin/",
}

// handler routes all paths.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, f func(*http.Request) (any, *fault)) {
		mux.HandleFunc("GET /api/v1/"+path, func(w http.ResponseWriter, r *http.Request) {
			data, fault := f(r)
			respond(w, r, data, fault)
		})
	}
	get("scrape_pools", s.scrapePools)
	get("targets", s.targets)
	get("targets/metadata", s.targetMetadata)
	get("targets/relabel_steps", s.relabelSteps)
	get("metadata", s.metricMetadata)
	get("status/config", s.config)
	get("status/runtimeinfo", s.runtimeInfo)
	get("status/buildinfo", s.buildInfo)
	get("status/flags", func(*http.Request) (any, *fault) { return map[string]string{}, nil })
	for _, path := range withoutQueries {
		mux.HandleFunc("/api/v1/"+path, func(w http.ResponseWriter, r *http.Request) {
			respond(w, r, nil, &fault{unavailable, errors.New("unavailable: this is an agent, which only scrapes")})
		})
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		respond(w, r, nil, &fault{notFound, fmt.Errorf("there is no %s", r.URL.Path)})
	})
	fine := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "fine") }
	mux.HandleFunc("GET /-/healthy", fine)
	mux.HandleFunc("GET /-/ready", fine)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.view.Gatherer(), promhttp.HandlerOpts{}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions && strings.HasPrefix(r.URL.Path, "/api/v1/") {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// answer is what all answers look like.
type answer struct {
	Status    string `json:"status"`
	Data      any    `json:"data,omitempty"`
	ErrorType string `json:"errorType,omitempty"`
	Error     string `json:"error,omitempty"`
}

func respond(w http.ResponseWriter, r *http.Request, data any, f *fault) {
	out, status := answer{Status: "success", Data: data}, http.StatusOK
	if f != nil {
		out, status = answer{Status: "error", ErrorType: f.kind, Error: f.err.Error()}, statuses[f.kind]
	}
	text, err := json.Marshal(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Add("Vary", "Accept-Encoding")
	if !takesGzip(r) {
		w.WriteHeader(status)
		_, _ = w.Write(text)
		return
	}
	w.Header().Set("Content-Encoding", zipped)
	w.WriteHeader(status)
	// An error of writing cannot be reported to anyone.
	writer := gzip.NewWriter(w)
	_, _ = writer.Write(text)
	_ = writer.Close()
}

func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == zipped && strings.TrimSpace(weight) != "q=0" {
			return true
		}
	}
	return false
}
