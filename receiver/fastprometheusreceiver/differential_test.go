// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A trial is a target's response, and settings of the job that scrapes it.
type trial struct {
	name   string
	keys   string // YAML, one per line
	answer http.HandlerFunc
	reason string // the reason of the scrape's failure, empty if it succeeds
}

// answers returns a handler with a fixed response.
func answers(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		_, _ = w.Write([]byte(body))
	}
}

// A witness keeps the last result of each job.
type witness struct {
	mu   sync.Mutex
	said map[string][]string
}

func (*witness) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (w *witness) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	said := sayings(md)
	for _, p := range points([]pmetric.Metrics{md}) {
		if p.name == "scrape_samples_scraped" {
			w.mu.Lock()
			w.said[p.job] = said
			w.mu.Unlock()
			break
		}
	}
	return nil
}

func (w *witness) of(job string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said[job]
}

// sayings formats metrics as sorted lines, without timestamps and without values that depend on earlier scrapes.
func sayings(md pmetric.Metrics) (all []string) {
	attributes := func(m pcommon.Map) string {
		var pairs []string
		for k, v := range m.All() {
			pairs = append(pairs, fmt.Sprintf("%s=%q", k, v.AsString()))
		}
		slices.Sort(pairs)
		return strings.Join(pairs, ",")
	}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				say := func(of pcommon.Map, what ...any) {
					all = append(all, fmt.Sprintf("{%s} %s %q %s {%s} %v", attributes(rm.Resource().Attributes()), m.Name(), m.Description(), m.Type(), attributes(of), what))
				}
				for _, p := range numbers(m).All() {
					if m.Name() == "scrape_duration_seconds" || m.Name() == "scrape_series_added" {
						continue
					}
					say(p.Attributes(), p.DoubleValue(), p.Flags())
				}
				switch m.Type() { //nolint:exhaustive // numbers are told above
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						say(p.Attributes(), p.Count(), p.Sum(), p.ExplicitBounds().AsRaw(), p.BucketCounts().AsRaw(), p.Flags())
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						say(p.Attributes(), p.Count(), p.Sum(), p.Scale(), p.Positive().BucketCounts().AsRaw(), p.Flags())
					}
				case pmetric.MetricTypeSummary:
					for _, p := range m.Summary().DataPoints().All() {
						say(p.Attributes(), p.Count(), p.Sum(), p.QuantileValues().Len(), p.Flags())
					}
				default:
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// compareWithTheirs has the Collector's receiver and ours scrape the same targets, and expects the same results.
func compareWithTheirs(t *testing.T, trials []trial) {
	t.Helper()
	var mu sync.Mutex
	requests := map[string]string{}
	asked := func(i int, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests[fmt.Sprint(strings.HasPrefix(r.UserAgent(), "godwit/"), i)] = requestOf(r)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			return
		}
		asked(i, r)
		trials[i].answer(w, r)
	}))
	defer server.Close()
	var jobs strings.Builder
	jobs.WriteString("config:\n  global: {scrape_interval: 2s, scrape_timeout: 2s}\n  scrape_configs:\n")
	for i, one := range trials {
		fmt.Fprintf(&jobs, "    - job_name: job%d\n      metrics_path: /%d\n      static_configs: [{targets: [%q]}]\n", i, i, strings.TrimPrefix(server.URL, "http://"))
		for line := range strings.Lines(one.keys) {
			jobs.WriteString("      " + line)
		}
		jobs.WriteString("\n")
	}
	ours, theirs := &witness{said: map[string][]string{}}, &witness{said: map[string][]string{}}
	r := run(t, jobs.String(), withConsumer(ours), withoutTraces)
	runTheirs(t, jobs.String(), theirs)
	for i, one := range trials {
		t.Run(one.name, func(t *testing.T) {
			job := fmt.Sprint("job", i)
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				assert.NotEmpty(c, ours.of(job))
				assert.Empty(c, less(theirs.of(job), ours.of(job)), "they say, and we do not")
				assert.Empty(c, less(ours.of(job), theirs.of(job)), "we say, and they do not")
				assert.Equal(c, one.reason, r.reasonOf(job))
				mu.Lock()
				defer mu.Unlock()
				assert.Equal(c, requests[fmt.Sprint(false, i)], requests[fmt.Sprint(true, i)])
			}, patience, 10*glance)
		})
	}
}

// requestOf formats a request without the client's name and the encodings: we accept more of them.
func requestOf(r *http.Request) string {
	header := r.Header.Clone()
	header.Del("User-Agent")
	header.Del("Accept-Encoding")
	return fmt.Sprint(r.Method, " ", r.URL, " ", header)
}

// less returns the lines that others lack, shortened for messages.
func less(all, others []string) (missing []string) {
	for _, one := range all {
		if !slices.Contains(others, one) {
			missing = append(missing, one[:min(len(one), 1000)])
		}
	}
	return missing
}

// targetOf returns a target of a job, or nil.
func (r *rig) targetOf(job string) *target {
	for _, j := range r.allJobs() {
		if all := j.all(); j.name == job && len(all) > 0 {
			return all[0]
		}
	}
	return nil
}

// reasonOf returns why the last scrape of a job's target failed.
func (r *rig) reasonOf(job string) string {
	t := r.targetOf(job)
	if t == nil {
		return "no target"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status.reason
}
