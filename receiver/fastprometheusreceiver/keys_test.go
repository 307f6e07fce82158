// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	commonconfig "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// keysOf returns the keys of a section of Prometheus' configuration.
func keysOf(section any) (keys []string) {
	of := reflect.TypeOf(section)
	for i := range of.NumField() {
		field := of.Field(i)
		key, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			keys = append(keys, keysOf(reflect.Zero(field.Type).Interface())...)
		case field.IsExported() && key != "-":
			keys = append(keys, cmp.Or(key, strings.ToLower(field.Name)))
		}
	}
	slices.Sort(keys)
	return keys
}

// keysPage is the page of most targets of these tests.
const keysPage = `# TYPE a counter
a{job="own"} 1
b{c="dddddddddddddddddddddddddddddddddddddddddddddddddd"} 2 1000
# TYPE h histogram
h_bucket{le="+Inf"} 1
h_sum 1
h_count 1
`

// A difference describes what a key changes, as seen from outside.
type difference struct {
	// keys is the value of the key, and on further lines what a job has both with it and without it.
	keys string
	// want are words that occur in the sight of the job with the key and not in that of the other, or, after a minus,
	// the other way round.
	want string
	kind string // of page
}

// differences has every key of a scrape configuration. BANK, AUTHORITY, KEY, DIR and PROXY are replaced.
var differences = map[string]difference{
	"always_scrape_classic_histograms":   {"true\nscrape_native_histograms: true", `both_seconds "Both." Histogram`, "go"},
	"authorization":                      {"{credentials: honk}", "Authorization:[Bearer honk]", "text"},
	"basic_auth":                         {"{username: goose, password: honk}", "Authorization:[Basic Z29vc2U6aG9uaw==]", "text"},
	"bearer_token":                       {"honk", "Authorization:[Bearer honk]", "text"},
	"bearer_token_file":                  {"KEY", "Authorization:[Bearer ", "text"},
	"body_size_limit":                    {"10B", "reason body_size", "text"},
	"convert_classic_histograms_to_nhcb": {"true", "scrape_samples_post_metric_relabeling \"The number of samples remaining after metric relabeling was applied\" Gauge {} [3 ", "text"},
	"enable_compression":                 {"false", "Accept-Encoding:[identity]", "text"},
	"enable_http2":                       {"false\nscheme: https\ntls_config: {ca_file: AUTHORITY}", "-HTTP/2.0", "http2"},
	"extra_scrape_metrics":               {"true", "scrape_timeout_seconds", "text"},
	"fallback_scrape_protocol":           {"OpenMetricsText1.0.0", "reason parse", "untyped"},
	"follow_redirects":                   {"false", "reason status", "moved"},
	"honor_labels":                       {"true", `service.name="own"`, "text"},
	"honor_timestamps":                   {"false", "-b at 1970-01-01", "text"},
	"http_headers":                       {"{X-Flock: {values: [north]}}", "X-Flock:[north]", "text"},
	"job_name":                           {"renamed", "service.name=\"renamed\"", "text"},
	"keep_dropped_targets":               {"1\nrelabel_configs: [{action: drop}]\nfile_sd_configs: [{files: [DIR/two.json]}]", "-dropped 3", "text"},
	"label_limit":                        {"3", "reason limit", "text"},
	"label_name_length_limit":            {"7", "reason limit", "text"},
	"label_value_length_limit":           {"40", "reason limit", "text"},
	"metric_name_escaping_scheme":        {"dots", "escaping=dots", "text"},
	"metric_name_validation_scheme":      {"legacy\nmetric_name_escaping_scheme: underscores", "reason parse", "utf8"},
	"metric_relabel_configs":             {"[{source_labels: [__name__], regex: b, action: drop}]", "-b at ", "text"},
	"metrics_path":                       {"/vanishing/metrics_path/with", "GET /vanishing/", "text"},
	"native_histogram_bucket_limit":      {"3\nscrape_native_histograms: true", "flight_seconds \"Flights.\" ExponentialHistogram {} [10 45 -1 ", "go"},
	"native_histogram_min_bucket_factor": {"2\nscrape_native_histograms: true", "flight_seconds \"Flights.\" ExponentialHistogram {} [10 45 0 ", "go"},
	"no_proxy":                           {"nowhere.invalid\nproxy_url: http://PROXY\nrelabel_configs: [{target_label: __address__, replacement: nowhere.invalid}]", "reason dns", "text"},
	"oauth2":                             {"BANK", "-reason status", "guarded"},
	"params":                             {"{flock: [north]}", "flock=north", "text"},
	"proxy_connect_header":               {"{X-Flock: [north]}\nproxy_url: http://PROXY\nscheme: https\nrelabel_configs: [{source_labels: [job], regex: \"(.*)/(.*)\", target_label: __address__, replacement: $2.invalid}]", "X-Flock:[north]", "text"},
	"proxy_from_environment":             {"true\nrelabel_configs: [{target_label: __address__, replacement: nowhere.invalid}]", "GET http://nowhere.invalid/", "text"},
	"proxy_url":                          {"http://PROXY", "GET http://", "text"},
	"relabel_configs":                    {"[{target_label: flock, replacement: north}]", `flock="north"`, "text"},
	"sample_limit":                       {"1", "reason limit", "text"},
	"scheme":                             {"https", "reason protocol", "text"},
	"scrape_failure_log_file":            {"DIR/failures", "log 404", "missing"},
	"scrape_interval":                    {"700ms\nscrape_timeout: 500ms", "interval 700ms", "text"},
	"scrape_native_histograms":           {"true", "ExponentialHistogram", "go"},
	"scrape_protocols":                   {"[PrometheusText0.0.4]", "Accept:[text/plain;version=0.0.4;q=", "text"},
	"scrape_timeout":                     {"300ms", "X-Prometheus-Scrape-Timeout-Seconds:[0.3]", "text"},
	"target_limit":                       {"1\nfile_sd_configs: [{files: [DIR/two.json]}]", "reason target_limit", "text"},
	"tls_config":                         {"{ca_file: AUTHORITY}\nscheme: https", "-reason tls", "tls"},
	"track_timestamps_staleness":         {"true", "b ends", "vanishing"},
}

