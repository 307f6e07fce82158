// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// foundTargets takes out of service discovery what vmagent alone finds.
func (j *vmJob) foundTargets() {
	if lists := find(j.node, "file_sd_configs"); lists != nil {
		lists.Content = slices.DeleteFunc(lists.Content, func(sd *yaml.Node) bool {
			files := find(sd, "files")
			if files == nil {
				return false
			}
			files.Content = slices.DeleteFunc(files.Content, func(file *yaml.Node) bool {
				elsewhere := strings.Contains(file.Value, "://")
				if elsewhere {
					j.say(Lost, file, "file_sd_configs", "files are on this machine: `http_sd_configs` asks a server, for JSON")
				}
				return elsewhere
			})
			return len(files.Content) == 0
		})
	}
	if find(j.node, "file_sd_configs") != nil || find(j.node, "http_sd_configs") != nil {
		j.in.report.add(Finding{Kind: Note, Text: "targets that are found in files and answers must be host:port: vmagent takes URLs there, too"})
	}
	zones := find(j.node, "gce_sd_configs")
	if zones == nil {
		return
	}
	made := sequence()
	for _, sd := range contents(zones) {
		zone := find(sd, "zone")
		if zone == nil || zone.Kind != yaml.SequenceNode {
			made.Content = append(made.Content, sd)
			continue
		}
		for _, one := range zone.Content {
			each := *sd
			each.Content = append([]*yaml.Node{}, sd.Content...)
			remove(&each, "zone")
			each.Content = append(each.Content, str("zone"), one)
			made.Content = append(made.Content, &each)
		}
	}
	remove(j.node, "gce_sd_configs")
	j.set("gce_sd_configs", made)
}

var checkInterval = expression(`^promscrape\.([a-z0-9]+)SDCheckInterval$`)

// refresh puts intervals of discovery, which are flags of vmagent, where Prometheus has them.
func (j *vmJob) refresh(f *flags) {
	for _, given := range f.all {
		match := checkInterval().FindStringSubmatch(given.name)
		if match == nil {
			continue
		}
		f.claimed[given.name] = true
		key := match[1] + discoveries
		if match[1] == "kubernetes" {
			f.say(Note, given.name, "changes are watched, and known at once")
			continue
		}
		for _, sd := range contents(find(j.node, key)) {
			if sd.Kind == yaml.MappingNode && find(sd, "refresh_interval") == nil {
				sd.Content = append(sd.Content, str("refresh_interval"), str(given.value))
			}
		}
	}
}
