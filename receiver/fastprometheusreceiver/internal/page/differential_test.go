// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"gopkg.in/yaml.v3"
)

const (
	typeText = "text/plain; version=0.0.4"
	typeOM   = "application/openmetrics-text; version=1.0.0"
)

// A sequence is the successive pages of a target, with its job's configuration.
type sequence struct {
	name   string
	media  string
	pages  []string // "!404" is a failure
	job    string   // YAML of the scrape configuration
	labels map[string]string
}

// A stock is the stock receiver's result for a sequence.
type stock struct {
	config  *promconfig.ScrapeConfig
	address string
	results []pmetric.Metrics
	slow    map[int64]bool // scrapes that timed out, by timestamp
}

type receiverOptions struct {
	external string
	trim     bool
}

const errorPage = "!404"

// stockReceiver runs the stock receiver for all sequences at once, with one job for each.
func stockReceiver(t *testing.T, o receiverOptions, seqs []sequence) []stock {
	var (
		mu    sync.Mutex
		done  = make(chan struct{})
		left  = len(seqs)
		out   = make([]stock, len(seqs))
		shown = make([]int, len(seqs))
	)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			return
		}
		mu.Lock()
		seq := &seqs[i]
		page := seq.pages[min(shown[i], len(seq.pages)-1)]
		shown[i]++
		mu.Unlock()
		if page == errorPage {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", seq.media)
		_, _ = w.Write([]byte(page))
	}))
	defer srv.Close()
	address := strings.TrimPrefix(srv.URL, "http://")
	jobs := make([]any, len(seqs))
	for i, seq := range seqs {
		job := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(seq.job), &job), seq.name)
		static := map[string]any{"targets": []any{address}}
		if seq.labels != nil {
			ls := map[string]any{}
			for k, v := range seq.labels {
				ls[k] = v
			}
			static["labels"] = ls
		}
		maps.Copy(job, map[string]any{
			"job_name": fmt.Sprint("job", i), "metrics_path": fmt.Sprint("/", i), "scrape_interval": "250ms", "scrape_timeout": "250ms",
			"static_configs": []any{static},
		})
		jobs[i] = job
	}
	prom := map[string]any{"scrape_configs": jobs}
	if o.external != "" {
		prom["global"] = map[string]any{"external_labels": map[string]any{}}
		require.NoError(t, yaml.Unmarshal([]byte(o.external), prom["global"].(map[string]any)["external_labels"]))
	}
	f := prometheusreceiver.NewFactory()
	cfg := f.CreateDefaultConfig().(*prometheusreceiver.Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"config": prom, "trim_metric_suffixes": o.trim,
	}).Unmarshal(cfg))
	for i, sc := range cfg.PrometheusConfig.ScrapeConfigs {
		out[i].config, out[i].address = sc, address
	}
	sink, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		for _, rm := range md.ResourceMetrics().All() {
			job, _ := rm.Resource().Attributes().Get("service.name")
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if m.Name() != "up" || m.Type() != pmetric.MetricTypeGauge || !strings.HasPrefix(job.Str(), "job") {
						continue
					}
					i, err := strconv.Atoi(strings.TrimPrefix(job.Str(), "job"))
					if err != nil {
						continue
					}
					keep := pmetric.NewMetrics()
					md.CopyTo(keep)
					mu.Lock()
					defer mu.Unlock()
					if len(out[i].results) < len(seqs[i].pages) {
						out[i].results = append(out[i].results, keep)
						if len(out[i].results) == len(seqs[i].pages) {
							if left--; left == 0 {
								close(done)
							}
						}
					}
					return nil
				}
			}
		}
		return errors.New("cannot tell the job")
	})
	require.NoError(t, err)
	core, logs := observer.New(zap.WarnLevel)
	set := receivertest.NewNopSettings(f.Type())
	set.Logger = zap.New(core)
	r, err := f.CreateMetrics(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(context.Background(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		mu.Lock()
		defer mu.Unlock()
		for i := range out {
			if len(out[i].results) < len(seqs[i].pages) {
				t.Errorf("%s: %d of %d scrapes", seqs[i].name, len(out[i].results), len(seqs[i].pages))
			}
		}
		t.Fatal("the stock receiver took too long")
	}
	mu.Lock()
	defer mu.Unlock()
	for _, e := range logs.All() { // timeouts on a busy machine do not count as differences
		m := e.ContextMap()
		if !strings.Contains(fmt.Sprint(m["error"]), "deadline") {
			continue
		}
		for i := range out {
			if strings.Contains(fmt.Sprint(m["target_labels"]), fmt.Sprintf("job=%q", fmt.Sprint("job", i))) {
				if out[i].slow == nil {
					out[i].slow = map[int64]bool{}
				}
				out[i].slow[m["scrape_timestamp"].(int64)] = true
			}
		}
	}
	return out
}

func reportTime(t *testing.T, md pmetric.Metrics) time.Time {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == "scrape_samples_scraped" {
					return m.Gauge().DataPoints().At(0).Timestamp().AsTime()
				}
			}
		}
	}
	t.Fatal("no report")
	return time.Time{}
}