// A sight is everything that was ever observed of a job.
type sight struct {
	reports int
	empty   bool // all its targets are dropped, so there will be no reports
	words   map[string]bool
}

// A gallery has the sights of all jobs, by name.
type gallery struct {
	mu     sync.Mutex
	sights map[string]*sight
}

func (*gallery) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// of has to be called with the lock held.
func (g *gallery) of(job string) *sight {
	if g.sights[job] == nil {
		g.sights[job] = &sight{words: map[string]bool{}}
	}
	return g.sights[job]
}

func (g *gallery) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	all := points([]pmetric.Metrics{md})
	report := slices.IndexFunc(all, func(p point) bool { return p.name == "scrape_samples_scraped" })
	if report < 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := g.of(all[report].job)
	seen.reports++
	for _, words := range sayings(md) {
		seen.words[words] = true
	}
	for _, p := range all {
		if p.name != "b" {
			continue
		}
		seen.words["b at "+p.at.Format(time.DateOnly)] = true
		if p.stale {
			seen.words["b ends"] = true
		}
	}
	return nil
}

// asked records a request, and returns how many there were before.
func (g *gallery) asked(r *http.Request) int {
	_, job, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if r.Method == http.MethodConnect {
		job = "proxy_connect_header/" + strings.TrimSuffix(r.URL.Hostname(), ".invalid")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := g.of(job)
	seen.words[fmt.Sprint(r.Method, " ", r.URL, " ", r.Proto, " ", r.Header)] = true
	return seen.reports
}

// serve serves the kind of page that the first part of the path names.
func (g *gallery) serve(b *bank) http.HandlerFunc {
	client, guarded := goClient(), b.guarded(serveText)
	return func(w http.ResponseWriter, r *http.Request) {
		before := g.asked(r)
		kind, job, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch kind {
		case "text":
			answers(typeText, keysPage)(w, r)
		case "vanishing":
			answers(typeText, []string{keysPage, "a 1\n"}[min(before, 1)])(w, r)
		case "untyped":
			answers("", "a 1\n")(w, r)
		case "utf8":
			answers(typeText, "{\"a.b\"} 1\n")(w, r)
		case "go":
			client.ServeHTTP(w, r)
		case "guarded":
			guarded(w, r)
		case "moved":
			http.Redirect(w, r, "/text/"+job, http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

// tell adds what can be observed of the receiver itself.
func (g *gallery) tell(r *rig, log string) {
	failures, _ := os.ReadFile(log)
	for _, job := range r.Snapshot().Jobs {
		g.mu.Lock()
		words := g.of(job.Name).words
		g.of(job.Name).empty = job.Drops > 0 && len(job.Targets) == 0
		words[fmt.Sprintf("dropped %d", len(job.Dropped))] = true
		for _, target := range job.Targets {
			words["interval "+target.Interval.String()] = true
		}
		if strings.Contains(string(failures), fmt.Sprintf("404 Not Found\",\"job_name\":%q", job.Name)) {
			words["log 404"] = true
		}
		words["reason "+r.reasonOf(job.Name)] = true
		g.mu.Unlock()
	}
}

// has reports whether words were observed of a job, and whether that is certain. That they were not is certain only
// after enough observations.
func (g *gallery) has(job, words string) (seen, certain bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.of(job)
	for one := range of.words {
		seen = seen || strings.Contains(one, words)
	}
	return seen, seen || of.reports > 2 || of.empty
}

// startHTTP2 starts a server that speaks only HTTP/2. Go's would speak HTTP/1.1 with clients that do not offer it.
func startHTTP2(s *httptest.Server) {
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		config := s.TLS.Clone()
		config.GetConfigForClient = nil
		config.NextProtos = []string{"h2"}
		if !slices.Contains(hello.SupportedProtos, "h2") {
			config.NextProtos = []string{"h3"}
		}
		return config, nil
	}}
	startTLS(s)
}

// Every key of a scrape configuration makes a difference to scrapes.
func TestEveryKeyOfAJobMakesADifference(t *testing.T) {
	require.Equal(t, keysOf(promconfig.ScrapeConfig{}), slices.Sorted(maps.Keys(differences)), "Prometheus has other keys than this test")
	b, dir := newBank(t), t.TempDir()
	g := &gallery{sights: map[string]*sight{}}
	server := httptest.NewServer(g.serve(b))
	defer server.Close()
	secure := httptest.NewUnstartedServer(g.serve(b))
	secure.EnableHTTP2 = true
	startTLS(secure)
	defer secure.Close()
	alone := httptest.NewUnstartedServer(g.serve(b))
	startHTTP2(alone)
	defer alone.Close()
	t.Setenv("HTTP_PROXY", server.URL)
	files := map[string]string{
		"ca": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})), "key": "honk",
		"two.json": fmt.Sprintf(`[{"targets": [%q, "localhost:1"]}]`, server.Listener.Addr()),
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}

	var config strings.Builder
	config.WriteString("local_identity: false\nconfig:\n  global: {scrape_interval: 1s, scrape_timeout: 1s}\n  scrape_configs:\n")
	names := map[string][2]string{}
	for key, d := range differences {
		value, rest, _ := strings.Cut(d.keys, "\n")
		names[key] = [2]string{key + "/with", key + "/without"}
		for i, job := range names[key] {
			address := server.Listener.Addr()
			switch d.kind {
			case "tls":
				address = secure.Listener.Addr()
			case "http2":
				address = alone.Listener.Addr()
			}
			lines := []string{fmt.Sprintf("static_configs: [{targets: [%q]}]", address), rest}
			if i == 0 {
				lines = append(lines, key+": "+value)
			}
			if key != "job_name" || i > 0 {
				lines = append(lines, "job_name: "+job)
			}
			if key != "metrics_path" || i > 0 {
				lines = append(lines, fmt.Sprintf("metrics_path: /%s/%s", strings.NewReplacer("tls", "text", "http2", "text").Replace(d.kind), job))
			}
			config.WriteString("    - " + strings.ReplaceAll(strings.Join(lines, "\n"), "\n", "\n      ") + "\n")
		}
	}
	names["job_name"] = [2]string{"renamed", "job_name/without"}
	filled := strings.NewReplacer(
		"BANK", b.section(), "AUTHORITY", filepath.Join(dir, "ca"), "KEY", filepath.Join(dir, "key"), "DIR", dir, "PROXY", server.Listener.Addr().String(),
	).Replace(config.String())
	r := run(t, filled, withConsumer(g), withoutTraces)

	for key, d := range differences {
		t.Run(key, func(t *testing.T) {
			where, not := names[key][0], names[key][1]
			words, other := strings.CutPrefix(d.want, "-")
			if other {
				where, not = not, where
			}
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				g.tell(r, filepath.Join(dir, "failures"))
				here, _ := g.has(where, words)
				assert.True(c, here, "%q has not been seen of %s", words, where)
				there, certain := g.has(not, words)
				assert.False(c, there, "%q has been seen of %s", words, not)
				assert.True(c, certain, "too little has been seen of %s", not)
			}, patience, 10*glance)
		})
	}
}

