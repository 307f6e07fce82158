// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// staticTargets makes targets that are URLs, which vmagent takes, groups of their own with labels. Where a rule of the job writes an address,
// they are for that rule to read, as those of probes are.
func (j *vmJob) staticTargets(rules []*yaml.Node) {
	if slices.ContainsFunc(rules, writesAddress) {
		return
	}
	groups := remove(j.node, "static_configs")
	if groups == nil {
		return
	}
	read := slices.ContainsFunc(rules, func(rule *yaml.Node) bool { return says(rule, "__address__", "__scheme__") })
	named := slices.ContainsFunc(rules, func(rule *yaml.Node) bool { return says(rule, "instance", "__scheme__") })
	made := sequence()
	made.HeadComment, made.FootComment = groups.HeadComment, groups.FootComment
	for _, group := range contents(groups) {
		plain := *group
		plain.Content = append([]*yaml.Node{}, group.Content...)
		list := remove(&plain, "targets")
		kept := sequence()
		if list != nil {
			copied := *list
			copied.Content = nil
			kept = &copied
		}
		var urls []*yaml.Node
		for _, target := range contents(list) {
			switch {
			case strings.Contains(target.Value, "/"):
				urls = append(urls, target)
				if read {
					j.say(Changed, target, "static_configs", "rules find the host and port of "+target.Value+" in `__address__`, and the rest in `__scheme__` and `__metrics_path__`")
				}
			case !named && !strings.ContainsAny(target.Value, ":%") && find(find(group, "labels"), "instance") == nil:
				urls = append(urls, target)
			default:
				kept.Content = append(kept.Content, target)
			}
		}
		if len(kept.Content) > 0 || len(urls) == 0 {
			plain.Content = append([]*yaml.Node{str("targets"), kept}, plain.Content...)
			made.Content = append(made.Content, &plain)
		} else {
			j.unknownOfGroup(&plain)
		}
		for _, target := range urls {
			made.Content = append(made.Content, j.urlTarget(target, find(group, "labels")))
		}
	}
	j.set("static_configs", made)
}

func writesAddress(rule *yaml.Node) bool {
	to := find(rule, "target_label")
	return to != nil && to.Value == "__address__"
}

// unknownOfGroup reports what a group has beside targets and labels, where nothing else is left of it.
func (j *vmJob) unknownOfGroup(group *yaml.Node) {
	for i := 0; i+1 < len(group.Content); i += 2 {
		if key := group.Content[i]; key.Value != "labels" {
			j.say(Lost, key, "static_configs", key.Value+": Prometheus knows no such key, and neither does the receiver")
		}
	}
}

func (j *vmJob) urlTarget(target, labels *yaml.Node) *yaml.Node {
	text := target.Value
	if !strings.Contains(text, "://") {
		text = "//" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		j.say(Lost, target, "static_configs", err.Error())
		u = &url.URL{Host: target.Value}
	}
	own := newTable()
	for i := 0; labels != nil && i+1 < len(labels.Content); i += 2 {
		own.set(labels.Content[i].Value, labels.Content[i+1])
	}
	wins := func(label, value string) { // the URL counts more than what labels say of it
		if was := remove(own.node, label); was != nil && was.Value != value {
			j.say(Note, was, "static_configs", label+": "+was.Value+" had no effect on "+target.Value)
		}
		own.set(label, value)
	}
	address := u.Host
	port := map[string]string{"http": ":80", "https": ":443"}
	switch scheme := find(j.node, "scheme"); {
	case u.Scheme != "":
		wins("__scheme__", u.Scheme)
		if u.Port() == "" {
			address += port[u.Scheme]
		}
	case u.Port() == "" && !own.has("instance"): // vmagent tells the port there, and asks without one
		if scheme == nil {
			scheme = str("http")
		}
		own.set("instance", address+port[scheme.Value])
	}
	if u.Path != "" {
		wins("__metrics_path__", u.Path)
	}
	for _, key := range slices.Sorted(maps.Keys(u.Query())) {
		values := u.Query()[key]
		wins("__param_"+key, values[0])
		if len(values) > 1 {
			j.say(Lost, target, "static_configs", "a parameter of a target has one value")
		}
	}
	list := sequence(str(address))
	list.Style = yaml.FlowStyle
	return newTable().set("targets", list).set("labels", own).node
}

// says tells whether a part of a node is, or has in it, one of some words.
func says(n *yaml.Node, words ...string) bool {
	if n.Kind == yaml.ScalarNode && slices.ContainsFunc(words, func(word string) bool { return strings.Contains(n.Value, word) }) {
		return true
	}
	return slices.ContainsFunc(n.Content, func(part *yaml.Node) bool { return says(part, words...) })
}
