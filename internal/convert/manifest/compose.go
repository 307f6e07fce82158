// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"

	"github.com/godwit-otel/godwit/internal/convert/detect"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/vmagent"
)

// inCompose finds configurations that a file of Docker Compose has in itself. Those beside vmagent's flags are read where these name them.
func inCompose(text []byte) (found []Configuration) {
	if !bytes.Contains(text, []byte("content:")) {
		return nil
	}
	root, err := document.ParseLoosely(text)
	if err != nil || !detect.IsCompose(root) {
		return nil
	}
	if service, _, _ := vmagent.Composed(root); service != nil {
		return nil
	}
	configs := document.Find(root, "configs")
	for i := 0; configs != nil && i+1 < len(configs.Content); i += 2 {
		name, content := configs.Content[i].Value, document.Find(configs.Content[i+1], "content")
		if document.IsNull(content) {
			continue
		}
		c := Configuration{Text: bytes.ReplaceAll(cut(text, content), []byte("$$"), []byte("$")), Object: "config " + name}
		switch detect.File(c.Text) {
		case detect.Prometheus, detect.VMAgent, detect.Collector:
			c.names = []string{name, c.Object}
			found = append(found, c)
		}
	}
	return found
}
