// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// clientKeys are the keys of a job that http_scrape_config replaces.
var clientKeys = [...]string{
	"authorization", "basic_auth", "bearer_token", "bearer_token_file", "enable_http2", "follow_redirects", "http_headers", "no_proxy",
	"oauth2", "proxy_connect_header", "proxy_from_environment", "proxy_url", "tls_config",
}

// checkFiles finds files that a job must not name. Every key of a job that names a file to be read ends in _file, or is
// the list files of a header. Keys of params are anybody's: what they name is sent.
func (c *Config) checkFiles(job any) error {
	if len(c.AllowedFiles) == 0 {
		return nil
	}
	switch v := job.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "params" || key == "endpoint_params" {
				continue
			}
			err := c.checkFiles(v[key])
			if strings.HasSuffix(key, "_file") || key == "files" {
				err = c.checkNames(key, v[key])
			}
			if err != nil {
				return err
			}
		}
	case []any:
		for _, one := range v {
			if err := c.checkFiles(one); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}

func (c *Config) checkNames(key string, value any) error {
	names, isList := value.([]any)
	if !isList {
		names = []any{value}
	}
	for _, name := range names {
		text, _ := name.(string)
		if text != "" && key != failureLog && !c.allows(text) {
			return fmt.Errorf("its `%s` %q is not among `target_allocator::allowed_files`", key, text)
		}
	}
	return nil
}

// allows reports whether a job may name a file. Relative paths are refused, since a job cannot know what they are
// relative to.
func (c *Config) allows(name string) bool {
	return filepath.IsAbs(name) && slices.ContainsFunc(c.AllowedFiles, func(pattern string) bool {
		matches, err := filepath.Match(pattern, filepath.Clean(name))
		return err == nil && matches
	})
}
