// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

var (
	// ownJobKeys and ownRuleKeys are keys that only vmagent knows.
	ownJobKeys = []string{
		"stream_parse", "scrape_align_interval", "scrape_offset", "series_limit", "no_stale_markers", "disable_compression", "disable_keepalive",
		"max_scrape_size", "relabel_debug", "metric_relabel_debug", "headers", "proxy_headers",
	}
	ownRuleKeys = []string{"if", "match", "labels"}
)

// IsJobKey reports whether only vmagent knows the key of a job.
func IsJobKey(key string) bool { return slices.Contains(ownJobKeys, key) }

// IsScrapeConfig reports whether a scrape configuration contains anything that only vmagent knows.
func IsScrapeConfig(root *yaml.Node) bool {
	global := document.Find(root, "global")
	if document.Find(global, "relabel_configs") != nil || document.Find(global, "metric_relabel_configs") != nil || HasTemplates(root) {
		return true
	}
	return slices.ContainsFunc(document.Contents(document.Find(root, "scrape_configs")), isJob)
}

// isJob reports whether a job contains anything that only vmagent knows.
func isJob(job *yaml.Node) bool {
	for _, key := range ownJobKeys {
		if document.Find(job, key) != nil {
			return true
		}
	}
	for key := range leftOut {
		if document.Find(job, key) != nil {
			return true
		}
	}
	for _, chain := range []string{"relabel_configs", "metric_relabel_configs"} {
		if slices.ContainsFunc(document.Contents(document.Find(job, chain)), isRule) {
			return true
		}
	}
	if slices.ContainsFunc(document.Contents(document.Find(job, "relabel_configs")), writesAddress) {
		return false // its targets are input for that rule
	}
	return slices.ContainsFunc(document.Contents(document.Find(job, "static_configs")), func(group *yaml.Node) bool {
		return slices.ContainsFunc(document.Texts(document.Find(group, "targets")), func(target string) bool { return strings.Contains(target, "/") })
	})
}

func isRule(rule *yaml.Node) bool {
	for _, key := range ownRuleKeys {
		if document.Find(rule, key) != nil {
			return true
		}
	}
	if regex := document.Find(rule, "regex"); regex != nil && regex.Kind == yaml.SequenceNode {
		return true
	}
	action := document.Find(rule, "action")
	return action != nil && ownActions[action.Value]
}

// HasTemplates reports whether a value refers to the environment in vmagent's form.
func HasTemplates(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && document.Variable().MatchString(n.Value) || slices.ContainsFunc(n.Content, HasTemplates)
}

// IsFlags reports whether a text is a file of flags or a systemd unit, and not YAML.
func IsFlags(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0, line[0] == '#', line[0] == ';':
		case bytes.HasPrefix(line, []byte("[Unit]")), bytes.HasPrefix(line, []byte("[Service]")):
			return true
		default:
			flag := bytes.TrimLeft(line, "-")
			dashes := len(line) - len(flag) // five dashes begin a certificate
			return (dashes == 1 || dashes == 2) && document.BeginsWithLetter(flag) ||
				bytes.Contains(line, []byte("vmagent")) && bytes.Contains(line, []byte(" -"))
		}
	}
	return false
}

// IsScript reports whether a text is a script or a file of variables with flags of vmagent. root is the text parsed as
// YAML.
func IsScript(text []byte, root *yaml.Node) bool {
	// [program:vmagent] begins a section, but is also a YAML list.
	section := root != nil && root.Kind == yaml.SequenceNode && root.Style&yaml.FlowStyle != 0 && len(root.Content) == 1 && !strings.HasPrefix(root.Content[0].Value, "-")
	return (root == nil || root.Kind == yaml.ScalarNode || section) && ScriptFlag().Match(text)
}

// ScriptFlag matches the beginning of a flag that only vmagent has.
var ScriptFlag = lazyregexp.New(`(?m)(?:^|[\s"'])--?(?:remoteWrite|promscrape)\.`)
