// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// fileKeys are keys of files that a component reads.
var fileKeys = []string{"ca_file", "cert_file", "key_file", "password_file", "username_file", "credentials_file", "bearer_token_file", "client_secret_file"}

// missingFiles reports files that components read but that do not exist. That is no error, since they may be created
// before they are read.
func missingFiles(name string, n *yaml.Node, path []string, depth int) (found []report.Finding) {
	if depth > document.MaxDepth {
		return nil
	}
	for i, child := range n.Content {
		at := path
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			at = append(slices.Clip(path), n.Content[i-1].Value)
			if slices.Contains(fileKeys, n.Content[i-1].Value) && child.Kind == yaml.ScalarNode && child.Value != "" && !strings.Contains(child.Value, "$") {
				if _, err := os.Stat(child.Value); errors.Is(err, fs.ErrNotExist) {
					found = append(found, report.Finding{Kind: report.Note, File: name, Line: child.Line, Path: strings.Join(at, "."), Text: fmt.Sprintf("there is no file %s here and now", child.Value)})
				}
			}
		}
		found = append(found, missingFiles(name, child, at, depth+1)...)
	}
	return found
}
