// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/detect"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// An argument is an argument of a container, with its value.
type argument struct {
	text string
	line int
}

// startArguments returns the arguments with which containers of a manifest start Prometheus or a collector, except
// those that name the configuration.
func startArguments(n *yaml.Node) (all []argument) {
	if n == nil {
		return nil
	}
	for _, key := range []string{"command", "args"} {
		all = append(all, ofCommand(document.Contents(document.Find(n, key)))...)
	}
	for _, child := range n.Content {
		all = append(all, startArguments(child)...)
	}
	return all
}

// ofCommand returns the arguments in one list, none if none of them names a configuration.
func ofCommand(list []*yaml.Node) (all []argument) {
	starts := false
	for i := 0; i < len(list); i++ {
		arg := argument{list[i].Value, list[i].Line}
		if !strings.HasPrefix(arg.text, "-") {
			continue // the command itself
		}
		if i+1 < len(list) && !strings.Contains(arg.text, "=") && !strings.HasPrefix(list[i+1].Value, "-") {
			i++
			arg.text += "=" + list[i].Value
		}
		switch flag, value, _ := strings.Cut(arg.text, "="); {
		case flag == "--config.file", flag == "--config" && !strings.HasPrefix(value, "env:") && !strings.HasPrefix(value, "yaml:"):
			starts = true
		default:
			all = append(all, arg)
		}
	}
	if !starts {
		return nil
	}
	return all
}

// pointless are flags of Prometheus without a meaning if nothing is stored or queried, or that a collector does not
// need.
var pointless = []string{
	"--agent", "--storage.", "--query.", "--rules.", "--alertmanager.", "--web.enable-lifecycle", "--web.enable-admin-api", "--web.console.", "--web.external-url",
	"--web.route-prefix", "--web.page-title", "--web.max-connections", "--log.", "--auto-gom", "--no-",
}

// SayArguments reports the arguments that were used with the configuration but are not part of it.
func (c *Configuration) SayArguments(in *input.Input) {
	if len(c.arguments) == 0 {
		return
	}
	kind := detect.File(c.Text)
	for _, arg := range c.arguments {
		f := report.Finding{Kind: report.Lost, File: in.Name(), Line: arg.line, Path: arg.text, Text: "it is an argument of the collector's command, and no part of its configuration: give it to ours"}
		if kind == detect.Prometheus {
			flag, value, _ := strings.Cut(arg.text, "=")
			switch {
			case flag == "--web.enable-remote-write-receiver", flag == "--enable-feature" && strings.Contains(value, "remote-write-receiver"):
				f.Text = "add the receiver `remotewrite` to the pipeline if anything sends here"
			case flag == "--web.enable-otlp-receiver":
				f.Text = "add the receiver `otlp` to the pipeline if anything sends here"
			case flag == "--enable-feature":
				f.Text = "features that are about scraping are keys of `global` here, such as `scrape_native_histograms` and `extra_scrape_metrics`; others have no meaning"
			case hasAnyPrefix(flag, pointless):
				continue
			default:
				f.Text = "it is a flag of Prometheus' command, and no part of its configuration"
			}
		}
		in.Report.Add(f)
	}
}

func hasAnyPrefix(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
