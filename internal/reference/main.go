// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Program reference generates docs/reference from the components: every key, every metric, and a JSON schema for
// editors.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run -tags grpcnotrace,testify_yaml_fail,remove_all_sd,enable_dns_sd,enable_kubernetes_sd .

// root is the repository's root, relative to the directory of go generate.
const root = "../.."

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write() error {
	pages, err := reference()
	if err != nil {
		return err
	}
	for name, content := range pages {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a folder of documents
			return fmt.Errorf("cannot make the folder of the reference: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // a document
			return fmt.Errorf("cannot write the reference: %w", err)
		}
	}
	return nil
}

// reference returns the generated files by path in the repository.
func reference() (map[string]string, error) {
	components := all()
	r := &reader{comments: &comments{dir: "."}}
	nodes := map[string]*node{}
	for i := range components {
		nodes[components[i].title()] = r.component(components[i].factory)
	}
	if r.comments.err != nil {
		return nil, r.comments.err
	}
	schema, err := document(components, nodes)
	if err != nil {
		return nil, err
	}
	metrics, err := metricsPage(root, components)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"docs/reference/keys.md":            keysPage(components, nodes),
		"docs/reference/metrics.md":         metrics,
		"docs/reference/godwit.schema.json": string(schema),
	}, nil
}
