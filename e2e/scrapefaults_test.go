// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	goodPage = "# TYPE geese_flying gauge\ngeese_flying{flock=\"north\"} 42\ngeese_flying{flock=\"south\"} 43\n"
	// The memory that malicious targets may take, in MiB: several pages of the largest allowed size, as many as a busy
	// machine reads at a time, but less than one of the bombs.
	maxHostile = 400
)

// What is wrong with a page, and the reason that the receiver reports.
var badPages = []struct {
	name, keys, reason string
	page               targets.Page
}{
	{"reset", "", "connection_reset", targets.Page{Fault: targets.Reset}},
	{"reset-mid-body", "", "connection_reset", targets.Page{Body: strings.Repeat(goodPage, 1000), Fault: targets.ResetMidBody}},
	{"hang", "", "timeout", targets.Page{Fault: targets.Hang}},
	{"drip", "", "timeout", targets.Page{Body: goodPage, Drip: 1, DripPause: 100 * time.Millisecond}},
	{"endless", "", "body_size", targets.Page{Body: strings.Repeat(goodPage, 1000), Fault: targets.Endless}},
	{"endless-line", ", body_size_limit: 1MB", "body_size", targets.Page{Body: strings.Repeat("g", 1<<16), Fault: targets.Endless}},
	{"large", ", body_size_limit: 1MB", "body_size", targets.Page{Body: strings.Repeat(goodPage, 20000)}},
	{"gzip-bomb", ", body_size_limit: 1MB", "body_size", bomb()},
	{"gzip-bomb-without-limit", "", "body_size", bomb()},
	{"zstd-bomb", "", "body_size", zstdBomb()},
	{"broken-gzip", "", "encoding", targets.Page{Body: goodPage, Encodings: []string{}, Header: http.Header{"Content-Encoding": {"gzip"}}}},
	{"unknown-encoding", "", "encoding", targets.Page{Body: goodPage, Encodings: []string{}, Header: http.Header{"Content-Encoding": {"br"}}}},
	{"html", "", "parse", targets.Page{Body: "<!doctype html><p>Geese", ContentType: "text/html"}},
	{"status", "", "status", targets.Page{Body: goodPage, Status: 500}},
	{"samples", ", sample_limit: 1", "limit", targets.Page{Body: goodPage}},
	{"labels", ", label_limit: 3", "limit", targets.Page{Body: goodPage}},
	{"many-labels", ", label_limit: 100", "limit", targets.Page{Body: "geese_flying{" + strings.Repeat("flock=\"north\",", 10_000) + "} 1\n"}},
	{"long-label", ", label_name_length_limit: 100", "limit", targets.Page{Body: "geese_flying{" + strings.Repeat("l", 64<<10) + "=\"north\"} 1\n"}},
	{"long-value", ", label_value_length_limit: 100", "limit", targets.Page{Body: "geese_flying{flock=\"" + strings.Repeat("v", 64<<10) + "\"} 1\n"}},
	{"bad-utf-8", "", "parse", targets.Page{Body: goodPage + "geese_flying{flock=\"\xff\"} 1\n"}},
	{"nul", "", "parse", targets.Page{Body: goodPage + "geese\x00flying 1\n"}},
	{"crlf", "", "parse", targets.Page{Body: strings.ReplaceAll(goodPage, "\n", "\r\n")}},
	{"redirects", "", "protocol", targets.Page{Status: http.StatusFound, Header: http.Header{"Location": {"/metrics"}}}},
	{"redirect", ", follow_redirects: false", "status", targets.Page{Status: http.StatusFound, Header: http.Header{"Location": {"/metrics"}}}},
}

