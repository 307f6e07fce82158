// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/scenario"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

var update = flag.Bool("update", false, "write what arrives in scenarios as what is expected")

// The settings that scenarios share. The timeout is long: a scrape that fails on a busy machine would change the
// result.
const (
	pagesFrame = `
receivers: {fastprometheus: {config: {global: {scrape_interval: 8s, scrape_timeout: 8s}}}}
`
	sinkFrame = `
exporters:
  remotewrite:
    endpoint: http://$SINK/api/v1/write
    batch: {timeout: 100ms}
    retry: {initial_interval: 50ms, max_interval: 200ms}
    target_info: {enabled: false}
`
)

const (
	// With -update, a scenario is complete once nothing has arrived for this long.
	scenarioQuiet = 20 * time.Second
	scenarioTime  = 4 * time.Minute
)

// Scenarios describe components in readable files: the input, what arrives, and the collector's metrics. After an
// intended change, `go test -run TestScenarios -update` rewrites them.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scenarios/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			s := scenario.Read(t, file)
			stage := setStage(t, s)
			if *update {
				stage.settle(t, s)
				s.Write(t, file)
				return
			}
			wait.Until(t, scenarioTime, func() (bool, string) {
				arrived, telemetry := stage.arrived(s), stage.telemetry(t, s)
				return arrived == s.Arrived && telemetry == s.Telemetry, fmt.Sprintf("arrived:\n%s\nnot:\n%s\ntelemetry:\n%s\nnot:\n%s", arrived, s.Arrived, telemetry, s.Telemetry)
			})
			assert.Empty(t, stage.sink.Violations())
			assert.Zero(t, stage.agent.Stop(syscall.SIGTERM, drainTime))
			assert.Equal(t, s.Arrived, stage.arrived(s), "nothing else comes at the end")
		})
	}
}

// stage is a collector with its sources and its destination.
type stage struct {
	agent *collector
	sink  *rwserver.Server
	names *strings.Replacer // replaces addresses
}

func setStage(t *testing.T, s *scenario.Scenario) *stage {
	t.Helper()
	sink := rwserver.New(t, rwserver.Options{})
	for _, status := range s.Answers {
		sink.Then(rwserver.Step{Status: status})
	}
	pages := make([]targets.Page, 0, len(s.Pages))
	for _, p := range s.Pages {
		page := targets.Page{Status: p.Status, Body: p.Body}
		if strings.HasSuffix(p.Body, "# EOF\n") {
			page.ContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"
		}
		pages = append(pages, page)
	}
	configs := []string{sinkFrame, s.Config}
	if len(pages) == 0 {
		pages = append(pages, targets.Page{})
	} else {
		configs = append(configs, pagesFrame)
	}
	target, otlp, own := targets.New(t, pages...), freeport.Addr(t), freeport.Addr(t)
	addresses := strings.NewReplacer("$SINK", sink.Addr(), "$TARGET", target.Addr(), "$OTLP", otlp, "$OWN", own)
	for i := range configs {
		configs[i] = addresses.Replace(configs[i])
	}
	stage := &stage{
		sink:  sink,
		names: strings.NewReplacer(sink.Addr(), "$SINK", target.Addr(), "$TARGET", otlp, "$OTLP", own, "$OWN"),
		agent: startDistribution(t, "godwit", configs...),
	}
	for i, text := range s.Sends {
		_, err := pmetricotlp.NewGRPCClient(dial(t, otlp)).Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(scenario.Metrics(t, text, i)))
		require.NoError(t, err)
	}
	return stage
}

// arrived returns the series at the destination with their values, without those about the duration of scrapes. Equal
// successive values are listed once.
func (s *stage) arrived(of *scenario.Scenario) string {
	var lines []string
	for _, series := range s.sink.Series("") {
		if strings.HasPrefix(series.Labels.Get(model.MetricNameLabel), "scrape_") {
			continue
		}
		var values []string
		for _, sample := range series.Samples {
			value := "stale"
			if !sample.Stale() {
				value = strconv.FormatFloat(sample.V, 'g', -1, 64)
			}
			values = append(values, value)
		}
		for _, h := range series.Histograms {
			switch {
			case h.Int != nil:
				values = append(values, h.Int.String())
			case h.Float != nil:
				values = append(values, h.Float.String())
			}
		}
		if values = slices.Compact(values); of.OnlyLast {
			values = values[len(values)-1:]
		}
		lines = append(lines, s.names.Replace(fmt.Sprintf("%s %s", series.Labels, strings.Join(values, " "))))
	}
	return scenario.Lines(lines)
}

var notOfIt = regexp.MustCompile(`(otel_scope_\w+|service_\w+)="[^"]*",?`)

// telemetry returns the collector's metrics that the scenario lists.
func (s *stage) telemetry(t *testing.T, of *scenario.Scenario) string {
	var lines []string
	for line := range strings.Lines(page(t, s.agent.telemetry)) {
		line = notOfIt.ReplaceAllString(strings.TrimSpace(line), "")
		end := max(strings.LastIndexByte(line, ' '), 0) // the value is the last word
		name, labels, _ := strings.Cut(line[:end], "{")
		if slices.Contains(of.Metrics, name) {
			labels = strings.TrimSuffix(strings.TrimSuffix(labels, "}"), ",")
			lines = append(lines, s.names.Replace(fmt.Sprintf("%s{%s}%s", name, labels, line[end:])))
		}
	}
	return scenario.Lines(lines)
}

// settle waits until nothing more arrives, and updates the scenario.
func (s *stage) settle(t *testing.T, of *scenario.Scenario) {
	t.Helper()
	since := time.Now()
	wait.Until(t, scenarioTime, func() (bool, string) {
		arrived, telemetry := s.arrived(of), s.telemetry(t, of)
		if arrived != of.Arrived || telemetry != of.Telemetry {
			of.Arrived, of.Telemetry, since = arrived, telemetry, time.Now()
		}
		return time.Since(since) > scenarioQuiet, "something still arrives"
	})
}