// globals has every key of the global section with a value that is not the default.
var globals = map[string]string{
	"always_scrape_classic_histograms":   "true",
	"body_size_limit":                    "10MB",
	"convert_classic_histograms_to_nhcb": "true",
	"evaluation_interval":                "7s",
	"external_labels":                    "{flock: north}",
	"extra_scrape_metrics":               "true",
	"keep_dropped_targets":               "1",
	"label_limit":                        "1",
	"label_name_length_limit":            "1",
	"label_value_length_limit":           "1",
	"metric_name_escaping_scheme":        "dots",
	"metric_name_validation_scheme":      "legacy",
	"query_log_file":                     "queries",
	"rule_query_offset":                  "1s",
	"sample_limit":                       "1",
	"scrape_failure_log_file":            "failures",
	"scrape_interval":                    "11s",
	"scrape_native_histograms":           "true",
	"scrape_protocols":                   "[PrometheusText0.0.4]",
	"scrape_timeout":                     "9s",
	"target_limit":                       "1",
}

// Global keys that concern scrapes apply to each job, and the test above shows their effect. The others do not concern
// scrapes, and the README says so.
func TestEveryKeyOfAllJobsReachesThem(t *testing.T) {
	require.Equal(t, keysOf(promconfig.GlobalConfig{}), slices.Sorted(maps.Keys(globals)), "Prometheus has other keys than this test")
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	read := func(global string) (*promconfig.ScrapeConfig, string) {
		cfg := configure(t, fmt.Sprintf("config: {global: {%s}, scrape_configs: [{job_name: test}]}", global))
		all, err := cfg.read()
		require.NoError(t, err)
		return all.jobs[0], cfg.Prometheus.external().String()
	}
	plain, external := read("")
	for key, value := range globals {
		job, labels := read(key + ": " + value)
		switch key {
		case "evaluation_interval", "query_log_file", "rule_query_offset":
			assert.Equal(t, plain, job, key)
			assert.Contains(t, string(readme), key+"`")
		case "external_labels":
			assert.NotEqual(t, external, labels, "TestExternalLabelsAgainstStock shows what comes of it")
		default:
			assert.NotEqual(t, plain, job, key)
		}
	}
}

