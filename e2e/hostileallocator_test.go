// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/targets"
)

const jsonType = "application/json"

// Whatever an allocator responds, targets of the agent's own configuration are scraped, and no file is written.
func TestHostileAllocator(t *testing.T) {
	t.Parallel()
	oneJob := answer(jsonType, `{"j": {"job_name": "j", "scrape_interval": "1s", "scrape_timeout": "1s"}}`)
	for i, h := range []struct {
		name          string
		jobs, targets http.HandlerFunc
	}{
		{"garbage", answer(jsonType, string(noise(100_000))), nil},
		{"wrong types", answer(jsonType, `{"j": 5, "k": [], "l": null, "m": {"job_name": {}}}`), nil},
		{"truncated", answer(jsonType, `{"j": {"job_name": "j"`), nil},
		{"nested", answer(jsonType, strings.Repeat(`{"j":`, 1_000_000)), nil},
		{"endless", withoutEnd(strings.Repeat(" ", 1<<16)), nil},
		{"endless jobs", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("{"))
			for n := 0; ; n++ {
				if _, err := fmt.Fprintf(w, `"j%d": {"job_name": "j%d"},`, n, n); err != nil {
					return
				}
			}
		}, nil},
		{"hanging", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil},
		{"bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipBomb())
		}, nil},
		{"redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/scrape_configs", http.StatusFound) }, nil},
		{"aliases without end", answer("application/yaml", "a: &a [x,x,x,x,x,x,x,x,x]\n"+manyAliases(12)), nil},
		{"a thousand jobs", func(w http.ResponseWriter, _ *http.Request) {
			jobs := make([]string, 1000)
			for n := range jobs {
				jobs[n] = fmt.Sprintf(`"j%d": {"job_name": "j%d", "scrape_interval": "1h", "scrape_timeout": "1s"}`, n, n)
			}
			_, _ = w.Write([]byte("{" + strings.Join(jobs, ",") + "}"))
		}, answer(jsonType, "[]")},
		{"files that are not there", answer(jsonType, `{
			"j": {"job_name": "j", "authorization": {"credentials_file": "/nowhere/token"}},
			"k": {"job_name": "k", "scheme": "https", "tls_config": {"ca_file": "/nowhere/ca.pem"}}}`), answer(jsonType, "[]")},
		{"targets, garbage", oneJob, answer(jsonType, string(noise(100_000)))},
		{"targets, hanging", oneJob, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"targets, bomb", oneJob, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", jsonType)
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipBomb())
		}},
		{"targets, endless", oneJob, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", jsonType)
			_, _ = w.Write([]byte(`[{"targets": ["a:1"`))
			for {
				if _, err := w.Write([]byte(strings.Repeat(`,"a:1"`, 10_000))); err != nil {
					return
				}
			}
		}},
		{"targets that are none", oneJob, answer(jsonType, `[{"targets": ["", "::::", "a b", "http://x/y", "`+strings.Repeat("x", 100_000)+`"], "labels": {"__scheme__": "gopher", "__metrics_path__": "%zz", "__scrape_interval__": "-1s", "__address__": "x"}}]`)},
	} {
		if !tried(i, h.name) {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			l := serve.Listen(t, "127.0.0.1:0")
			serve.HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/scrape_configs" {
					h.jobs(w, r)
				} else {
					h.targets(w, r)
				}
			}))
			s := besiegeAgent(t, fmt.Sprintf("receivers: {fastprometheus: {target_allocator: {endpoint: 'http://%s', interval: 1s, collector_id: me, timeout: 1s, http_sd_config: {refresh_interval: 30s}}}}", l.Addr()))
			s.withstand(func(ctx context.Context) { <-ctx.Done() })
		})
	}
}

// An allocator cannot make the agent write a file.
func TestAllocatorsWriteNoFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "written")
	broken := targets.New(t, targets.Page{Status: http.StatusInternalServerError})
	l := serve.Listen(t, "127.0.0.1:0")
	serve.HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/scrape_configs" {
			fmt.Fprintf(w, `{"j": {"job_name": "j", "scrape_interval": "200ms", "scrape_timeout": "200ms", "scrape_failure_log_file": %q}}`, file)
			return
		}
		fmt.Fprintf(w, `[{"targets": [%q], "labels": {}}]`, broken.Addr())
	}))
	s := besiegeAgent(t, fmt.Sprintf("receivers: {fastprometheus: {target_allocator: {endpoint: 'http://%s', interval: 200ms, collector_id: me, http_sd_config: {refresh_interval: 1s}}}}", l.Addr()))
	s.withstand(func(ctx context.Context) { <-ctx.Done() }) // long enough for the allocated job to be scraped
	assert.NoFileExists(t, file)
}

func manyAliases(n int) string {
	var b strings.Builder
	last := "a"
	for i := range n {
		name := string(rune('b' + i))
		fmt.Fprintf(&b, "%s: &%s [%s]\n", name, name, strings.TrimSuffix(strings.Repeat("*"+last+",", 9), ","))
		last = name
	}
	return b.String()
}
