// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"slices"
	"strconv"
	"strings"
	"unique"

	translator "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheus"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/api"
)

// said is what a page says of its metrics: a name, a type, a help text and a unit for each, all quoted. Targets whose
// pages say the same share it.
type said = unique.Handle[string]

// reported are the metrics that are not on the page.
var reported = []string{
	"up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_samples_post_metric_relabeling",
	"scrape_series_added", "scrape_timeout_seconds", "scrape_sample_limit", "scrape_body_size_bytes",
}

// describe notes what was said of the metrics of a page.
func describe(md pmetric.Metrics) said {
	var text []byte
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if slices.Contains(reported, m.Name()) {
					continue
				}
				typ, _ := m.Metadata().Get(translator.MetricMetadataTypeKey)
				for _, part := range [...]string{m.Name(), typ.AsString(), m.Description(), m.Unit()} {
					text = strconv.AppendQuote(text, part)
				}
			}
		}
	}
	return unique.Make(string(text))
}

// families returns what the target's last pages said of their metrics, each metric once.
func (t *target) families() []api.Family {
	t.mu.Lock()
	said := t.said
	t.mu.Unlock()
	if said == (unique.Handle[string]{}) {
		return nil
	}
	rest := said.Value()
	part := func() string {
		quoted, _ := strconv.QuotedPrefix(rest) // describe wrote it
		rest = rest[len(quoted):]
		text, _ := strconv.Unquote(quoted)
		return text
	}
	var out []api.Family
	for rest != "" {
		out = append(out, api.Family{Name: part(), Type: part(), Help: part(), Unit: part()})
	}
	slices.SortFunc(out, func(a, b api.Family) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b api.Family) bool { return a.Name == b.Name })
}
