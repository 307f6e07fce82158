// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// ownOfEndpoints are the keys of an exporter that each endpoint may set.
var ownOfEndpoints = map[string]bool{
	"endpoint": true, "timeout": true, "rate_limit": true, "protobuf_message": true, "compression": true, "write_relabel_configs": true,
}

// dividedAmong merges the settings of several exporters into one that divides series among their destinations, as
// -remoteWrite.shardByURL does.
func dividedAmong(f *flags, all []document.Table, global []*yaml.Node) document.Table {
	const flag = "remoteWrite.shardByURL"
	endpoints, common := document.SequenceNode(), document.NewTable()
	urls := map[string]bool{}
	for i, settings := range all {
		element := document.NewTable()
		for k := 0; k+1 < len(settings.Node.Content); k += 2 {
			key, value := settings.Node.Content[k].Value, settings.Node.Content[k+1]
			switch {
			case key == "http":
				element.Node.Content = append(element.Node.Content, value.Content...)
			case key == "queue":
				directory := document.Remove(value, "directory")
				element.Set(key, value)
				if i == 0 && directory != nil {
					common.Set(key, document.NewTable().Set("directory", directory))
				}
				if (directory != nil) != common.Has(key) {
					f.say(report.Lost, "remoteWrite.disableOnDiskQueue", "endpoints that series are divided among have their queues in one place: that of the first")
				}
			case ownOfEndpoints[key]:
				element.Set(key, value)
			case i == 0:
				common.Set(key, value)
			}
		}
		url := document.Find(element.Node, "endpoint")
		if urls[url.Value] {
			url.Value = fmt.Sprintf("%s#%d", url.Value, i+1)
			f.say(report.Note, "remoteWrite.url", "endpoints with the same URL need names of their own: a fragment, which is not sent, tells them apart")
		}
		urls[url.Value] = true
		endpoints.Content = append(endpoints.Content, element.Node)
	}
	for _, key := range differing(all) {
		f.say(report.Lost, flag, "`"+key+"` is for all endpoints that series are divided among: that of the first holds")
	}
	f.say(report.Changed, flag, "series are divided by another hash: most go to another destination than before")
	made := document.NewTable().Set("endpoints", endpoints)
	if len(global) > 0 {
		made.Set("write_relabel_configs", document.SequenceNode(global...))
	}
	shards := document.NewTable().Set("enabled", true)
	if n := f.number("remoteWrite.shardByURLReplicas", 0); n > 0 {
		shards.Set("replicas", n)
	}
	for _, key := range [][2]string{{"labels", "labels"}, {"ignore_labels", "ignoreLabels"}} {
		labels := f.list("remoteWrite.shardByURL." + key[1])
		for i, label := range labels {
			labels[i] = carrierOf(f).Text(label)
		}
		if len(labels) > 0 {
			shards.Set(key[0], labels)
		}
	}
	made.Set("shard_by_url", shards)
	made.Node.Content = append(made.Node.Content, common.Node.Content...)
	return made
}

// differing returns the keys common to all endpoints on which the settings do not agree.
func differing(all []document.Table) (keys []string) {
	for _, settings := range all {
		for k := 0; k < len(settings.Node.Content); k += 2 {
			key := settings.Node.Content[k].Value
			if key == "http" || key == "queue" || ownOfEndpoints[key] || slices.Contains(keys, key) {
				continue
			}
			if slices.ContainsFunc(all, func(other document.Table) bool {
				return !document.Alike(document.Find(all[0].Node, key), document.Find(other.Node, key))
			}) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
