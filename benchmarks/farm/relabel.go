// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import (
	"fmt"
	"regexp"
	"strings"
)

// The patterns in Rules, which the account also uses.
const (
	droppedNames   = "node_scrape_collector_duration_seconds|node_network_(address_assign_type|carrier.*|device_id|dormant|flags|iface_.*|protocol_type)"
	droppedDevices = "node_(network|disk)_.+;(lo|docker.*|veth.*|ram.*)"
)

// Rules are metric_relabel_configs like those of kube-prometheus for node exporters: they drop unused families and
// devices, copy the host from the address, and drop labels. Dropped samples do not arrive: see Config.Relabelled.
var Rules = fmt.Sprintf(`metric_relabel_configs: [`+
	`{source_labels: [__name__], regex: %q, action: drop}, `+
	`{source_labels: [__name__, device], regex: %q, action: drop}, `+
	`{source_labels: [instance], regex: "([^:]+):.*", target_label: node}, `+
	`{regex: "ifalias|wwn|serial", action: labeldrop}]`, droppedNames, droppedDevices)

var (
	byName   = regexp.MustCompile("^(?:" + droppedNames + ")$")
	byDevice = regexp.MustCompile("^(?:" + droppedDevices + ")$")
	device   = regexp.MustCompile(`[{,]device="([^"]*)"`)
)

// relabel marks the samples that Rules drop.
func (p *Page) relabel() {
	for i := range p.lines {
		l := &p.lines[i]
		name, _, _ := strings.Cut(l.series, "{")
		value := ""
		if m := device.FindStringSubmatch(l.series); m != nil {
			value = m[1]
		}
		l.dropped = l.isSample() && (byName.MatchString(name) || byDevice.MatchString(name+";"+value))
	}
}
