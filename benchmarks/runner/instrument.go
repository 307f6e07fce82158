// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/farm"
	"github.com/godwit-otel/godwit/benchmarks/sink"
)

// The farm and the sink run as processes of their own, so that their CPU time and garbage collection are separate. Each
// prints a line of JSON with its addresses, and answers requests over HTTP.

// farmReady is the line that a farm prints.
type farmReady struct {
	Control string `json:"control"`
	Samples int    `json:"samples"` // of one page
	Bytes   int    `json:"bytes"`   // of one page, uncompressed
	Gzipped int    `json:"gzipped"`
}

// sinkReady is the line that a sink prints.
type sinkReady struct {
	Control string `json:"control"`
	HTTP    string `json:"http"`
	GRPC    string `json:"grpc"`
}

// Farm is the main function of the farm's process.
func Farm(ctx context.Context, cfg farm.Config, targetsFile string) error {
	last := time.Now()
	f, err := farm.New(cfg, func(done, of int) {
		if time.Since(last) > 2*time.Second {
			last = time.Now()
			fmt.Fprintf(os.Stderr, "  rendering pages: %d of %d targets\n", done, of)
		}
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reset", func(http.ResponseWriter, *http.Request) { f.Reset() })
	mux.HandleFunc("GET /totals", answer(func() any { return f.Totals() }))
	mux.HandleFunc("GET /served", answer(func() any { return f.Served() }))
	control, err := serveControl(ctx, mux)
	if err != nil {
		return err
	}
	var failed error
	err = f.Serve(ctx, func() {
		targets, err := json.Marshal([]map[string]any{{"targets": f.Targets()}})
		if err == nil {
			err = os.WriteFile(targetsFile, targets, 0o600)
		}
		samples, plain, gzipped := f.Describe()
		failed = errors.Join(err, json.NewEncoder(os.Stdout).Encode(farmReady{control, samples, plain, gzipped}))
	})
	return errors.Join(err, failed)
}

// Sink is the main function of the sink's process.
func Sink(ctx context.Context) error {
	s, err := sink.Listen(ctx)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reset", func(http.ResponseWriter, *http.Request) { s.Reset() })
	mux.HandleFunc("GET /stats", answer(func() any { return s.Stats() }))
	mux.HandleFunc("GET /arrived", answer(func() any { return s.Ledger.Arrived() }))
	control, err := serveControl(ctx, mux)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(sinkReady{control, s.HTTPAddress(), s.GRPCAddress()}); err != nil {
		return err
	}
	return s.Serve(ctx)
}

func answer(what func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(what()) }
}

func serveControl(ctx context.Context, mux *http.ServeMux) (address string, err error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot open a control port: %w", err)
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { srv.Close() })
	go srv.Serve(l)
	return l.Addr().String(), nil
}

// instrument is the process of a farm, a sink or a load.
type instrument struct {
	*process

	control string
}

// ready waits for the line that an instrument prints.
func ready(ctx context.Context, p *process, into any) error {
	line := make(chan error, 1)
	go func() {
		text, err := bufio.NewReader(p.stdout).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		line <- err
	}()
	select {
	case err := <-line:
		if err != nil {
			return fmt.Errorf("cannot start the %s: %w", p.name, err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask sends a request to an instrument; if into is nil, it is a POST without a result.
func (i *instrument) ask(ctx context.Context, what string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	method := http.MethodGet
	if into == nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+i.control+"/"+what, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("cannot ask the %s: %w", i.name, err)
	}
	defer resp.Body.Close()
	if into == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("cannot read the answer of the %s: %w", i.name, err)
	}
	return nil
}

// lastLines returns the end of a log, for errors.
func lastLines(file string) string {
	body, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(body)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
