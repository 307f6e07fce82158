// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// staticTargets converts targets that are URLs, which vmagent accepts, to groups of their own with labels. If a rule of
// the job writes the address, targets are input for that rule, as those of probes are, and stay as they are.
func (j *job) staticTargets(rules []*yaml.Node) {
	if slices.ContainsFunc(rules, writesAddress) {
		return
	}
	groups := document.Remove(j.node, "static_configs")
	if groups == nil {
		return
	}
	read := slices.ContainsFunc(rules, func(rule *yaml.Node) bool { return says(rule, "__address__", "__scheme__") })
	named := slices.ContainsFunc(rules, func(rule *yaml.Node) bool { return says(rule, "instance", "__scheme__") })
	made := document.SequenceNode()
	made.HeadComment, made.FootComment = groups.HeadComment, groups.FootComment
	for _, group := range document.Contents(groups) {
		plain := *group
		plain.Content = append([]*yaml.Node{}, group.Content...)
		list := document.Remove(&plain, "targets")
		kept := document.SequenceNode()
		if list != nil {
			copied := *list
			copied.Content = nil
			kept = &copied
		}
		var urls []*yaml.Node
		for _, target := range document.Contents(list) {
			switch {
			case strings.Contains(target.Value, "/"):
				urls = append(urls, target)
				if read {
					j.say(report.Changed, target, "static_configs", "rules find the host and port of "+target.Value+" in `__address__`, and the rest in `__scheme__` and `__metrics_path__`")
				}
			case !named && !strings.ContainsAny(target.Value, ":%") && document.Find(document.Find(group, "labels"), "instance") == nil:
				urls = append(urls, target)
			default:
				kept.Content = append(kept.Content, target)
			}
		}
		if len(kept.Content) > 0 || len(urls) == 0 {
			plain.Content = append([]*yaml.Node{document.StringNode("targets"), kept}, plain.Content...)
			made.Content = append(made.Content, &plain)
		} else {
			j.unknownOfGroup(&plain)
		}
		for _, target := range urls {
			made.Content = append(made.Content, j.urlTarget(target, document.Find(group, "labels")))
		}
	}
	j.set("static_configs", made)
}

func writesAddress(rule *yaml.Node) bool {
	to := document.Find(rule, "target_label")
	return to != nil && to.Value == "__address__"
}

// unknownOfGroup reports the keys besides targets and labels of a group of which nothing else is left.
func (j *job) unknownOfGroup(group *yaml.Node) {
	for i := 0; i+1 < len(group.Content); i += 2 {
		if key := group.Content[i]; key.Value != "labels" {
			j.say(report.Lost, key, "static_configs", key.Value+": Prometheus knows no such key, and neither does the receiver")
		}
	}
}

func (j *job) urlTarget(target, labels *yaml.Node) *yaml.Node {
	text := document.HideVariables(target.Value)
	if !strings.Contains(text, "://") {
		text = "//" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		j.say(report.Lost, target, "static_configs", err.Error())
		u = &url.URL{Host: target.Value}
	}
	u.Host, u.Path = document.ShowVariables(u.Host), document.ShowVariables(u.Path)
	own := document.NewTable()
	for i := 0; labels != nil && i+1 < len(labels.Content); i += 2 {
		own.Set(labels.Content[i].Value, labels.Content[i+1])
	}
	wins := func(label, value string) { // the URL takes precedence over labels
		if was := document.Remove(own.Node, label); was != nil && was.Value != value {
			j.say(report.Note, was, "static_configs", label+": "+was.Value+" had no effect on "+target.Value)
		}
		own.Set(label, value)
	}
	address := u.Host
	port := map[string]string{"http": ":80", "https": ":443"}
	switch scheme := document.Find(j.node, "scheme"); {
	case u.Scheme != "":
		wins("__scheme__", u.Scheme)
		if u.Port() == "" {
			address += port[u.Scheme]
		}
	case u.Port() == "" && !own.Has("instance"): // vmagent adds the port to instance, but requests the target without it
		if scheme == nil {
			scheme = document.StringNode("http")
		}
		own.Set("instance", address+port[scheme.Value])
	}
	if u.Path != "" {
		wins("__metrics_path__", u.Path)
	}
	for _, key := range slices.Sorted(maps.Keys(u.Query())) {
		values := u.Query()[key]
		wins("__param_"+document.ShowVariables(key), document.ShowVariables(values[0]))
		if len(values) > 1 {
			j.say(report.Lost, target, "static_configs", "a parameter of a target has one value")
		}
	}
	list := document.SequenceNode(document.StringNode(address))
	list.Style = yaml.FlowStyle
	return document.NewTable().Set("targets", list).Set("labels", own).Node
}

// says reports whether a value in a node contains one of some words.
func says(n *yaml.Node, words ...string) bool {
	if n.Kind == yaml.ScalarNode && slices.ContainsFunc(words, func(word string) bool { return strings.Contains(n.Value, word) }) {
		return true
	}
	return slices.ContainsFunc(n.Content, func(part *yaml.Node) bool { return says(part, words...) })
}
