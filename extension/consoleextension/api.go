// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/cardinality"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/configuration"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/delivery"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/live"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/overview"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/page"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/relabel"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/targets"
)

// packedAPI is openapi.yaml in gzip, a fifth of its size: each kilobyte here adds one to every agent's binary. A test
// compares the two.
//
//go:embed openapi.yaml.gz
var packedAPI []byte

// openAPI returns the description of the API, which is served with it.
var openAPI = sync.OnceValue(func() []byte {
	r, err := gzip.NewReader(bytes.NewReader(packedAPI))
	if err != nil {
		return nil // a test ensures that it decompresses
	}
	text, _ := io.ReadAll(r)
	return text
})

//go:embed web/dist
var files embed.FS

// webPage is made once, however often the configuration is reloaded.
var webPage = page.New(files, "web/dist")

// answers returns the functions of the API, by method and path.
func answers(k *knowledge, build component.BuildInfo, now func() time.Time) map[string]answer.Func {
	glance := overview.View{Sources: k.sources, Service: &k.service, Meter: k.meter, Build: build, Loaded: time.Now()}
	scraped := targets.New(k.sources)
	series := cardinality.New(k.sources, now)
	sent := delivery.View{Sources: k.sources, Meter: k.meter}
	configured := configuration.View{Sources: k.sources, Service: &k.service, Build: build}
	share := k.shared.Share
	return map[string]answer.Func{
		"GET /api/v1/overview":                    share(glance.Answer),
		"GET /api/v1/history":                     k.hour.Everything,
		"GET /api/v1/targets":                     share(scraped.List),
		"GET /api/v1/targets/{id}":                scraped.Target,
		"POST /api/v1/targets/{id}/response":      scraped.Look,
		"POST /api/v1/relabel":                    relabel.Answer,
		"POST /api/v1/live":                       live.New(k.sources).Answer,
		"GET /api/v1/cardinality":                 share(series.Overviews),
		"GET /api/v1/cardinality/top":             share(series.Top),
		"GET /api/v1/cardinality/metric":          share(series.Metric),
		"GET /api/v1/cardinality/whatif":          share(series.WhatIf),
		"GET /api/v1/cardinality/recommendations": share(series.Recommend),
		"GET /api/v1/status/tsdb":                 share(series.TSDB),
		"GET /api/v1/delivery":                    sent.Answer,
		"GET /api/v1/delivery/history":            share(k.hour.Destinations),
		"GET /api/v1/configuration":               configured.Answer,
	}
}

// handler serves the page and the API.
func handler(api map[string]answer.Func) http.Handler {
	mux := http.NewServeMux()
	for pattern, answer := range api {
		mux.Handle(pattern, answer)
	}
	mux.HandleFunc("GET /api/v1/openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		answer.Write(w, "application/yaml", openAPI())
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(alike(r, http.MethodGet)); pattern != "/api/" {
			methodNotAllowed(w, http.MethodGet)
		} else if _, pattern := mux.Handler(alike(r, http.MethodPost)); pattern != "/api/" {
			methodNotAllowed(w, http.MethodPost)
		} else {
			answer.Fail(w, http.StatusNotFound, answer.CodeNotFound, "there is no such part of the API")
		}
	})
	mux.Handle("/", webPage)
	return mux
}

func alike(r *http.Request, method string) *http.Request {
	return &http.Request{Method: method, URL: r.URL, Host: r.Host}
}

func methodNotAllowed(w http.ResponseWriter, allowed string) {
	w.Header().Set("Allow", allowed)
	answer.Fail(w, http.StatusMethodNotAllowed, answer.CodeMethod, "use "+allowed)
}
