// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	_ "embed"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// keysText has the keys of what is about scraping in a Prometheus configuration, by type. Lists begin with [], maps with
// map: .
//
//go:embed keys.txt
var keysText string

// keys has the types of keysText.
var keys = sync.OnceValue(func() map[string]map[string]string {
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

// The types that converters name.
const (
	typeGlobal  = "config.GlobalConfig"
	typeJob     = "config.ScrapeConfig"
	typeRelabel = "relabel.Config"
	discoveries = "_sd_configs"
)

// A carrier takes parts of a Prometheus configuration over as they are, into where a collector reads them: what a collector
// would read as a variable is escaped, what YAML would read as a number stays the text that Prometheus takes it for, and
// paths mean what they meant. What Prometheus does not know is reported and left out.
type carrier struct {
	in   *input
	file string
	// plain leaves texts, paths and numbers as they are: the input is a collector's already.
	plain bool
	// templates tells that %{NAME} stands for an environment variable.
	templates bool
	// unknown says of a key that Prometheus does not know what to do about it, if there is something. May be nil.
	unknown func(key string) string
	// found are the keys of service discovery that were met.
	found map[string]bool
}

func (in *input) carrier(file string) *carrier {
	return &carrier{in: in, file: file, found: map[string]bool{}}
}

// take copies a value of the given type, which is the one at a path of the input.
func (c *carrier) take(n *yaml.Node, of, path string) *yaml.Node {
	return c.value(n, of, path, "")
}

func (c *carrier) value(n *yaml.Node, of, path, key string) *yaml.Node {
	out := *n
	out.Content = nil
	switch n.Kind {
	case yaml.SequenceNode:
		of = strings.TrimPrefix(of, "[]")
		for i, item := range n.Content {
			out.Content = append(out.Content, c.value(item, of, path+"["+strconv.Itoa(i)+"]", key))
		}
	case yaml.MappingNode:
		c.mapping(n, &out, of, path, key)
	default:
		c.scalar(&out, strings.TrimPrefix(of, "[]"), path, key)
	}
	return &out
}

func (c *carrier) mapping(from, to *yaml.Node, of, path, parent string) {
	values, isMap := strings.CutPrefix(of, "map:")
	known := keys()[of]
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		at, typed := path+"."+key.Value, values
		if now := renamed[key.Value]; now != "" && of == typeJob {
			c.in.report.add(Finding{Kind: Note, File: c.file, Line: key.Line, Path: at, Text: "Prometheus calls it `" + now + "` now"})
			old := key
			key = str(now)
			key.HeadComment, key.Line = old.HeadComment, old.Line
		}
		if !isMap && of != "any" {
			var ok bool
			if typed, ok = known[key.Value]; !ok {
				text := "Prometheus knows no such key, and neither does the receiver"
				if c.unknown != nil && c.unknown(key.Value) != "" {
					text = c.unknown(key.Value)
				}
				c.in.report.add(Finding{Kind: Lost, File: c.file, Line: key.Line, Path: at, Text: text})
				continue
			}
		}
		if mechanism, ok := strings.CutSuffix(key.Value, discoveries); ok {
			c.found[mechanism] = true
		}
		if fault := unlike(value, typed); fault != "" {
			c.in.report.add(Finding{Kind: Lost, File: c.file, Line: value.Line, Path: at, Text: fault})
			continue
		}
		name := key.Value
		if isMap {
			name = parent
		}
		copied := *key
		copied.Anchor = ""
		to.Content = append(to.Content, &copied, c.value(value, typed, at, name))
	}
	if len(to.Content) == 0 {
		to.Style = yaml.FlowStyle
	}
}

// unlike says of a value that it has another form than Prometheus takes, which would be left out key by key.
func unlike(n *yaml.Node, of string) string {
	isList := strings.HasPrefix(of, "[]")
	switch {
	case of == "any":
	case n.Kind == yaml.MappingNode && isList:
		return noList
	case n.Kind == yaml.SequenceNode && !isList && (strings.HasPrefix(of, "map:") || keys()[of] != nil):
		return noMapping
	case n.Kind == yaml.SequenceNode && !isList:
		return noValue
	}
	return ""
}

// renamed are keys of jobs in Prometheus 2, and what Prometheus 3 calls them.
var renamed = map[string]string{"scrape_classic_histograms": "always_scrape_classic_histograms"}

// The words that Prometheus' YAML takes for truths, and a collector's for texts.
var truths = map[string]string{"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}

func (c *carrier) scalar(n *yaml.Node, of, path, key string) {
	switch of {
	case "bool":
		if strings.HasPrefix(n.Value, "$") {
			return
		}
		if plain, ok := truths[strings.ToLower(n.Value)]; ok {
			n.Value, n.Tag, n.Style = plain, "!!bool", 0
		}
		return
	case "num":
		return
	}
	if isNull(n) || c.plain {
		return
	}
	if n.Tag != "!!str" && of != "any" {
		// 1.10 is a label's value, and no number.
		n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle
	}
	if of == "string" && isPath(key, path) {
		n.Value = c.in.join(n.Value)
	}
	if c.templates && strings.HasPrefix(path, "global.external_labels.") {
		n.Value = strings.ReplaceAll(n.Value, "$", "$$") // Prometheus' own code reads variables here, and vmagent does not
	}
	n.Value = c.text(n.Value)
}

// isPath tells keys whose values are paths of files.
func isPath(key, path string) bool {
	switch {
	case strings.HasSuffix(key, "_file"), key == "scrape_config_files":
		return true
	case key == "files":
		return strings.Contains(path, "file_sd_configs") || strings.Contains(path, "http_headers")
	}
	return false
}

// expression compiles an expression when it is first asked for: most processes never convert anything.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// template is a variable of vmagent's files and flags. Those that Compose fills in may say what they are where nobody sets them.
var template = expression(`%\{([A-Za-z_][A-Za-z0-9_]*(?::-[^}%]*)?)\}`)

// text escapes what a collector would read as a variable.
func (c *carrier) text(value string) string {
	value = strings.ReplaceAll(value, "$", "$$")
	switch {
	case c.templates:
		value = template().ReplaceAllString(value, "$${env:$1}")
	case strings.Contains(value, "$$("):
		value = reloaded().ReplaceAllStringFunc(value, func(escaped string) string {
			name := strings.Trim(escaped, "$()")
			c.in.report.add(Finding{Kind: Changed, File: c.file, Text: "$(" + name + ") is filled in by the Prometheus operator's reloader: " +
				"the result takes it from the environment variable " + name})
			if name == "SHARD" {
				name += ":-0"
			}
			return "${env:" + name + "}"
		})
	}
	return value
}

// reloaded are variables, escaped already, that the Prometheus operator's reloader knows: POD_NAME and SHARD.
var reloaded = expression(`\$\$\([A-Z][A-Z0-9_]*\)`)
