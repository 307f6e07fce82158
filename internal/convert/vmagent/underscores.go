// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// settingsOfTargets has advice for labels of a target that vmagent reads as its settings. Prometheus reads
// __scrape_interval__ and __scrape_timeout__, the receiver also __unix_socket__.
var settingsOfTargets = map[string]string{
	"__max_scrape_size__": "`body_size_limit` of a job applies to all its targets",
	"__sample_limit__":    "`sample_limit` of a job applies to all its targets",
	"__label_limit__":     "`label_limit` of a job applies to all its targets",
	"__series_limit__":    "`series_limit` of the receiver applies to all its targets",
	"__tenant_id__":       "a destination of its own for each tenant, or the label `vm_account_id` in all series, can select tenants",
	"__stream_parse__":    "",
}

// tellSetting reports a label of a target that only vmagent reads as a setting.
func tellSetting(label string, say func(kind report.Outcome, text string)) {
	switch advice, ok := settingsOfTargets[label]; {
	case ok && advice == "":
		say(report.Note, label+": large pages are always read in parts")
	case ok:
		say(report.Lost, label+" has no effect here: "+advice)
	}
}

// settings reports a rule that sets a label that vmagent reads as a setting of the target.
func (r *ruler) settings(s *input.Section) {
	if target := document.Find(s.Node, "target_label"); target != nil {
		tellSetting(target.Value, func(kind report.Outcome, text string) { s.Say(kind, target, "target_label", text) })
	}
}

// settings reports labels of static targets that vmagent reads as settings.
func (j *job) settings() {
	for _, group := range document.Contents(document.Find(j.node, "static_configs")) {
		labels := document.Find(group, "labels")
		for i := 0; labels != nil && i+1 < len(labels.Content); i += 2 {
			tellSetting(labels.Content[i].Value, func(kind report.Outcome, text string) { j.say(kind, labels.Content[i], "static_configs", text) })
		}
	}
}

// withoutOwn appends rules that remove the labels with two underscores that a chain makes: vmagent removes those from
// every series after its rules, Prometheus only from targets.
func withoutOwn(chain []*yaml.Node) []*yaml.Node {
	var removed []*regexp.Regexp
	made := chain
	for _, rule := range slices.Backward(chain) {
		if document.TextOf(rule, "action") == "labeldrop" {
			if expr, err := regexp.Compile("^(?s:" + document.TextOf(rule, "regex") + ")$"); err == nil {
				removed = append(removed, expr)
			}
			continue
		}
		name := document.TextOf(rule, "target_label")
		if document.TextOf(rule, "action") == "labelmap" {
			name = document.TextOf(rule, "replacement")
		}
		prefix, _, more := strings.Cut(name, "$")
		if !strings.HasPrefix(prefix, "__") || prefix == "__" || prefix == "__name__" || gone(removed, prefix) {
			continue
		}
		text := regexp.QuoteMeta(prefix)
		if more {
			text += ".*"
		}
		removed = append(removed, regexp.MustCompile("^"+text+"$"))
		made = append(made, forget(text))
	}
	return made
}

func gone(removed []*regexp.Regexp, label string) bool {
	return slices.ContainsFunc(removed, func(expr *regexp.Regexp) bool { return expr.MatchString(label) })
}
