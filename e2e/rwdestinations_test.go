// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/internal/certtest"
)

// One page goes to many exporters, whose destinations all have different faults at the same time.
const sideBySide = `
receivers:
  fastprometheus: {config: {scrape_configs: [{job_name: numbers, scrape_interval: 200ms, scrape_timeout: 200ms, static_configs: [{targets: [%q]}]}]}}
service:
  pipelines: {metrics: {receivers: [fastprometheus], exporters: [%s]}}
  telemetry: {logs: {sampling: {enabled: false}}}
exporters:
%s`

const (
	// The series of the page. A request is larger than smallRequest, and than what a slow reader reads at a time.
	pageNumbers = 100
	// The memory that the agent may take with all destinations, in MiB.
	sideBySideMemory = 200
	// The exporter's timeouts for a destination that never answers, and for others.
	shortTimeout, longTimeout = 3 * time.Second, 30 * time.Second
)

// numbersPage returns a page in which each value is the number of the scrape.
func numbersPage(scrape int) targets.Page {
	var b strings.Builder
	b.WriteString("# TYPE " + tallyName + " gauge\n")
	for series := range pageNumbers {
		noise := sha256.Sum256([]byte{byte(series)}) // not compressible
		fmt.Fprintf(&b, "%s{series=\"%d\",noise=%q} %d\n", tallyName, series, hex.EncodeToString(noise[:]), scrape)
	}
	return targets.Page{Body: b.String()}
}

// destination is a server with a fault, and the samples of the page that arrived there.
type destination struct {
	*rwserver.Server

	name string
	// endpoint and settings are the exporter's.
	endpoint, settings string
	// said are the log messages expected about it.
	said []string
	// broken is set if it accepts nothing from the start; spoil, unless nil, breaks it later.
	broken bool
	spoil  func()
	mend   func()
	// status is its response while it is broken; 0 if there is none.
	status int
	// pause is how long it asks the exporter to wait.
	pause time.Duration
	// twice is set if samples may arrive twice, because some responses are lost.
	twice bool

	mu      sync.Mutex
	arrived map[numbered]bool
	// newest is the last scrape that arrived, by series.
	newest   [pageNumbers]int
	repeated int
	problems []string
}

// numbered identifies a sample by its series and its scrape.
type numbered struct{ series, scrape int }

// observe records the samples that arrive.
func (d *destination) observe(series rwserver.Series) {
	if series.Labels.Get(model.MetricNameLabel) != tallyName {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	i, err := strconv.Atoi(series.Labels.Get("series"))
	if err != nil || i < 0 || i >= pageNumbers {
		d.problem("nobody sent %v", series.Labels)
		return
	}
	for _, sample := range series.Samples {
		one := numbered{i, int(sample.V)}
		switch {
		case value.IsStaleNaN(sample.V): // a scrape may fail on a busy machine
		case d.arrived[one]:
			d.repeated++
		default:
			if one.scrape < d.newest[i] {
				d.problem("scrape %d of series %d comes after %d", one.scrape, i, d.newest[i])
			}
			d.arrived[one], d.newest[i] = true, one.scrape
		}
	}
}

func (d *destination) problem(format string, args ...any) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, fmt.Sprintf(format, args...))
	}
}

// has returns a condition: a scrape, or a later one, has arrived in all series.
func (d *destination) has(scrape int) func() (bool, string) {
	return func() (bool, string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for i, newest := range d.newest {
			if newest < scrape || len(d.arrived) == 0 {
				return false, fmt.Sprintf("%s: of series %d has arrived what was scraped up to %d, not %d", d.name, i, newest, scrape)
			}
		}
		return true, ""
	}
}

// lost counts the samples of these scrapes that have not arrived.
func (d *destination) lost(scrapes []int) (samples int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for series := range pageNumbers {
		for _, scrape := range scrapes {
			if !d.arrived[numbered{series, scrape}] {
				samples++
			}
		}
	}
	return samples
}

