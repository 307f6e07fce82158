// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/prometheus/discovery"
	"go.yaml.in/yaml/v2"
)

// A distinct is a configuration of a mechanism with a sum of it in front.
//
// Prometheus' manager compares each configuration with all others, field by field, to share mechanisms: with the thousands of
// jobs that a target allocator may hand out this took minutes, in which neither the jobs nor the end of the process got
// through. Those that differ now do so in the first field.
type distinct struct {
	sum              uint64 // first, so that it is compared first
	discovery.Config        //nolint:embeddedstructfieldcheck // see there
}

// distinguish returns the configurations with their sums. Those that are equal have equal ones.
func distinguish(configs discovery.Configs) discovery.Configs {
	out := make(discovery.Configs, len(configs))
	for i, cfg := range configs {
		text, _ := yaml.Marshal(cfg) // what cannot be written has the sum of nothing, and is compared as before
		out[i] = distinct{sum: xxhash.Sum64(text), Config: cfg}
	}
	return out
}
