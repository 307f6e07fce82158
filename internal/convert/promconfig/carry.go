// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package promconfig converts parts of a Prometheus configuration to that of a collector, for Prometheus' files and for vmagent's, which
// has the same jobs and rules.
package promconfig

import (
	_ "embed"
	"maps"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// keysText lists the keys for scraping in a Prometheus configuration, by type. The types of lists begin with [], those
// of maps with "map:".
//
//go:embed keys.txt
var keysText string

// Keys returns the types in keysText.
var Keys = sync.OnceValue(func() map[string]map[string]string {
	types := map[string]map[string]string{}
	var current map[string]string
	for line := range strings.Lines(keysText) {
		line = strings.TrimRight(line, "\n")
		key, of, typed := strings.Cut(strings.TrimPrefix(line, "\t"), " ")
		switch {
		case line == "" || line[0] == '#':
		case line[0] != '\t':
			current = map[string]string{}
			types[line] = current
		case typed:
			current[key] = of
		default:
			current[key] = "string"
		}
	}
	for _, of := range types {
		if shared, ok := of["+"]; ok {
			delete(of, "+")
			maps.Copy(of, types[shared])
		}
	}
	return types
})

// Types that converters name.
const (
	TypeGlobal  = "config.GlobalConfig"
	TypeJob     = "config.ScrapeConfig"
	TypeRelabel = "relabel.Config"
	Discoveries = "_sd_configs"
)

// A Carrier copies parts of a Prometheus configuration into that of a collector. It escapes what a collector would read
// as a variable, quotes what YAML would read as a number but Prometheus takes for text, and makes relative paths
// absolute. Keys that Prometheus does not know are reported and left out.
type Carrier struct {
	in   *input.Input
	File string
	// Plain leaves texts, paths and numbers as they are, because the input is a collector's already.
	Plain bool
	// Templates reports whether %{NAME} stands for an environment variable.
	Templates bool
	// Unknown returns advice for a key that Prometheus does not know, if there is any. May be nil.
	Unknown func(key string) string
	// Found are the keys of service discovery that were found.
	Found map[string]bool
}

// NewCarrier returns a carrier for a file of the input.
func NewCarrier(in *input.Input, file string) *Carrier {
	return &Carrier{in: in, File: file, Found: map[string]bool{}}
}

// Take copies a value of a type, which is at a path of the input.
func (c *Carrier) Take(n *yaml.Node, of, path string) *yaml.Node {
	return c.Value(n, of, path, "")
}

// Value is Take for the value of a key.
func (c *Carrier) Value(n *yaml.Node, of, path, key string) *yaml.Node {
	out := *n
	out.Content = nil
	switch n.Kind {
	case yaml.SequenceNode:
		of = strings.TrimPrefix(of, "[]")
		for i, item := range n.Content {
			out.Content = append(out.Content, c.Value(item, of, path+"["+strconv.Itoa(i)+"]", key))
		}
	case yaml.MappingNode:
		c.mapping(n, &out, of, path, key)
	default:
		c.scalar(&out, strings.TrimPrefix(of, "[]"), path, key)
	}
	return &out
}

func (c *Carrier) mapping(from, to *yaml.Node, of, path, parent string) {
	values, isMap := strings.CutPrefix(of, "map:")
	known := Keys()[of]
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		at, typed := path+"."+key.Value, values
		if now := renamed[key.Value]; now != "" && of == TypeJob {
			c.in.Report.Add(report.Finding{Kind: report.Note, File: c.File, Line: key.Line, Path: at, Text: "Prometheus calls it `" + now + "` now"})
			old := key
			key = document.StringNode(now)
			key.HeadComment, key.Line = old.HeadComment, old.Line
		}
		if !isMap && of != "any" {
			var ok bool
			if typed, ok = known[key.Value]; !ok {
				text := "Prometheus knows no such key, and neither does the receiver"
				if strings.HasSuffix(key.Value, Discoveries) {
					text = "the receiver has no such discovery: write targets to a file for `file_sd_configs`, or serve them to `http_sd_configs`"
				}
				if c.Unknown != nil && c.Unknown(key.Value) != "" {
					text = c.Unknown(key.Value)
				}
				c.in.Report.Add(report.Finding{Kind: report.Lost, File: c.File, Line: key.Line, Path: at, Text: text})
				continue
			}
		}
		if mechanism, ok := strings.CutSuffix(key.Value, Discoveries); ok {
			c.Found[mechanism] = true
		}
		if fault := unlike(value, typed); fault != "" {
			c.in.Report.Add(report.Finding{Kind: report.Lost, File: c.File, Line: value.Line, Path: at, Text: fault})
			continue
		}
		name := key.Value
		if isMap {
			name = parent
		}
		copied := *key
		copied.Anchor = ""
		to.Content = append(to.Content, &copied, c.Value(value, typed, at, name))
	}
	if len(to.Content) == 0 {
		to.Style = yaml.FlowStyle
	}
}