// arrivedAnywhere returns the scrapes before one that arrived at any destination. The others failed.
func arrivedAnywhere(all []*destination, before int) (scrapes []int) {
	for scrape := range before {
		if slices.ContainsFunc(all, func(d *destination) bool { return d.lost([]int{scrape}) < pageNumbers }) {
			scrapes = append(scrapes, scrape)
		}
	}
	return scrapes
}

// exporter returns the exporter's ID.
func (d *destination) exporter() string {
	return "remotewrite/" + strings.NewReplacer(" ", "-", ",", "").Replace(d.name)
}

// counted sums a metric of the exporter over the series with a label.
func (d *destination) counted(t *testing.T, text, name, label string) int {
	t.Helper()
	return int(metricWith(t, text, name, fmt.Sprintf("exporter=%q", d.exporter()), label))
}

// log returns the messages that c logged about it.
func (d *destination) log(c *collector) (messages []string) {
	for line := range strings.Lines(c.Output()) {
		fields := strings.Split(line, "\t")
		if len(fields) > 4 && strings.Contains(fields[4], fmt.Sprintf("%q", d.exporter())) {
			messages = append(messages, fields[3])
		}
	}
	return messages
}

// Destinations with faults, each with an exporter of its own: what can arrive does, in order, and once where the
// exporter can know; the rest is counted; and each change is logged.
func TestFaultsOfDestinations(t *testing.T) {
	t.Parallel()
	under, unnamed := ownNames(t)
	all := append(misbehaving(t), unreachable(t)...)
	all = append(all, unnamed...)

	target := targets.NewFunc(t, numbersPage)
	var exporters, names []string
	for _, d := range all {
		names = append(names, d.exporter())
		exporters = append(exporters, fmt.Sprintf("  %s: {endpoint: %q, batch: {timeout: 50ms}, retry: {initial_interval: 50ms, max_interval: 200ms}, "+
			"circuit_breaker: {consecutive_failures: 3, open_for: 200ms}, target_info: {enabled: false}%s}\n", d.exporter(), d.endpoint, d.settings))
	}
	c := startUnder(t, under, "godwit-agent", fmt.Sprintf(sideBySide, target.Addr(), strings.Join(names, ", "), strings.Join(exporters, "")))

	for _, d := range all {
		if !d.broken {
			wait.Until(t, firstSeries, d.has(0)) // so that its format is known to work
			d.spoil()
		}
	}
	from := make([]int, len(all))
	for i, d := range all {
		from[i] = len(d.Requests())
	}
	for i, d := range all {
		wait.Until(t, firstSeries, func() (bool, string) {
			if len(d.said) > 0 {
				said := d.log(c)
				return len(said) > 0 && said[0] == d.said[0], fmt.Sprintf("%s: the log says %q", d.name, said)
			}
			n := len(d.Requests()) - from[i]
			return n >= sufferers, fmt.Sprintf("%s: %d of %d requests", d.name, n, sufferers)
		})
	}
	usage := c.Usage()
	for _, d := range all {
		d.mend()
	}
	last := target.Scrapes()
	for _, d := range all {
		wait.Until(t, firstSeries, d.has(last))
	}
	scrapes := arrivedAnywhere(all, last)
	wait.Until(t, telemetryWait, func() (bool, string) { // counters are refreshed periodically
		text := page(t, c.telemetry)
		for _, d := range all {
			lost := d.lost(scrapes)
			if n := d.counted(t, text, "otelcol_exporter_send_failed_metric_points", ""); n < max(lost, d.refused()) {
				return false, fmt.Sprintf("%s: %d samples are missing, %d were refused, %d are counted", d.name, lost, d.refused(), n)
			}
		}
		return true, ""
	})
	text := page(t, c.telemetry)
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.NotContains(t, c.Output(), "panic:")
	assert.Less(t, mib(usage.PeakRSS), float64(sideBySideMemory))

	// Of the scrape in flight when the signal came, some destinations may have nothing.
	scrapes = arrivedAnywhere(all, target.Scrapes()-1)
	for _, d := range all {
		d.judge(t, c, text, scrapes)
	}
	t.Logf("%d destinations, %d scrapes; at most %.1f MiB; CPU %v", len(all), len(scrapes), mib(usage.PeakRSS), c.CPUTime())
}