// References to secrets need a secret manager, which a Collector does not have.
func TestReferencesToSecretsAreErrors(t *testing.T) {
	found := 0
	for section, of := range map[string]struct {
		zero any
		keys string
	}{
		"authorization": {commonconfig.Authorization{}, ""},
		"basic_auth":    {commonconfig.BasicAuth{}, "username: goose,"},
		"oauth2":        {commonconfig.OAuth2{}, "client_id: goose, token_url: http://localhost/,"},
		"tls_config":    {commonconfig.TLSConfig{}, ""},
	} {
		for _, key := range keysOf(of.zero) {
			if !strings.HasSuffix(key, "_ref") {
				continue
			}
			found++
			others := of.keys
			switch key {
			case "username_ref":
				others = ""
			case "cert_ref":
				others = "key_ref: vault,"
			case "key_ref":
				others = "cert_ref: vault,"
			case "client_certificate_key_ref":
				others += "grant_type: urn:ietf:params:oauth:grant-type:jwt-bearer,"
			}
			r := prepare(t, configure(t, fmt.Sprintf("config: {scrape_configs: [{job_name: test, %s: {%s %s: vault}}]}", section, others, key)))
			require.ErrorContains(t, r.Start(t.Context(), componenttest.NewNopHost()), "secret", "%s.%s", section, key)
		}
	}
	assert.Equal(t, 8, found)
}

// collectorKeys returns the keys of a component's configuration, as paths. It leaves out the contents of types of other
// authors, which are the same wherever they are used.
func collectorKeys(of reflect.Type, path string) (keys []string) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if strings.HasPrefix(of.Name(), "Optional[") {
		value, _ := of.FieldByName("value")
		return collectorKeys(value.Type, path)
	}
	if of.Kind() != reflect.Struct || !strings.Contains(of.PkgPath(), "prometheusreceiver") {
		return nil
	}
	for field := range of.NumField() {
		f := of.Field(field)
		key, options, _ := strings.Cut(f.Tag.Get("mapstructure"), ",")
		switch {
		case options == "squash":
			keys = append(keys, path+f.Type.String())
		case key != "" && key != "-":
			keys = append(append(keys, path+key), collectorKeys(f.Type, path+key+".")...)
		}
	}
	return keys
}

// Configurations of the Collector's Prometheus receiver are valid for this one, too.
func TestEveryKeyOfTheCollectorsReceiverIsThere(t *testing.T) {
	theirs := collectorKeys(reflect.TypeFor[prometheusreceiver.Config](), "")
	require.Contains(t, theirs, "target_allocator.collector_id")
	require.Contains(t, theirs, "api_server.enabled")
	assert.Subset(t, collectorKeys(reflect.TypeFor[Config](), ""), theirs)
}
