// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	_ "embed" // of the API's description
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// openAPI describes the API; it is served beside it.
//
//go:embed openapi.yaml
var openAPI []byte

// answers is what the API has, by method and path.
func (c *console) answers() map[string]func(*http.Request) (any, error) {
	return map[string]func(*http.Request) (any, error){
		"GET /api/v1/overview":                    c.share(c.overview),
		"GET /api/v1/history":                     c.history,
		"GET /api/v1/targets":                     c.share(c.targets),
		"GET /api/v1/targets/{id}":                c.target,
		"POST /api/v1/targets/{id}/response":      c.look,
		"POST /api/v1/relabel":                    c.relabel,
		"POST /api/v1/live":                       c.live,
		"GET /api/v1/cardinality":                 c.share(c.cardinality),
		"GET /api/v1/cardinality/top":             c.share(c.top),
		"GET /api/v1/cardinality/metric":          c.share(c.metric),
		"GET /api/v1/cardinality/whatif":          c.share(c.whatIf),
		"GET /api/v1/cardinality/recommendations": c.share(c.recommend),
		"GET /api/v1/status/tsdb":                 c.share(c.tsdb),
		"GET /api/v1/delivery":                    c.delivery,
		"GET /api/v1/delivery/history":            c.share(c.destinationHistory),
		"GET /api/v1/configuration":               c.configuration,
	}
}

// handler serves the page and the API.
func (c *console) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, answer := range c.answers() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { respond(w, r, answer) })
	}
	mux.HandleFunc("GET /api/v1/openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		write(w, "application/yaml", openAPI)
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(alike(r, http.MethodGet)); pattern != "/api/" {
			methodNotAllowed(w, http.MethodGet)
		} else if _, pattern := mux.Handler(alike(r, http.MethodPost)); pattern != "/api/" {
			methodNotAllowed(w, http.MethodPost)
		} else {
			fail(w, http.StatusNotFound, "not_found", "there is no such part of the API")
		}
	})
	mux.HandleFunc("/", page)
	return mux
}

func alike(r *http.Request, method string) *http.Request {
	return &http.Request{Method: method, URL: r.URL, Host: r.Host}
}

func methodNotAllowed(w http.ResponseWriter, allowed string) {
	w.Header().Set("Allow", allowed)
	fail(w, http.StatusMethodNotAllowed, "method", "use "+allowed)
}

// A file is an answer that is not JSON.
type file struct {
	kind, name string
	data       []byte
}

// A fault is an error that says whose it is.
type fault struct {
	status  int
	code    string
	message string
}

func (f *fault) Error() string { return f.message }

func badRequest(format string, args ...any) error {
	return &fault{http.StatusBadRequest, codeBadRequest, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &fault{http.StatusNotFound, "not_found", fmt.Sprintf(format, args...)}
}

func respond(w http.ResponseWriter, r *http.Request, answer func(*http.Request) (any, error)) {
	got, err := encode(answer(r))
	if err != nil {
		f, ok := err.(*fault) //nolint:errorlint // answers return faults as they are
		if !ok {
			f = &fault{http.StatusInternalServerError, "internal", err.Error()}
		}
		fail(w, f.status, f.code, redactor.Text(f.message))
		return
	}
	if f, ok := got.(*file); ok {
		w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+`"`)
		write(w, f.kind, f.data)
		return
	}
	if data, ok := got.(encoded); ok {
		write(w, "application/json", data)
	}
}

func write(w http.ResponseWriter, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data)
}

func fail(w http.ResponseWriter, status int, code, message string) {
	data, err := json.Marshal(map[string]any{"error": map[string]string{"code": code, "message": message}})
	if err != nil { // strings always are
		data = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // whoever has gone away needs no answer
}

// whole reads a parameter that is a number.
func whole(r *http.Request, name string, otherwise, least, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, badRequest("`%s` must be %d to %d, got %q", name, least, most, cut(text, 100))
	}
	return n, nil
}

// oneOf reads a parameter that is one of some words; the first is the default.
func oneOf(r *http.Request, name string, words ...string) (string, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return words[0], nil
	}
	for _, word := range words {
		if text == word {
			return word, nil
		}
	}
	return "", badRequest("`%s` must be one of %s, got %q", name, strings.Join(words, ", "), cut(text, 100))
}

// table is an answer as CSV. No cell of it is a formula.
func table(name string, rows [][]string) (*file, error) {
	var out strings.Builder
	w := csv.NewWriter(&out)
	for _, row := range rows {
		for i, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				if _, err := strconv.ParseFloat(cell, 64); err != nil {
					row[i] = "'" + cell
				}
			}
		}
		_ = w.Write(row) // Error has it
	}
	w.Flush()
	return &file{"text/csv; charset=utf-8", name + ".csv", []byte(out.String())}, w.Error()
}