// judge checks the log, the metrics and the samples after c has ended.
func (d *destination) judge(t *testing.T, c *collector, text string, scrapes []int) {
	t.Helper()
	assert.Equal(t, d.said, d.log(c), d.name)
	assert.Empty(t, d.Violations(), d.name)
	retries := d.counted(t, text, "otelcol_exporter_remotewrite_retries", "")
	if len(d.said) > 0 && d.said[0] == isDown {
		assert.Positive(t, retries, d.name)
	}
	suffered := d.status == 0
	var last rwserver.Request
	for _, r := range d.Requests() {
		suffered = suffered || r.Status == d.status
		if last.Status == http.StatusTooManyRequests {
			assert.GreaterOrEqual(t, r.At.Sub(last.At), d.pause, "%s: it was asked too soon", d.name)
			assert.Positive(t, retries, d.name)
		}
		last = r
	}
	assert.True(t, suffered, "%s: it never answered %d", d.name, d.status)
	lost := d.lost(scrapes)
	assert.Empty(t, d.problems, d.name)
	if !d.twice {
		assert.Zero(t, d.repeated, "%s: samples arrived twice", d.name)
	}
	failed := d.counted(t, text, "otelcol_exporter_send_failed_metric_points", "")
	assert.Equal(t, failed, d.counted(t, text, "otelcol_exporter_remotewrite_dropped_items", `reason="rejected"`), d.name)
	if refused := d.refused(); refused > 0 {
		assert.Equal(t, refused, failed, d.name)
	}
	if len(d.said) > 0 && d.said[0] == lostSome[0] {
		assert.Positive(t, lost, d.name)
		assert.GreaterOrEqual(t, failed, lost, d.name)
		return
	}
	assert.Zero(t, lost, d.name)
	assert.Zero(t, failed, d.name)
}

// refused counts the samples that it rejected for good.
func (d *destination) refused() (samples int) {
	for _, r := range d.Requests() {
		if refusedForGood(r) {
			samples += r.Samples
		}
	}
	return samples
}

// misbehaving returns destinations that answer wrongly.
func misbehaving(t *testing.T) (all []*destination) {
	t.Helper()
	add := func(name string, step rwserver.Step, said []string, pause time.Duration) {
		d := &destination{arrived: map[numbered]bool{}, name: name, said: said, status: step.Status, pause: pause, twice: step.Keep || step.NoWritten}
		if step.MaxRaw > 0 {
			d.status = http.StatusRequestEntityTooLarge
		}
		d.Server = rwserver.New(t, rwserver.Options{CountOnly: true, Observe: d.observe})
		d.endpoint, d.settings = d.URL(), fmt.Sprintf(", timeout: %v", longTimeout)
		if step.Fault == rwserver.Hang {
			d.settings, d.twice = fmt.Sprintf(", timeout: %v", shortTimeout), true // a good response may be late on a busy machine
		}
		d.spoil, d.mend = func() { spoil(d.Server, step) }, func() { d.Always(rwserver.Step{}) }
		all = append(all, d)
	}
	for _, fault := range harmless {
		add(fault.name, fault.step, fault.said, fault.pause)
	}
	add("400", rwserver.Step{Status: 400, Body: "never"}, lostSome, 0)
	return all
}