func newTestJob(t testing.TB, cfg Config) *Job {
	j, err := NewJob(cfg)
	require.NoError(t, err)
	j.book.Sharing = 2    // so that tests with few targets behave as with many
	j.tree.Idle = 1 << 17 // independent of what other tests have left
	return j
}

// show feeds a page in chunks of this size and ends the scrape.
func show(target *Target, at time.Time, media, page string, size int) Result {
	if page == errorPage {
		return target.Fail(at, Report{Err: errors.New("server returned HTTP status 404 Not Found")})
	}
	s, err := target.Begin(at, media)
	if err != nil {
		return target.Fail(at, Report{Err: err})
	}
	for b := []byte(page); len(b) > 0; {
		n := min(size, len(b))
		if err := s.Feed(b[:n]); err != nil {
			break
		}
		b = b[n:]
	}
	return s.End(Report{BodyBytes: int64(len(page))})
}

func compareWithStock(t *testing.T, o receiverOptions, seqs []sequence) {
	results := stockReceiver(t, o, seqs)
	for i, seq := range seqs {
		for _, kind := range []string{"fresh", "reuse", "parts", "passing"} {
			t.Run(fmt.Sprintf("%s/%s", seq.name, kind), func(t *testing.T) {
				got := results[i]
				external := map[string]string{}
				require.NoError(t, yaml.Unmarshal([]byte(o.external), external))
				j := newTestJob(t, Config{Scrape: got.config, External: labels.FromMap(external), TrimSuffixes: o.trim, Reuse: kind != "fresh"})
				switch kind {
				case "parts":
					setParts(j, 1+i%5, 1+i%11)
					j.rules.MostWhole = i % 20
				case "passing":
					j.tree.Idle = noTrees
					j.tree.Part = []int{3, 1 << 11}[i%2]
				}
				discovered := labels.FromStrings("__address__", got.address, "__scheme__", "http", "__metrics_path__", fmt.Sprint("/", i), "job", got.config.JobName)
				b := labels.NewBuilder(labels.FromStrings("job", got.config.JobName, "instance", got.address))
				for k, v := range seq.labels {
					b.Set(k, v)
				}
				target := j.NewTarget(discovered, b.Labels())
				for n, page := range seq.pages {
					at := reportTime(t, got.results[n])
					if got.slow[at.UnixMilli()] {
						t.Logf("no answer to scrape %d in time: nobody knows which pages the ones after it saw", n)
						break
					}
					res := show(target, at, seq.media, page, 1+(i*7+n*13)%60)
					md, last := merge(t, res)
					require.Equal(t, canon(got.results[n]), canon(md), "page %d: %s", n, page)
					last.Release()
				}
			})
		}
	}
}
