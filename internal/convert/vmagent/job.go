// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// A job is a scrape job of vmagent's while it is converted to one of Prometheus'.
type job struct {
	in      *input.Input
	file    string
	path    string
	node    *yaml.Node
	rules   *ruler
	options jobOptions
}

// leftOut has advice for keys that only vmagent knows and that are left out.
var leftOut = map[string]string{
	"yandexcloud_sd_configs":  "Prometheus cannot discover these: write targets to a file for `file_sd_configs`",
	"consulagent_sd_configs":  "Prometheus cannot discover these: `consul_sd_configs` asks the servers",
	"disable_keepalive":       "connections to targets are kept",
	"proxy_tls_config":        "the proxy is spoken to as its URL says",
	"proxy_basic_auth":        "write user and password into `proxy_url`",
	"proxy_authorization":     "`proxy_connect_header` sends a header to the proxy",
	"proxy_bearer_token":      "`proxy_connect_header` sends a header to the proxy",
	"proxy_bearer_token_file": "`proxy_connect_header` sends a header to the proxy",
	"proxy_oauth2":            "`proxy_connect_header` sends a header to the proxy",
}

// convert converts the job, and determines the options that its receiver has to set.
func (j *job) convert(f *flags, globals *yaml.Node, first map[string]*yaml.Node) {
	copied := *j.node
	copied.Content = append([]*yaml.Node{}, j.node.Content...)
	j.node = &copied
	j.takeOptions(f, globals)
	for _, key := range []string{"relabel_debug", "metric_relabel_debug"} {
		if n := document.Remove(j.node, key); n != nil {
			j.say(report.Note, n, key, "the console shows what rules do, step by step")
		}
	}
	if n := document.Remove(j.node, "stream_parse"); n != nil {
		j.say(report.Note, n, "stream_parse", "pages beyond 256 KiB are always read in parts")
	}
	for _, sd := range document.Contents(document.Find(j.node, "kubernetes_sd_configs")) {
		if role := document.Find(sd, "role"); role != nil && role.Value == "endpointslices" {
			role.Value = "endpointslice"
			j.say(report.Note, role, "kubernetes_sd_configs", "Prometheus calls the role endpointslice")
		}
	}
	if n := document.Remove(j.node, "vultr_configs"); n != nil {
		j.set("vultr_sd_configs", n)
	}
	if n := document.Remove(j.node, "max_scrape_size"); n != nil && document.Find(j.node, "body_size_limit") == nil {
		if size, err := bytesOf(n.Value); err == nil {
			j.set("body_size_limit", document.StringNode(strconv.FormatInt(size, 10)+"B"))
		} else {
			j.say(report.Lost, n, "max_scrape_size", err.Error())
		}
	}
	disabled := document.Remove(j.node, "disable_compression")
	if document.Find(j.node, "enable_compression") == nil && (disabled != nil && document.Truth(disabled.Value) || f.yes("promscrape.disableCompression")) {
		j.set("enable_compression", document.NodeOf(false))
	}
	if document.Find(j.node, "honor_timestamps") == nil { // vmagent has another default than Prometheus
		j.set("honor_timestamps", document.NodeOf(false))
	}
	j.headers("headers", "http_headers")
	j.headers("proxy_headers", "proxy_connect_header")
	j.lists()
	j.settings()
	j.metricsPath()
	j.staticTargets(append(append([]*yaml.Node{}, document.Contents(first["relabel_configs"])...), document.Contents(document.Find(j.node, "relabel_configs"))...))
	j.foundTargets()
	j.durations(globals)
	j.refresh(f)
	for _, key := range []string{"relabel_configs", "metric_relabel_configs"} {
		var made []*yaml.Node
		if before := first[key]; before != nil {
			made = j.rules.convert(document.Contents(before), "global."+key)
		}
		own := document.Remove(j.node, key)
		made = append(made, j.rules.convert(document.Contents(own), j.path+"."+key)...)
		if key == "metric_relabel_configs" {
			made = withoutOwn(made)
		}
		if len(made) > 0 {
			j.set(key, document.SequenceNode(made...))
		}
	}
}

func (j *job) set(key string, value *yaml.Node) {
	j.node.Content = append(j.node.Content, document.StringNode(key), value)
}

func (j *job) say(kind report.Outcome, at *yaml.Node, key, text string) {
	f := report.Finding{Kind: kind, File: j.file, Path: j.path + "." + key, Text: text}
	if at != nil {
		f.Line = at.Line
	}
	j.in.Report.Add(f)
}

