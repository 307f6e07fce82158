// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promconfig

import (
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// Findings for all configurations with jobs.
const (
	AsNumbers = "bounds of classic buckets and quantiles are written as numbers, `le=\"2\"` where a page or Prometheus 3 has `le=\"2.0\"`: see docs/migrate-from-prometheus.md"
	InfoNote  = "a series `target_info` is sent for each target, once a minute; `target_info: {enabled: false}` under the exporter leaves it out"
)

// The receiver that is written, and its keys.
const (
	Scraper = "fastprometheus"
	// KeepsIdentity is the receiver's key that keeps the job's job and instance, whatever a page says.
	KeepsIdentity = "keep_job_and_instance"
)

// SecretKeys are keys whose values may contain dollar signs that are plain text.
var SecretKeys = []string{"password", "token", "credentials", "client_secret", "secret_key", "secret_access_key", "api_key"}

// ExternalLabels gives an exporter the labels that it adds to series without them. The receiver replaces those that a
// page has, as contrib's does; Prometheus and vmagent keep them, which keeps the series of federated servers apart.
func ExternalLabels(settings document.Table, labels *yaml.Node) {
	if document.IsNull(labels) {
		return
	}
	copied := *labels
	copied.Content = nil
	for i, n := range labels.Content {
		c := *n
		if i%2 == 1 { // Prometheus expands variables there, too
			c.Value = environment(c.Value)
		}
		copied.Content = append(copied.Content, &c)
	}
	settings.Set("external_labels", &copied)
}

// WithoutExternalLabels returns the section global of a receiver whose external labels the exporter adds.
func WithoutExternalLabels(global *yaml.Node) *yaml.Node {
	kept := *global
	kept.Content = slices.Clone(global.Content)
	document.Remove(&kept, "external_labels")
	return &kept
}

// environment converts the variables of Prometheus in an escaped text, $NAME and ${NAME}, to a collector's.
func environment(escaped string) string {
	var b strings.Builder
	for rest := escaped; rest != ""; {
		before, after, found := strings.Cut(rest, "$$")
		b.WriteString(before)
		if !found {
			break
		}
		if strings.HasPrefix(after, "$$") { // an escaped dollar sign of Prometheus
			b.WriteString("$$")
			rest = after[2:]
			continue
		}
		inner := strings.HasPrefix(after, "{")
		name := strings.TrimPrefix(after, "{")
		end := strings.IndexFunc(name, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		})
		if end < 0 {
			end = len(name)
		}
		if end == 0 && !inner { // a plain dollar sign
			b.WriteString("$$")
			rest = after
			continue
		}
		rest = name[end:]
		if inner {
			rest = strings.TrimPrefix(rest, "}")
		}
		b.WriteString("${env:" + name[:end] + "}")
	}
	return b.String()
}

// NoteOwnMetrics reports targets that are the converted process itself, which the collector replaces.
func NoteOwnMetrics(in *input.Input, file string, jobs *yaml.Node, port, what string) {
	for i, job := range jobs.Content {
		for _, group := range document.Contents(document.Find(job, "static_configs")) {
			for _, target := range document.Contents(document.Find(group, "targets")) {
				host, at, err := net.SplitHostPort(target.Value)
				if err != nil || at != port || host != "localhost" && host != "127.0.0.1" {
					continue
				}
				in.Report.Add(report.Finding{
					Kind: report.Changed, File: file, Line: target.Line, Path: "scrape_configs[" + strconv.Itoa(i) + "]",
					Text: target.Value + " is " + what + "'s own port: the collector's own metrics are at 127.0.0.1:8888",
				})
			}
		}
	}
}

// NoteLoneBuckets reports rules that keep the buckets of a histogram but not its count, of which the receiver cannot make
// a histogram, and rules that drop the buckets but not the count, of which it makes one with a single bucket.
func NoteLoneBuckets(in *input.Input, file, path string, job *yaml.Node) {
	for _, rule := range document.Contents(document.Find(job, "metric_relabel_configs")) {
		from, text := document.Contents(document.Find(rule, "source_labels")), document.Find(rule, "regex")
		if len(from) != 1 || from[0].Value != "__name__" || text == nil {
			continue
		}
		lone := strings.Join(loneBuckets(text.Value), ", ")
		said := map[string]string{
			"keep": "a histogram is sent if its count is there: keep the `_count` of " + lone + " too, or have the rule under `write_relabel_configs` of the exporter",
			"drop": "a histogram without buckets is sent with one, of `le=\"+Inf\"`: have the rule for " + lone + " under `write_relabel_configs` of the exporter, too",
		}[document.TextOf(rule, "action")]
		if lone != "" && said != "" {
			in.Report.Add(report.Finding{Kind: report.Changed, File: file, Line: text.Line, Path: path + ".metric_relabel_configs", Text: said})
		}
	}
}

// loneBuckets returns the names of buckets in an expression that does not match the count of their histogram.
func loneBuckets(regex string) (lone []string) {
	const bucket = "_bucket"
	matched, err := regexp.Compile("^(?s:" + regex + ")$")
	if err != nil {
		return nil
	}
	for name := range strings.FieldsFuncSeq(regex, func(r rune) bool { return strings.ContainsRune("|()", r) }) {
		example := strings.NewReplacer(".*", "x", ".+", "x").Replace(name)
		if histogram, ok := strings.CutSuffix(example, bucket); ok && plainMetric().MatchString(example) && matched.MatchString(example) && !matched.MatchString(histogram+"_count") {
			lone = append(lone, name)
		}
	}
	return lone
}

// SetText sets a key if the value is not empty.
func SetText(t document.Table, key, value string) {
	if value != "" {
		t.Set(key, value)
	}
}

// Duration parses a duration in the form of Prometheus and vmagent.
func Duration(text string) (time.Duration, error) {
	var sum float64
	if text == "0" {
		return 0, nil
	}
	for rest := text; rest != ""; {
		part := durationPart().FindStringSubmatch(rest)
		if part == nil {
			return 0, fmt.Errorf("%q is no duration, such as 30s or 5m", text)
		}
		n, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration: %w", text, err)
		}
		sum += n * float64(units[part[2]])
		rest = rest[len(part[0]):]
	}
	if sum >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is too long: at most 290y", text)
	}
	return time.Duration(sum), nil
}

// GoDuration formats a duration for a collector, without parts that are zero.
func GoDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

var plainMetric = lazyregexp.New(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

var (
	durationPart = lazyregexp.New(`^(\d+(?:\.\d+)?)(ms|y|w|d|h|m|s)`)
	units        = map[string]time.Duration{
		"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
		"d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "y": 365 * 24 * time.Hour,
	}
)
