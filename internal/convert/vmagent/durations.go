// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// durations converts times to what Prometheus accepts: whole numbers, and no timeout above its interval.
func (j *job) durations(globals *yaml.Node) {
	interval := time.Minute
	for _, from := range []*yaml.Node{globals, j.node} {
		for _, key := range []string{"scrape_interval", "scrape_timeout"} {
			n := document.Find(from, key)
			if n == nil {
				continue
			}
			d, err := promconfig.Duration(n.Value)
			if err != nil {
				continue // the receiver reports it
			}
			if key == "scrape_interval" {
				interval = d
			} else if d > interval {
				j.say(report.Note, n, key, "it is as long as the interval, as vmagent has it")
				d = interval
				n.Value = promDuration(d)
			}
			if strings.Contains(n.Value, ".") {
				n.Value = promDuration(d)
			}
		}
	}
}

func promDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms"
}