// lists removes values that must be a list but are not: vmagent ignores them.
func (j *job) lists() {
	for _, key := range []string{"static_configs", "file_sd_configs", "gce_sd_configs", "relabel_configs", "metric_relabel_configs"} {
		if n := document.Find(j.node, key); !document.IsNull(n) && n.Kind != yaml.SequenceNode {
			document.Remove(j.node, key)
			j.say(report.Lost, n, key, input.NoList)
		}
	}
}

// headers converts lists of "name: value" headers.
func (j *job) headers(from, to string) {
	list := document.Remove(j.node, from)
	if list == nil {
		return
	}
	if from == "proxy_headers" && document.Find(j.node, "proxy_url") == nil {
		j.say(report.Note, list, from, "there is no `proxy_url`, so they had no effect")
		return
	}
	if !document.IsNull(list) && list.Kind != yaml.SequenceNode {
		j.say(report.Lost, list, from, input.NoList)
	}
	made := document.NewTable()
	for _, item := range document.Contents(list) {
		name, value, ok := strings.Cut(item.Value, ":")
		if !ok {
			j.say(report.Lost, item, from, "a header must be `name: value`")
			continue
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if to == "http_headers" && j.reserved(item, name, value) {
			continue
		}
		values := document.SequenceNode(document.StringNode(value))
		values.Style = yaml.FlowStyle
		if to == "http_headers" {
			made.Set(name, document.NewTable().Set("values", values))
		} else {
			made.Set(name, values)
		}
	}
	if !made.Empty() {
		j.set(to, made.Node)
	}
}

// reservedHeaders are headers that Prometheus does not allow for a job.
var reservedHeaders = []string{
	"Authorization", "Host", "Content-Encoding", "Content-Length", "Content-Type", "User-Agent", "Connection", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authorization", "Www-Authenticate", "Accept-Encoding", "X-Prometheus-Remote-Write-Version", "X-Prometheus-Remote-Read-Version",
	"X-Prometheus-Scrape-Timeout-Seconds", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256",
}

// reserved reports whether Prometheus refuses a header. It sets a key that has the same effect, or else reports the
// header as lost.
func (j *job) reserved(item *yaml.Node, name, value string) bool {
	name = http.CanonicalHeaderKey(name)
	if !slices.Contains(reservedHeaders, name) {
		return false
	}
	kind, credentials, ok := strings.Cut(value, " ")
	given := slices.ContainsFunc([]string{"authorization", "basic_auth", "bearer_token", "bearer_token_file", "oauth2"}, func(key string) bool { return document.Find(j.node, key) != nil })
	if name == "Authorization" && ok && !given {
		j.set("authorization", document.NewTable().Set("type", kind).Set("credentials", strings.TrimSpace(credentials)).Node)
	} else {
		j.say(report.Lost, item, "headers", name+" cannot be set: it is the client's own")
	}
	return true
}

// metricsPath moves a query out of the path, because Prometheus would treat it as part of the path.
func (j *job) metricsPath() {
	n := document.Find(j.node, "metrics_path")
	if n == nil {
		return
	}
	path, query, ok := strings.Cut(document.HideVariables(n.Value), "?")
	if !ok {
		return
	}
	if values, err := url.ParseQuery(query); err != nil {
		j.say(report.Lost, n, "metrics_path", "write its query under `params`")
	} else {
		j.set("params", j.params(query, values))
	}
	copied := *n
	copied.Value = document.ShowVariables(path)
	document.Remove(j.node, "metrics_path")
	j.set("metrics_path", &copied)
}

// params takes the parameters of the job out of it, and returns them behind those of a query.
func (j *job) params(query string, values url.Values) *yaml.Node {
	own, made := document.NewTable(), document.NewTable()
	if given := document.Remove(j.node, "params"); given != nil && given.Kind == yaml.MappingNode {
		own.Node.Content = given.Content
	}
	for pair := range strings.SplitSeq(query, "&") {
		text, _, _ := strings.Cut(pair, "=")
		text, err := url.QueryUnescape(text)
		key := document.ShowVariables(text)
		if err != nil || made.Has(key) {
			continue
		}
		list := document.SequenceNode()
		list.Style = yaml.FlowStyle
		for _, value := range values[text] {
			list.Content = append(list.Content, document.StringNode(document.ShowVariables(value)))
		}
		list.Content = append(list.Content, document.Contents(document.Remove(own.Node, key))...)
		made.Set(key, list)
	}
	made.Node.Content = append(made.Node.Content, own.Node.Content...)
	return made.Node
}