// unreachable returns destinations that cannot be reached until mend is called.
func unreachable(t *testing.T) (all []*destination) {
	t.Helper()
	certificate, key := certtest.SelfSigned(t)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(authority, []byte(certificate), 0o600))
	good, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	require.NoError(t, err)
	certificate, key = certtest.SelfSigned(t)
	strange, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	require.NoError(t, err)
	secure := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	add := func(name, scheme string, said []string, bad, well *tls.Config) {
		d := &destination{arrived: map[numbered]bool{}, name: name, said: said, broken: true}
		var config atomic.Pointer[tls.Config]
		config.Store(bad)
		d.Server = rwserver.New(t, rwserver.Options{CountOnly: true, Observe: d.observe, Secure: config.Load})
		d.endpoint = scheme + "://" + d.Addr() + "/api/v1/write"
		// Only one format: before any delivery, a 400 would be taken for a rejection of the format.
		d.settings = fmt.Sprintf(", timeout: %v, protobuf_message: \"2.0\", compression: zstd, http: {tls: {ca_file: %q}}", longTimeout, authority)
		d.mend = func() { config.Store(well) }
		all = append(all, d)
	}
	add("certificate of a stranger", "https", downAndUp, secure(strange), secure(good))
	add("certificate that has expired", "https", downAndUp, secure(expired(t, good)), secure(good))
	add("HTTP where TLS is expected", "https", downAndUp, nil, secure(good))
	add("TLS where HTTP is expected", "http", lostSome, secure(good), nil) // Go's servers and nginx answer it with 400

	closed := &destination{arrived: map[numbered]bool{}, name: "nobody listens", said: downAndUp, broken: true}
	addr := freeport.Addr(t)
	closed.Server = &rwserver.Server{}
	closed.endpoint, closed.settings = "http://"+addr+"/api/v1/write", fmt.Sprintf(", timeout: %v", longTimeout)
	closed.mend = func() {
		closed.Server = rwserver.New(t, rwserver.Options{Addr: addr, CountOnly: true, Observe: closed.observe})
	}
	return append(all, closed)
}

// expired returns a certificate of the same authority and key that expired yesterday.
func expired(t *testing.T, good tls.Certificate) tls.Certificate {
	t.Helper()
	template := *good.Leaf
	template.NotBefore, template.NotAfter = template.NotBefore.AddDate(0, 0, -2), template.NotAfter.AddDate(0, 0, -1)
	signed, err := x509.CreateCertificate(rand.Reader, &template, good.Leaf, good.Leaf.PublicKey, good.PrivateKey)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: good.PrivateKey}
}

// ownNames returns a command prefix with an empty /etc/hosts, and a destination whose name resolves only later.
func ownNames(t *testing.T) (under []string, all []*destination) {
	t.Helper()
	dir := t.TempDir()
	names, servers := filepath.Join(dir, "hosts"), filepath.Join(dir, "resolv.conf")
	require.NoError(t, os.WriteFile(names, nil, 0o600))
	require.NoError(t, os.WriteFile(servers, []byte("nameserver 127.0.0.1\n"), 0o600))
	mount := []string{"unshare", "-rm", "sh", "-c", `mount --bind "$0" /etc/hosts && mount --bind "$1" /etc/resolv.conf && shift && exec "$@"`, names, servers}
	if out, err := exec.CommandContext(t.Context(), mount[0], append(mount[1:], "true")...).CombinedOutput(); err != nil {
		t.Logf("without a name that does not resolve, for no file can be mounted here: %v: %s", err, out)
		return nil, nil
	}
	d := &destination{arrived: map[numbered]bool{}, name: "name that nobody knows", said: downAndUp, broken: true}
	d.Server = rwserver.New(t, rwserver.Options{CountOnly: true, Observe: d.observe})
	_, port, _ := strings.Cut(d.Addr(), ":")
	d.endpoint, d.settings = "http://destination.test:"+port+"/api/v1/write", fmt.Sprintf(", timeout: %v", longTimeout)
	d.mend = func() { require.NoError(t, os.WriteFile(names, []byte("127.0.0.1 destination.test\n"), 0o600)) }
	return mount, []*destination{d}
}
