// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// foundTargets removes what only vmagent can discover from service discovery.
func (j *job) foundTargets() {
	if lists := document.Find(j.node, "file_sd_configs"); lists != nil {
		lists.Content = slices.DeleteFunc(lists.Content, func(sd *yaml.Node) bool {
			files := document.Find(sd, "files")
			if files == nil {
				return false
			}
			files.Content = slices.DeleteFunc(files.Content, func(file *yaml.Node) bool {
				elsewhere := strings.Contains(file.Value, "://")
				if elsewhere {
					j.say(report.Lost, file, "file_sd_configs", "files are on this machine: `http_sd_configs` asks a server, for JSON")
				}
				return elsewhere
			})
			return len(files.Content) == 0
		})
	}
	if document.Find(j.node, "file_sd_configs") != nil || document.Find(j.node, "http_sd_configs") != nil {
		j.in.Report.Add(report.Finding{Kind: report.Note, Text: "targets that are found in files and answers must be host:port: vmagent takes URLs there, too"})
	}
	zones := document.Find(j.node, "gce_sd_configs")
	if zones == nil {
		return
	}
	made := document.SequenceNode()
	for _, sd := range document.Contents(zones) {
		zone := document.Find(sd, "zone")
		if zone == nil || zone.Kind != yaml.SequenceNode {
			made.Content = append(made.Content, sd)
			continue
		}
		for _, one := range zone.Content {
			each := *sd
			each.Content = append([]*yaml.Node{}, sd.Content...)
			document.Remove(&each, "zone")
			each.Content = append(each.Content, document.StringNode("zone"), one)
			made.Content = append(made.Content, &each)
		}
	}
	document.Remove(j.node, "gce_sd_configs")
	j.set("gce_sd_configs", made)
}

var checkInterval = lazyregexp.New(`^promscrape\.([a-z0-9]+)SDCheckInterval$`)

// refresh converts vmagent's flags for discovery intervals to the keys that Prometheus has for them.
func (j *job) refresh(f *flags) {
	for _, given := range f.all {
		match := checkInterval().FindStringSubmatch(given.name)
		if match == nil {
			continue
		}
		f.claimed[given.name] = true
		key := match[1] + promconfig.Discoveries
		if match[1] == "kubernetes" {
			f.say(report.Note, given.name, "changes are watched, and known at once")
			continue
		}
		for _, sd := range document.Contents(document.Find(j.node, key)) {
			if sd.Kind == yaml.MappingNode && document.Find(sd, "refresh_interval") == nil {
				sd.Content = append(sd.Content, document.StringNode("refresh_interval"), document.StringNode(given.value))
			}
		}
	}
}
