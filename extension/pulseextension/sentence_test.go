// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package pulseextension

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/selftelemetry"
)

// page parses a metrics page, given as lines separated by spaces and without their prefix:
// `receiver_accepted_spans{receiver="a"}=1`.
func page(t testing.TB, lines string, at time.Time) *selftelemetry.Snapshot {
	t.Helper()
	var text strings.Builder
	for line := range strings.FieldsSeq(lines) {
		i := strings.LastIndexByte(line, '=')
		fmt.Fprintf(&text, "otelcol_%s %s\n", line[:i], line[i+1:])
	}
	s, err := selftelemetry.Parse(strings.NewReader(text.String()), at)
	require.NoError(t, err)
	return s
}

// aMinute returns the flow between two pages a minute apart.
func aMinute(t *testing.T, before, now string) flow {
	t.Helper()
	start := time.Unix(1700000000, 0)
	return between(newReading(page(t, before, start)), newReading(page(t, now, start.Add(time.Minute))))
}

func TestSentence(t *testing.T) {
	const (
		in    = `receiver_accepted_metric_points{receiver="prometheus",transport="http"}=7920 `
		out   = `exporter_sent_metric_points{exporter="remotewrite"}=7860 `
		queue = `exporter_queue_size{exporter="remotewrite",data_type="metrics"}=20 exporter_queue_capacity{exporter="remotewrite",data_type="metrics"}=1000 `
		proc  = `process_cpu_seconds=0.24 process_memory_rss=43000000 `
	)
	f := func(before, now, want string) {
		t.Helper()
		assert.Equal(t, want, aMinute(t, before, now).sentence())
	}
	f(``, in+out+queue+proc, `flowing: 132 points/s in, 131 points/s out, queue 2 % full, 0 refused, 0 dropped; CPU 0.4 %, RSS 43 MB`)
	f(``, in+out, `flowing: 132 points/s in, 131 points/s out, 0 refused, 0 dropped`)

	// One side only.
	f(``, in, `flowing: 132 points/s in, nothing out, 0 refused, 0 dropped`)
	f(in, in+out, `flowing: nothing in, 131 points/s out, 0 refused, 0 dropped`)

	// Several signals, in the usual order.
	f(``, `receiver_accepted_log_records{receiver="otlp"}=60000 receiver_accepted_spans{receiver="otlp"}=90
		receiver_accepted_metric_points{receiver="otlp"}=600 receiver_accepted_profile_samples{receiver="otlp"}=1 `,
		`flowing: 10 points/s and 1.5 spans/s and 1k log records/s and 0.0167 profile samples/s in, nothing out, 0 refused, 0 dropped`)

	// A loop: two receivers are not summed. Transports of one receiver are.
	const loop = `receiver_accepted_metric_points{receiver="remotewrite/loopback"}=7860 `
	f(``, in+loop+out, `flowing: 132 points/s from prometheus, 131 points/s from remotewrite/loopback, 131 points/s out, 0 refused, 0 dropped`)
	f(loop, in+loop+out, `flowing: 132 points/s in, 131 points/s out, 0 refused, 0 dropped`)
	f(``, `receiver_accepted_spans{receiver="otlp",transport="grpc"}=60 receiver_accepted_spans{receiver="otlp",transport="http"}=120`,
		`flowing: 3 spans/s in, nothing out, 0 refused, 0 dropped`)
	f(``, in+out+`exporter_sent_spans{exporter="otlp"}=60 exporter_sent_metric_points{exporter="otlp"}=60`,
		`flowing: 132 points/s in, 1 points/s and 1 spans/s to otlp, 131 points/s to remotewrite, 0 refused, 0 dropped`)

	// Too many to name.
	five := func(metric, label string) string {
		var lines strings.Builder
		for i := range 5 {
			fmt.Fprintf(&lines, "%s{%s=\"%d\"}=60 ", metric, label, i)
		}
		return lines.String()
	}
	f(``, five("receiver_accepted_spans", "receiver")+five("exporter_sent_spans", "exporter"),
		`flowing: 5 spans/s in through 5 receivers, 5 spans/s out through 5 exporters, 0 refused, 0 dropped`)

	// Problems while something flows.
	f(``, in+out+`receiver_refused_spans{receiver="otlp"}=1234`, `flowing: 132 points/s in, 131 points/s out, 1.23k refused by otlp, 0 dropped`)
	f(``, in+out+`receiver_failed_spans{receiver="otlp"}=2 receiver_refused_metric_points{receiver="a"}=1`,
		`flowing: 132 points/s in, 131 points/s out, 3 refused by a and otlp, 0 dropped`)
	f(``, in+out+`exporter_send_failed_spans{exporter="otlp",error_permanent="true"}=7 exporter_enqueue_failed_spans{exporter="otlp"}=5`,
		`flowing: 132 points/s in, 131 points/s out, 0 refused, 7 dropped by otlp (sending failed), 5 dropped by otlp (not accepted by the queue)`)
	f(``, in+five("exporter_send_failed_spans", "exporter"), `flowing: 132 points/s in, nothing out, 0 refused, 300 dropped by 5 components (sending failed)`)

	// Earlier problems are not repeated.
	const old = `receiver_refused_spans{receiver="otlp"}=9 exporter_send_failed_spans{exporter="otlp"}=9 exporter_enqueue_failed_spans{exporter="otlp"}=9 `
	f(old, in+out+old, `flowing: 132 points/s in, 131 points/s out, 0 refused, 0 dropped`)

	// Nothing flows, with the reason.
	f(``, ``, `nothing is flowing yet`)
	f(``, proc, `nothing is flowing yet; CPU 0.4 %, RSS 43 MB`)
	f(in, in, `nothing is flowing`)
	f(out, out+queue, `nothing is flowing: queue 2 % full`)
	f(`exporter_queue_size{exporter="a",data_type="logs"}=0 exporter_queue_capacity{exporter="a",data_type="logs"}=9`,
		`exporter_queue_size{exporter="a",data_type="logs"}=0 exporter_queue_capacity{exporter="a",data_type="logs"}=9`, `nothing is flowing yet`)
	f(`receiver_accepted_spans{receiver="otlp"}=0`, `receiver_accepted_spans{receiver="otlp"}=0 receiver_refused_spans{receiver="otlp"}=5`,
		`nothing is flowing yet: 5 refused by otlp`)
	f(in, in+queue+`exporter_enqueue_failed_metric_points{exporter="remotewrite"}=36 receiver_refused_metric_points{receiver="prometheus"}=36 `+proc,
		`nothing is flowing: queue 2 % full, 36 refused by prometheus, 36 dropped by remotewrite (not accepted by the queue); CPU 0.4 %, RSS 43 MB`)

	// Counters that restart.
	f(`receiver_accepted_spans{receiver="otlp"}=1000000 process_cpu_seconds=500`, `receiver_accepted_spans{receiver="otlp"}=60 process_cpu_seconds=0.6 process_memory_rss=1`,
		`flowing: 1 spans/s in, nothing out, 0 refused, 0 dropped; CPU 1 %, RSS 0 MB`)
}

