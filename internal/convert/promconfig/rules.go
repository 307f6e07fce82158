// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promconfig

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// unsent matches characters that Prometheus 3 and vmagent allow in names of labels, and that the exporter replaces by
// underscores.
var unsent = lazyregexp.New(`[^A-Za-z0-9_]`)

// Label returns the name under which the exporter sends a label, and reports it if it differs.
func Label(in *input.Input, file, path, name string) string {
	if strings.Contains(name, "$") || strings.Contains(name, "%{") {
		return name // only a part of the name is known
	}
	sent := unsent().ReplaceAllString(name, "_")
	if sent != "" && sent[0] >= '0' && sent[0] <= '9' {
		sent = "key_" + sent
	}
	if sent != name {
		in.Report.Add(report.Finding{
			Kind: report.Changed, File: file, Path: path,
			Text: "the label " + strconv.Quote(name) + " is sent as " + sent + ": `translation_strategy: NoTranslation` of the exporter keeps names, where the destination takes Remote Write 2.0",
		})
	}
	return sent
}

// SentLabels renames the labels in rules of an exporter to the names that they have there. With other names, the
// exporter would not start, or would find no such label.
func SentLabels(in *input.Input, file, path string, rules []*yaml.Node) {
	for _, rule := range rules {
		for _, name := range slices.Concat(document.Contents(document.Find(rule, "source_labels")), []*yaml.Node{document.Find(rule, "target_label")}) {
			if name != nil {
				name.Value = Label(in, file, path, name.Value)
			}
		}
	}
}

// NoteLabels reports labels of targets that are sent under another name.
func NoteLabels(in *input.Input, file, path string, n *yaml.Node) {
	if n == nil {
		return
	}
	note := func(name string) {
		if !strings.HasPrefix(name, "__") { // such as parameters of the scrape
			Label(in, file, path, name)
		}
	}
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		switch {
		case key == "target_label":
			note(value.Value)
		case (key == "labels" || key == "external_labels") && value.Kind == yaml.MappingNode:
			for k := 0; k < len(value.Content); k += 2 {
				note(value.Content[k].Value)
			}
		default:
			NoteLabels(in, file, path, value)
		}
	}
	for _, item := range document.Contents(n) {
		NoteLabels(in, file, path, item)
	}
}