// bomb returns a page of half a gigabyte in half a megabyte. The text repeats, so the compressed form of one copy is
// repeated: compressing all of it would take a minute under the race detector.
func bomb() targets.Page {
	piece := bytes.Repeat([]byte(goodPage), 10000)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(piece) // a buffer accepts everything
	_ = w.Flush()
	first := packed.Len()
	_, _ = w.Write(piece) // compressed as a repetition of the first
	_ = w.Flush()
	body := bytes.Clone(packed.Bytes()[:first])
	again := bytes.Clone(packed.Bytes()[first:])
	times := 512 << 20 / len(piece)
	body = append(body, bytes.Repeat(again, times-1)...)
	sum := uint32(0)
	for range times {
		sum = crc32.Update(sum, crc32.IEEETable, piece)
	}
	body = append(body, 3, 0) // an empty last block
	body = binary.LittleEndian.AppendUint32(body, sum)
	body = binary.LittleEndian.AppendUint32(body, uint32(times*len(piece)))
	return targets.Page{Body: string(body), Encodings: []string{}, Header: http.Header{"Content-Encoding": {"gzip"}}}
}

// zstdBomb also returns a page of half a gigabyte, of identical frames.
func zstdBomb() targets.Page {
	piece := bytes.Repeat([]byte(goodPage), 10000)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err) // without options there is no error
	}
	defer encoder.Close()
	body := bytes.Repeat(encoder.EncodeAll(piece, nil), 512<<20/len(piece))
	return targets.Page{Body: string(body), Encodings: []string{}, Header: http.Header{"Content-Encoding": {"zstd"}}}
}

// Bad targets are reported as down, with the right reason and bounded memory. Others are unaffected, and a target that
// recovers is up again.
func TestScrapingOutlivesBadTargets(t *testing.T) {
	server := rwserver.New(t, rwserver.Options{})
	var lines []string
	bad := map[string]*targets.Target{}
	for _, b := range badPages {
		bad[b.name] = targets.New(t, b.page)
		lines = append(lines, job(b.name, bad[b.name].Addr(), b.keys))
	}
	good := targets.NewFunc(t, func(scrape int) targets.Page { return targets.Page{Body: fmt.Sprintf(beatsPage, scrape)} })
	odd := targets.New(t, targets.Page{Body: goodPage, ContentType: "text/html"})
	lines = append(lines, job("good", good.Addr(), ", scrape_interval: 200ms, scrape_timeout: 200ms"), job("odd", odd.Addr(), ""),
		job("refused", freeport.Addr(t), ""))
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(lines...)))

	for _, b := range badPages {
		wait.Until(t, firstSeries, func() (bool, string) {
			up := samples(server, "up", b.name)
			return len(up) >= 3, fmt.Sprintf("%d scrapes of %s", len(up), b.name)
		})
		for _, up := range samples(server, "up", b.name) {
			assert.Zero(t, up.V, b.name)
		}
		assert.Empty(t, server.Series("geese_flying", "job", b.name))
	}
	text := page(t, c.telemetry)
	for _, b := range badPages {
		assert.GreaterOrEqual(t, failures(t, text, b.reason), 1.0, b.name)
	}
	assert.GreaterOrEqual(t, failures(t, text, "connection_refused"), 1.0)
	assert.NotEmpty(t, samples(server, "geese_flying", "odd"), "a type that says nothing is taken for the text format")
	usage := c.Usage()
	t.Logf("with bad targets: %.1f MiB, at most %.1f, of files too", mib(usage.Anon), mib(usage.PeakRSS))
	assert.Less(t, mib(usage.PeakRSS), float64(maxHostile))

	for _, b := range badPages {
		bad[b.name].Then(targets.Page{Body: "geese_flying 1\n"})
	}
	for _, b := range badPages {
		wait.Until(t, firstSeries, func() (bool, string) {
			up := samples(server, "up", b.name)
			return up[len(up)-1].V == 1, b.name + " is still down"
		})
	}
	assert.Zero(t, c.Stop(syscall.SIGINT, drainTime))
	assert.Greater(t, everyBeat(t, server, model.JobLabel, "good"), 10)
	assert.Empty(t, server.Violations())
	assert.Empty(t, server.StepsBack())
}

// samples returns a metric's samples in a job with one target.
func samples(server *rwserver.Server, name, job string) (all []rwserver.Sample) {
	for _, series := range server.Series(name, "job", job) {
		all = append(all, series.Samples...)
	}
	return all
}

func failures(t *testing.T, text, reason string) float64 {
	t.Helper()
	return metricWith(t, text, "otelcol_receiver_fastprometheus_scrape_failures", fmt.Sprintf("reason=%q", reason))
}
