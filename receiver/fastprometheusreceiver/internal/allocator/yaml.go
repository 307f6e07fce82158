// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"maps"

	commonconfig "github.com/prometheus/common/config"
	promhttp "github.com/prometheus/prometheus/discovery/http"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v2"
)

// Prometheus' types can only be read from YAML.

// Discovery is Prometheus's http_sd_config. The zero value is the default.
type Discovery struct { //nolint:recvcheck // read into a pointer, written from a value
	read *promhttp.SDConfig
	url  string // was set, but has no effect
}

// Scrape is Prometheus's HTTP client configuration. The zero value leaves jobs theirs.
type Scrape struct { //nolint:recvcheck // the same
	read *commonconfig.HTTPClientConfig
}

var (
	_ confmap.Unmarshaler = (*Discovery)(nil)
	_ confmap.Marshaler   = (*Discovery)(nil)
	_ confmap.Unmarshaler = (*Scrape)(nil)
	_ confmap.Marshaler   = (*Scrape)(nil)
)

// nowhere stands for the URL that http_sd_config must have, until the job is known.
const nowhere = "http://allocator"

// Unmarshal implements [confmap.Unmarshaler].
func (d *Discovery) Unmarshal(conf *confmap.Conf) error {
	tree := conf.ToStringMap()
	if len(tree) == 0 {
		return nil
	}
	if set := tree["url"]; set != nil {
		d.url = fmt.Sprint(set)
	}
	tree = maps.Clone(tree)
	tree["url"] = nowhere
	read := new(promhttp.SDConfig)
	if err := convert(tree, read); err != nil {
		return fmt.Errorf("cannot read `http_sd_config`: %w", err)
	}
	d.read = read
	return nil
}

// Marshal implements [confmap.Marshaler]. Secrets come out as placeholders.
func (d Discovery) Marshal(conf *confmap.Conf) error {
	if d.read == nil {
		return nil
	}
	tree := map[string]any{}
	if err := convert(d.read, &tree); err != nil {
		return fmt.Errorf("cannot write `http_sd_config`: %w", err)
	}
	delete(tree, "url")
	return conf.Merge(confmap.NewFromStringMap(tree))
}

// Unmarshal implements [confmap.Unmarshaler].
func (s *Scrape) Unmarshal(conf *confmap.Conf) error {
	tree := conf.ToStringMap()
	if len(tree) == 0 {
		return nil
	}
	read := new(commonconfig.HTTPClientConfig)
	if err := convert(tree, read); err != nil {
		return fmt.Errorf("cannot read `http_scrape_config`: %w", err)
	}
	s.read = read
	return nil
}

// Marshal implements [confmap.Marshaler]. Secrets come out as placeholders.
func (s Scrape) Marshal(conf *confmap.Conf) error {
	if s.read == nil {
		return nil
	}
	tree := map[string]any{}
	if err := convert(s.read, &tree); err != nil {
		return fmt.Errorf("cannot write `http_scrape_config`: %w", err)
	}
	return conf.Merge(confmap.NewFromStringMap(tree))
}

// convert turns one value into another by way of YAML.
func convert(from, to any) error {
	text, err := yaml.Marshal(from)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, to)
}
