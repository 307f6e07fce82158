// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/internal/certtest"
)

const advisedConfig = `
extensions: {console: {endpoint: %q}}
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
processors:
  cardinality:
    idle_timeout: 10s
    %s
exporters: {nop: }
service:
  extensions: [health_check, console]
  pipelines: {metrics: {receivers: [otlp], processors: [cardinality], exporters: [nop]}}
`

// The number of series in explosion, and how many remain without path, user.id and sensor.
const (
	explosionSeries = 2*1000 + 1000 + 1500 + 200 + 400
	explosionLeft   = 2*1 + 1 + 1 + 1 + 400
)

// explosion returns metrics with labels of too many values, and series that differ by target.
func explosion(started pcommon.Timestamp) pmetric.Metrics {
	md := pmetric.NewMetrics()
	all := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	sum := func(to pmetric.MetricSlice, name string) pmetric.NumberDataPointSlice {
		m := to.AppendEmpty()
		m.SetName(name)
		s := m.SetEmptySum()
		s.SetIsMonotonic(true)
		s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return s.DataPoints()
	}
	point := func(to pmetric.NumberDataPointSlice) pcommon.Map {
		p := to.AppendEmpty()
		p.SetStartTimestamp(started)
		p.SetTimestamp(started + 1)
		p.SetIntValue(1)
		return p.Attributes()
	}
	requests, failures, logins := sum(all, "requests"), sum(all, "failures"), sum(all, "logins")
	for i := range 1000 {
		for _, code := range []string{"200", "404"} {
			a := point(requests)
			a.PutStr("path", "/"+strconv.Itoa(i))
			a.PutStr("code", code)
		}
		point(failures).PutStr("path", "/"+strconv.Itoa(i))
	}
	for i := range 1500 {
		point(logins).PutInt("user.id", int64(i))
	}
	gauge := all.AppendEmpty()
	gauge.SetName("temperature")
	sensors := gauge.SetEmptyGauge().DataPoints()
	for i := range 200 {
		point(sensors).PutInt("sensor", int64(i))
	}
	for i := range 400 { // one per target
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", "web")
		rm.Resource().Attributes().PutStr("service.instance.id", "host-"+strconv.Itoa(i))
		point(sum(rm.ScopeMetrics().AppendEmpty().Metrics(), "uptime"))
	}
	return md
}

var savedPercent = regexp.MustCompile(`save about (\d+) %`)

// The recommended rules are valid as they are pasted, and save what they promise. They never drop labels that identify
// targets. A dry run makes the same recommendations for series that its limits would reject.
func TestRecommendedRulesSaveWhatTheySay(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		before string
		series float64 // that are admitted
		error  float64 // tolerance of the promised percentage: rejected series are only estimated, with a standard error of 3
	}{
		"enforce": {"rules: []", explosionSeries, 5},
		"dry run": {"mode: dry_run\n    rules: [{name: exploding, match: {metric: 'regex:requests|failures|logins'}, max_series: 300}]", 300 + 200 + 400, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, console := explode(t, of.before, of.series)
			exit, pasted := command(t, advised, nil, "cardinality", "recommend", "--console", console)
			require.Zero(t, exit, pasted)
			require.Equal(t, 3, strings.Count(pasted, "- name: "), pasted)
			for _, want := range []string{"failures|requests", "path", "logins", "user.id", "temperature", "sensor"} {
				assert.Contains(t, pasted, want)
			}
			assert.NotContains(t, pasted, "service.instance.id")
			assert.Equal(t, name == "dry run", strings.Contains(pasted, "dry run"), pasted)
			match := savedPercent.FindStringSubmatch(pasted)
			require.NotNil(t, match, pasted)
			said, err := strconv.Atoi(match[1])
			require.NoError(t, err)
			assert.InDelta(t, 100-100*float64(explosionLeft)/explosionSeries, said, of.error)
			exit, one := command(t, advised, nil, "cardinality", "recommend", "--console", console, "--rules", "1")
			require.Zero(t, exit, one)
			assert.Equal(t, 1, strings.Count(one, "- name: "), one)
			assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))

			indented := strings.ReplaceAll(pasted, "\n", "\n    ")
			config := configFile(t, fmt.Sprintf(advisedConfig, "127.0.0.1:0", "127.0.0.1:0", indented))
			exit, output := command(t, advised, nil, "validate", "--config", config, "--config", configFile(t, "extensions: {health_check: }"))
			require.Zero(t, exit, output)
			c, console = explode(t, indented, explosionLeft)
			exit, nothing := command(t, advised, nil, "cardinality", "recommend", "--console", console)
			require.Zero(t, exit, nothing)
			assert.NotContains(t, nothing, "- name: ", "there is nothing left to save")
			assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
		})
	}
}

