// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A vmJob is a job of vmagent's on its way to be one of Prometheus'.
type vmJob struct {
	in      *input
	file    string
	path    string
	node    *yaml.Node
	rules   *ruler
	options jobOptions
}

// vmagentKeys says of keys that only vmagent has, and that are left out, what to do about it.
var vmagentKeys = map[string]string{
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

// convert makes a job one of Prometheus', and finds out what its receiver has to set.
func (j *vmJob) convert(f *flags, globals *yaml.Node, first map[string]*yaml.Node) {
	copied := *j.node
	copied.Content = append([]*yaml.Node{}, j.node.Content...)
	j.node = &copied
	j.takeOptions(f, globals)
	for _, key := range []string{"relabel_debug", "metric_relabel_debug"} {
		if n := remove(j.node, key); n != nil {
			j.say(Note, n, key, "the console shows what rules do, step by step")
		}
	}
	if n := remove(j.node, "stream_parse"); n != nil {
		j.say(Note, n, "stream_parse", "pages beyond 256 KiB are always read in parts")
	}
	for _, sd := range contents(find(j.node, "kubernetes_sd_configs")) {
		if role := find(sd, "role"); role != nil && role.Value == "endpointslices" {
			role.Value = "endpointslice"
			j.say(Note, role, "kubernetes_sd_configs", "Prometheus calls the role endpointslice")
		}
	}
	if n := remove(j.node, "vultr_configs"); n != nil {
		j.set("vultr_sd_configs", n)
	}
	if n := remove(j.node, "max_scrape_size"); n != nil && find(j.node, "body_size_limit") == nil {
		if size, err := bytesOf(n.Value); err == nil {
			j.set("body_size_limit", str(strconv.FormatInt(size, 10)+"B"))
		} else {
			j.say(Lost, n, "max_scrape_size", err.Error())
		}
	}
	disabled := remove(j.node, "disable_compression")
	if find(j.node, "enable_compression") == nil && (disabled != nil && truth(disabled.Value) || f.yes("promscrape.disableCompression")) {
		j.set("enable_compression", nodeOf(false))
	}
	if find(j.node, "honor_timestamps") == nil { // vmagent's default is not Prometheus'
		j.set("honor_timestamps", nodeOf(false))
	}
	j.headers("headers", "http_headers")
	j.headers("proxy_headers", "proxy_connect_header")
	j.lists()
	j.metricsPath()
	j.staticTargets(append(append([]*yaml.Node{}, contents(first["relabel_configs"])...), contents(find(j.node, "relabel_configs"))...))
	j.foundTargets()
	j.durations(globals)
	j.refresh(f)
	for _, key := range []string{"relabel_configs", "metric_relabel_configs"} {
		var made []*yaml.Node
		if before := first[key]; before != nil {
			made = j.rules.convert(contents(before), "global."+key)
		}
		own := remove(j.node, key)
		made = append(made, j.rules.convert(contents(own), j.path+"."+key)...)
		if len(made) > 0 {
			j.set(key, sequence(made...))
		}
	}
}

func (j *vmJob) set(key string, value *yaml.Node) {
	j.node.Content = append(j.node.Content, str(key), value)
}

func (j *vmJob) say(kind Outcome, at *yaml.Node, key, text string) {
	f := Finding{Kind: kind, File: j.file, Path: j.path + "." + key, Text: text}
	if at != nil {
		f.Line = at.Line
	}
	j.in.report.add(f)
}

// lists takes out what must be a list, and is none: nobody reads it.
func (j *vmJob) lists() {
	for _, key := range []string{"static_configs", "file_sd_configs", "gce_sd_configs", "relabel_configs", "metric_relabel_configs"} {
		if n := find(j.node, key); !isNull(n) && n.Kind != yaml.SequenceNode {
			remove(j.node, key)
			j.say(Lost, n, key, noList)
		}
	}
}

// headers converts lists of "name: value".
func (j *vmJob) headers(from, to string) {
	list := remove(j.node, from)
	if list == nil {
		return
	}
	if from == "proxy_headers" && find(j.node, "proxy_url") == nil {
		j.say(Note, list, from, "there is no `proxy_url`, so they had no effect")
		return
	}
	if !isNull(list) && list.Kind != yaml.SequenceNode {
		j.say(Lost, list, from, noList)
	}
	made := newTable()
	for _, item := range contents(list) {
		name, value, ok := strings.Cut(item.Value, ":")
		if !ok {
			j.say(Lost, item, from, "a header must be `name: value`")
			continue
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if to == "http_headers" && j.reserved(item, name, value) {
			continue
		}
		values := sequence(str(value))
		values.Style = yaml.FlowStyle
		if to == "http_headers" {
			made.set(name, newTable().set("values", values))
		} else {
			made.set(name, values)
		}
	}
	if !made.empty() {
		j.set(to, made.node)
	}
}

// reservedHeaders are those of a job that Prometheus refuses.
var reservedHeaders = []string{
	"Authorization", "Host", "Content-Encoding", "Content-Length", "Content-Type", "User-Agent", "Connection", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authorization", "Www-Authenticate", "Accept-Encoding", "X-Prometheus-Remote-Write-Version", "X-Prometheus-Remote-Read-Version",
	"X-Prometheus-Scrape-Timeout-Seconds", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256",
}

// reserved tells a header that Prometheus refuses, and says so, unless there is a key for what it does.
func (j *vmJob) reserved(item *yaml.Node, name, value string) bool {
	name = http.CanonicalHeaderKey(name)
	if !slices.Contains(reservedHeaders, name) {
		return false
	}
	kind, credentials, ok := strings.Cut(value, " ")
	given := slices.ContainsFunc([]string{"authorization", "basic_auth", "bearer_token", "bearer_token_file", "oauth2"}, func(key string) bool { return find(j.node, key) != nil })
	if name == "Authorization" && ok && !given {
		j.set("authorization", newTable().set("type", kind).set("credentials", strings.TrimSpace(credentials)).node)
	} else {
		j.say(Lost, item, "headers", name+" cannot be set: it is the client's own")
	}
	return true
}

// metricsPath moves a query out of a path, where Prometheus would take it for a part of the path.
func (j *vmJob) metricsPath() {
	n := find(j.node, "metrics_path")
	if n == nil {
		return
	}
	path, query, ok := strings.Cut(n.Value, "?")
	if !ok {
		return
	}
	values, err := url.ParseQuery(query)
	if err != nil || find(j.node, "params") != nil {
		j.say(Lost, n, "metrics_path", "write its query under `params`")
	} else {
		params := newTable()
		for pair := range strings.SplitSeq(query, "&") {
			key, _, _ := strings.Cut(pair, "=")
			if key, err = url.QueryUnescape(key); err == nil && !params.has(key) {
				params.set(key, values[key])
			}
		}
		j.set("params", params.node)
	}
	copied := *n
	copied.Value = path
	remove(j.node, "metrics_path")
	j.set("metrics_path", &copied)
}
