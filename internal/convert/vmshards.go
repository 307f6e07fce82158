// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"slices"

	"go.yaml.in/yaml/v3"
)

// ownOfEndpoints are the keys of an exporter that each of its endpoints may have.
var ownOfEndpoints = map[string]bool{
	"endpoint": true, "timeout": true, "rate_limit": true, "protobuf_message": true, "compression": true, "write_relabel_configs": true,
}

// dividedAmong makes one exporter of the settings of several, which divides series among their destinations as -remoteWrite.shardByURL does.
func dividedAmong(f *flags, all []table, global []*yaml.Node) table {
	const flag = "remoteWrite.shardByURL"
	endpoints, common := sequence(), newTable()
	for i, settings := range all {
		element := newTable()
		for k := 0; k+1 < len(settings.node.Content); k += 2 {
			key, value := settings.node.Content[k].Value, settings.node.Content[k+1]
			switch {
			case key == "http":
				element.node.Content = append(element.node.Content, value.Content...)
			case key == "queue":
				directory := remove(value, "directory")
				element.set(key, value)
				if i == 0 && directory != nil {
					common.set(key, newTable().set("directory", directory))
				}
				if (directory != nil) != common.has(key) {
					f.say(Lost, "remoteWrite.disableOnDiskQueue", "endpoints that series are divided among have their queues in one place: that of the first")
				}
			case ownOfEndpoints[key]:
				element.set(key, value)
			case i == 0:
				common.set(key, value)
			}
		}
		endpoints.Content = append(endpoints.Content, element.node)
	}
	for _, key := range differing(all) {
		f.say(Lost, flag, "`"+key+"` is for all endpoints that series are divided among: that of the first holds")
	}
	f.say(Changed, flag, "series are divided by another hash: most go to another destination than before")
	made := newTable().set("endpoints", endpoints)
	if len(global) > 0 {
		made.set("write_relabel_configs", sequence(global...))
	}
	shards := newTable().set("enabled", true)
	if n := f.number("remoteWrite.shardByURLReplicas", 0); n > 0 {
		shards.set("replicas", n)
	}
	if labels := f.list("remoteWrite.shardByURL.labels"); len(labels) > 0 {
		shards.set("labels", labels)
	}
	if labels := f.list("remoteWrite.shardByURL.ignoreLabels"); len(labels) > 0 {
		shards.set("ignore_labels", labels)
	}
	made.set("shard_by_url", shards)
	made.node.Content = append(made.node.Content, common.node.Content...)
	return made
}

// differing are the keys for all endpoints that these have, or have not, each its own way.
func differing(all []table) (keys []string) {
	for _, settings := range all {
		for k := 0; k < len(settings.node.Content); k += 2 {
			key := settings.node.Content[k].Value
			if key == "http" || key == "queue" || ownOfEndpoints[key] || slices.Contains(keys, key) {
				continue
			}
			if slices.ContainsFunc(all, func(other table) bool { return !alike(find(all[0].node, key), find(other.node, key)) }) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// alike tells whether two values are written the same.
func alike(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	one, err := encode(a)
	if err != nil {
		return false
	}
	other, err := encode(b)
	return err == nil && bytes.Equal(one, other)
}