// advised is the distribution to ask.
const advised = "godwit-agent"

// explode starts a collector with these limits, and sends until the wanted number of series is admitted.
func explode(t *testing.T, limits string, want float64) (c *collector, console string) {
	t.Helper()
	at, addr := freeport.Addr(t), freeport.Addr(t)
	c = startDistribution(t, advised, fmt.Sprintf(advisedConfig, at, addr, limits))
	client, began := pmetricotlp.NewGRPCClient(dial(t, addr)), pcommon.NewTimestampFromTime(time.Now())
	wait.Until(t, delivery, func() (bool, string) {
		_, err := client.Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(explosion(began)))
		require.NoError(t, err)
		n := metricWith(t, page(t, c.telemetry), "otelcol_processor_cardinality_series", `rule="total"`)
		return n == want, fmt.Sprintf("there are %v series, not %v", n, want)
	})
	return c, "http://" + at
}

// The command says if there is no processor or no collector.
func TestRecommendSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	exit, output := command(t, "godwit-agent", nil, "cardinality", "recommend", "--console", "http://"+freeport.Addr(t))
	assert.Equal(t, 1, exit)
	assert.Contains(t, output, "extension `console`")
	exit, output = command(t, "godwit-agent", nil, "--help")
	assert.Zero(t, exit)
	assert.Contains(t, output, "cardinality recommend")
}

// A console with TLS answers clients that trust its certificate and have the password or the token; the command tells
// others what is missing.
func TestRecommendAsksAGuardedConsole(t *testing.T) {
	t.Parallel()
	certificate, key := certtest.SelfSigned(t)
	stranger, _ := certtest.SelfSigned(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	trusted, other := write("ca.pem", certificate), write("stranger.pem", stranger)
	for name, guard := range map[string]struct{ extension, right, wrong string }{
		"basicauth": {
			`{htpasswd: {inline: "goose:honk"}}`,
			"Basic " + base64.StdEncoding.EncodeToString([]byte("goose:honk")), "Basic " + base64.StdEncoding.EncodeToString([]byte("goose:hiss")),
		},
		"bearertokenauth": {`{token: honk}`, "Bearer honk", "Bearer hiss"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const distribution = "godwit-gateway"
			at, addr := freeport.Addr(t), freeport.Addr(t)
			startDistribution(t, distribution, fmt.Sprintf(advisedConfig, at, addr, "rules: []"), fmt.Sprintf(`
extensions:
  %[1]s: %[2]s
  console: {auth: {authenticator: %[1]s}, tls: {cert_pem: %[3]q, key_pem: %[4]q}}
service: {extensions: [health_check, console, %[1]s]}
`, name, guard.extension, certificate, key))
			_, err := pmetricotlp.NewGRPCClient(dial(t, addr)).Export(t.Context(),
				pmetricotlp.NewExportRequestFromMetrics(explosion(pcommon.NewTimestampFromTime(time.Now()))))
			require.NoError(t, err)
			ask := func(args ...string) (int, string) {
				return command(t, distribution, nil, append([]string{"cardinality", "recommend", "--console", "https://" + at}, args...)...)
			}
			right, wrong := write(name+"-right", guard.right+"\n"), write(name+"-wrong", guard.wrong)
			exit, output := ask("--ca-file", trusted, "--authorization-file", right)
			require.Zero(t, exit, output)
			assert.Equal(t, 3, strings.Count(output, "- name: "), output)
			for _, refused := range []struct {
				args []string
				says string
			}{
				{[]string{"--authorization-file", right}, "by --ca-file"},
				{[]string{"--ca-file", other, "--authorization-file", right}, "by --ca-file"},
				{[]string{"--ca-file", trusted}, "credentials by --authorization-file"},
				{[]string{"--ca-file", trusted, "--authorization-file", wrong}, "credentials by --authorization-file"},
				{[]string{"--ca-file", trusted, "--authorization-file", filepath.Join(dir, "nowhere")}, "cannot read --authorization-file"},
				{[]string{"--ca-file", right, "--authorization-file", right}, "there is no certificate in it"},
			} {
				exit, output := ask(refused.args...)
				assert.Equal(t, 1, exit, refused.args)
				assert.Contains(t, output, refused.says, refused.args)
				assert.NotContains(t, output, "- name: ", refused.args)
				assert.NotContains(t, output, guard.right, refused.args)
			}
		})
	}
}
