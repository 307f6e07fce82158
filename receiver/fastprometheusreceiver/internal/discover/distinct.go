// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/prometheus/discovery"
	"go.yaml.in/yaml/v2"
)

// A distinct is the configuration of a mechanism with its hash as the first field.
//
// Prometheus' manager compares each configuration with all others, field by field, to share mechanisms. With thousands
// of jobs from a target allocator this took minutes, in which neither the jobs nor a shutdown could proceed. Now
// different ones differ in the first field.
type distinct struct {
	sum              uint64 // first, so that it is compared first
	discovery.Config        //nolint:embeddedstructfieldcheck // see there
}

// distinguish returns the configurations with their hashes, which are equal for equal configurations.
func distinguish(configs discovery.Configs) discovery.Configs {
	out := make(discovery.Configs, len(configs))
	for i, cfg := range configs {
		text, _ := yaml.Marshal(cfg) // a configuration that cannot be marshalled gets the hash of nothing, and is compared as before
		out[i] = distinct{sum: xxhash.Sum64(text), Config: cfg}
	}
	return out
}