// unlike returns what is wrong with the form of a value, "" if it fits. Without it, the value would be reported key by
// key.
func unlike(n *yaml.Node, of string) string {
	isList := strings.HasPrefix(of, "[]")
	switch {
	case of == "any":
	case n.Kind == yaml.MappingNode && isList:
		return input.NoList
	case n.Kind == yaml.SequenceNode && !isList && (strings.HasPrefix(of, "map:") || Keys()[of] != nil):
		return input.NoMapping
	case n.Kind == yaml.SequenceNode && !isList:
		return input.NoValue
	}
	return ""
}

// renamed maps keys of jobs in Prometheus 2 to those of Prometheus 3.
var renamed = map[string]string{"scrape_classic_histograms": "always_scrape_classic_histograms"}

func (c *Carrier) scalar(n *yaml.Node, of, path, key string) {
	if (of == "bool" || of == "num") && c.Templates && document.Variable().MatchString(n.Value) {
		n.Value, n.Tag, n.Style = c.Text(n.Value), "", 0 // its type is known when the variable is replaced
		return
	}
	switch of {
	case "bool":
		if strings.HasPrefix(n.Value, "$") {
			return
		}
		if plain, ok := document.Truths[strings.ToLower(n.Value)]; ok {
			n.Value, n.Tag, n.Style = plain, "!!bool", 0
		}
		return
	case "num":
		return
	}
	if document.IsNull(n) || c.Plain {
		return
	}
	if n.Tag != "!!str" && of != "any" {
		// 1.10 is the value of a label, not a number.
		n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle
	}
	if of == "string" && isPath(key, path) {
		n.Value = c.in.Join(n.Value)
	}
	if c.Templates && strings.HasPrefix(path, "global.external_labels.") {
		n.Value = strings.ReplaceAll(n.Value, "$", "$$") // Prometheus' code expands variables here, vmagent does not
	}
	n.Value = c.Text(n.Value)
}

// isPath reports whether the values of a key are paths of files.
func isPath(key, path string) bool {
	switch {
	case strings.HasSuffix(key, "_file"), key == "scrape_config_files":
		return true
	case key == "files":
		return strings.Contains(path, "file_sd_configs") || strings.Contains(path, "http_headers")
	}
	return false
}

// Text escapes what a collector would read as a variable, and converts the variables of the input.
func (c *Carrier) Text(value string) string {
	value = strings.ReplaceAll(value, "$", "$$")
	switch {
	case c.Templates:
		value = document.Environment(value)
	case strings.Contains(value, "$$("):
		value = reloaded().ReplaceAllStringFunc(value, func(escaped string) string {
			name := strings.Trim(escaped, "$()")
			c.in.Report.Add(report.Finding{Kind: report.Changed, File: c.File, Text: "$(" + name + ") is filled in by the Prometheus operator's reloader: " +
				"the result takes it from the environment variable " + name})
			if name == "SHARD" {
				name += ":-0"
			}
			return "${env:" + name + "}"
		})
	}
	return value
}

// reloaded matches escaped variables in the form of the Prometheus operator's reloader, which knows POD_NAME and SHARD.
var reloaded = lazyregexp.New(`\$\$\([A-Z][A-Z0-9_]*\)`)