func TestSentenceTellsTheFullestQueue(t *testing.T) {
	queue := func(exporter, dataType string, size, capacity int) string {
		return fmt.Sprintf(`exporter_queue_size{exporter=%q,data_type=%q}=%d exporter_queue_capacity{exporter=%q,data_type=%q}=%d `,
			exporter, dataType, size, exporter, dataType, capacity)
	}
	f := func(now, want string) {
		t.Helper()
		assert.Equal(t, want, aMinute(t, ``, now).queue())
	}
	f(``, ``)
	f(queue("a", "metrics", 0, 1000), `queues empty`)
	f(queue("a", "metrics", 1, 1e7), `queue <0.1 % full`)
	f(queue("a", "metrics", 830, 1000), `queue 83 % full`)
	f(queue("a", "metrics", 9, 10)+queue("a", "traces", 0, 1000), `queue 90 % full`) // not the mean of an exporter's queues
	f(queue("a", "metrics", 1, 1000)+queue("b", "metrics", 5, 10), `fullest queue 50 % (b)`)
	f(queue("a", "metrics", 5, 0), ``) // no capacity, no share
}

func TestHumanNumbers(t *testing.T) {
	f := func(v float64, want string) {
		t.Helper()
		assert.Equal(t, want, human(v))
	}
	f(0, "0")
	f(0.000123456, "0.000123")
	f(0.01666, "0.0167")
	f(1, "1")
	f(1.234, "1.23")
	f(13.04, "13")
	f(131.6, "132")
	f(999.4, "999")
	f(999.5, "1k")
	f(1234, "1.23k")
	f(51000, "51k")
	f(999499, "999k")
	f(999500, "1M")
	f(1.5e9, "1.5G")
	f(1.2345e12, "1230G")
}

func TestBriefNumbers(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		assert.Equal(t, want, got)
	}
	f(percent(0), "0 %")
	f(percent(0.0001), "<0.1 %")
	f(percent(0.0005), "0.1 %")
	f(percent(0.004), "0.4 %")
	f(percent(0.02), "2 %")
	f(percent(0.0995), "10 %")
	f(percent(0.431), "43 %")
	f(percent(1.876), "188 %") // two cores
	f(size(9.54e6), "9.5 MB")
	f(size(43.2e6), "43 MB")
	f(size(999.4e6), "999 MB")
	f(size(1234e6), "1.2 GB")
}

func TestFieldsHoldTheSentenceFacts(t *testing.T) {
	got := logged(t, aMinute(t,
		`receiver_accepted_metric_points{receiver="prometheus"}=1`,
		`receiver_accepted_metric_points{receiver="prometheus"}=7921 receiver_accepted_log_records{receiver="otlp"}=1
		exporter_sent_metric_points{exporter="remotewrite"}=7860 receiver_refused_spans{receiver="otlp"}=12
		exporter_send_failed_spans{exporter="otlp"}=7 exporter_enqueue_failed_spans{exporter="otlp"}=5
		exporter_queue_size{exporter="remotewrite",data_type="metrics"}=20 exporter_queue_capacity{exporter="remotewrite",data_type="metrics"}=1000
		process_cpu_seconds=0.24 process_memory_rss=43000000`))
	assert.JSONEq(t, `{
		"seconds": 60,
		"in_per_second": {"prometheus": {"points": 132}, "otlp": {"log_records": 0.0167}},
		"out_per_second": {"remotewrite": {"points": 131}},
		"refused": {"otlp": 12},
		"send_failed": {"otlp": 7},
		"enqueue_failed": {"otlp": 5},
		"queue_percent": {"remotewrite": 2},
		"cpu_percent": 0.4,
		"rss_bytes": 43000000
	}`, got)
}

func TestFieldsLeaveOutWhatIsZero(t *testing.T) {
	assert.JSONEq(t, `{"seconds": 60}`, logged(t, aMinute(t, `receiver_refused_spans{receiver="otlp"}=0`, `receiver_refused_spans{receiver="otlp"}=0`)))
}
