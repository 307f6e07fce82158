// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package convert makes a configuration of a collector from what people ran
// before: a prometheus.yml, vmagent's flags and files, or the
// configuration of another collector.
//
// It works on YAML, not on the types of Prometheus or of components, so that it
// adds little to a binary. Every key of the input is either converted
// or named in the report: converters claim what they read, and unclaimed
// keys are reported. An input is read as a whole, up to 16 MiB.
//
//	          manifest    extracts the configuration from a Kubernetes manifest
//	             |
//	          detect      says what it is
//	             |
//	prometheus, vmagent, collector     one for each kind, which do not know each other
//	             |
//	          output      components and pipelines that are written
//	             |
//	promconfig, components     jobs and rules of Prometheus; which distribution has what
//	             |
//	           input      what was given, and which of its keys were read
//	             |
//	     document, report YAML with its lines, and what is reported about it
//
// This package has the commands convert and check, and the check of a collector's files before it starts, which finds
// files of other programs; package mistakes finds errors in a collector's own files.
package convert

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/collector"
	"github.com/godwit-otel/godwit/internal/convert/detect"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/manifest"
	"github.com/godwit-otel/godwit/internal/convert/prometheus"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/convert/vmagent"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// A Source is the input of a conversion.
type Source struct {
	// From is the kind of the files, or Auto.
	From detect.Kind
	// Files are the names of files. The second and later ones are those that vmagent's flags refer to.
	Files []string
	// Args are flags of vmagent, given instead of a file with them.
	Args []string
	// Pick names one of several configurations in a manifest of Kubernetes.
	Pick string
	// Dir is the directory that relative paths in the files are relative to. Default: the directory of the first file.
	Dir string
	// Distribution is the name of the binary that will run the result, for example godwit-agent.
	Distribution string
	// Read reads a file that is given, or referred to in one.
	Read func(name string) ([]byte, error)
	// Glob finds files by a pattern.
	Glob func(pattern string) ([]string, error)
}

// A Result is a configuration and the findings about it.
type Result struct {
	// Kind is the kind of the files.
	Kind detect.Kind
	// Wrapped reports that the first file was a Kubernetes manifest; Kind is the kind of the configuration in it.
	Wrapped bool
	Config  []byte
	Report  report.Report
}

// Run converts. An error means that there is no result.
func Run(source Source) (Result, error) {
	in := input.New(input.Given{
		Files: source.Files, Args: source.Args, Dir: source.Dir, Distribution: source.Distribution, Read: source.Read, Glob: source.Glob,
	})
	object, err := load(in, source.Pick)
	if err != nil {
		return Result{}, err
	}
	kind, err := kindOf(in, source)
	if err != nil {
		return Result{}, err
	}
	var config []byte
	switch kind {
	case detect.Prometheus:
		config, err = prometheus.Convert(in, vmagent.IsJobKey)
	case detect.VMAgent:
		config, err = vmagent.Convert(in)
	case detect.Collector:
		config, err = collector.Convert(in)
	default:
		err = fmt.Errorf("it is %s", kind.String())
		if _, fault := document.Parse(in.Text); kind == detect.Unknown && fault != nil {
			err = fmt.Errorf("%w: %w", err, document.AtLine(in.Text, fault))
		}
	}
	if err != nil {
		return Result{}, fmt.Errorf("cannot convert %s: %w", in.Name(), err)
	}
	in.Close(kind == detect.VMAgent)
	if object != nil && source.Pick == "" {
		tellBeside(in, object)
	}
	if kind != detect.Collector || object != nil {
		tellVariables(in, config)
	}
	in.Report.Sort()
	return Result{Kind: kind, Wrapped: object != nil, Config: config, Report: in.Report}, nil
}

const anotherDocument = "another document begins here: only the first of a file is read"

// load reads the first file. For a Kubernetes manifest it returns the object whose configuration is converted.
func load(in *input.Input, pick string) (*manifest.Configuration, error) {
	if len(in.Files) == 0 && len(in.Args) == 0 {
		return nil, errors.New("cannot convert: name a file")
	}
	if len(in.Files) == 0 {
		return nil, nil
	}
	further := in.Files[1:]
	if len(in.Args) > 0 { // they may name the first file, too
		further = in.Files
	}
	if err := in.AddExtra(further); err != nil {
		return nil, err
	}
	name := in.Files[0]
	text, err := in.Read(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	in.Text = text
	object, err := manifest.Unwrap(text, pick)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot convert %s: %w", name, err)
	case object != nil:
		in.Opened[filepath.Base(name)] = true
		take(in, object)
	case pick != "":
		return nil, fmt.Errorf("cannot convert %s: it is no manifest with configurations to pick from", name)
	default:
		if line := document.FurtherDocument(text); line > 0 {
			in.Report.Add(report.Finding{Kind: report.Note, File: name, Line: line, Text: anotherDocument + ", there as here"})
		}
	}
	return object, nil
}

// kindOf returns the kind of the first file.
func kindOf(in *input.Input, source Source) (detect.Kind, error) {
	switch kind := source.From; {
	case len(source.Args) > 0:
		return detect.VMAgent, nil
	case kind == "" || kind == detect.Auto:
		return guess(in), nil
	case kind != detect.Prometheus && kind != detect.VMAgent && kind != detect.Collector:
		return "", fmt.Errorf("cannot convert from %q: it must be prometheus, vmagent, collector or auto", kind)
	default:
		return kind, nil
	}
}

// guess is Detect, except for files that may be either Prometheus' or vmagent's, which look the same: they are
// vmagent's if the files that they refer to are.
func guess(in *input.Input) detect.Kind {
	kind := detect.File(in.Text)
	if kind != detect.Prometheus {
		return kind
	}
	root, err := document.ParseLoosely(in.Text)
	if err != nil || document.Find(root, "remote_write") != nil || document.Find(root, "rule_files") != nil || document.Find(root, "alerting") != nil {
		return kind
	}
	for _, pattern := range document.Contents(document.Find(root, "scrape_config_files")) {
		names := in.Beside(pattern.Value)
		if len(names) == 0 {
			if names, err = in.Glob(in.Join(pattern.Value)); err != nil {
				continue
			}
		}
		for _, name := range names {
			if text, err := in.Read(name); err == nil && detect.File(text) == detect.Jobs {
				return detect.VMAgent
			}
		}
	}
	return kind
}

// take selects a configuration in a manifest as the one to convert.
func take(in *input.Input, w *manifest.Configuration) {
	in.Text, in.Packed = w.Text, w.Files
	say := func(kind report.Outcome, at *yaml.Node, path, text string) {
		f := report.Finding{Kind: kind, File: in.Name(), Path: path, Text: text}
		if at != nil {
			f.Line = at.Line
		}
		in.Report.Add(f)
	}
	say(report.Note, nil, "", "it is what is in "+w.Object)
	if w.Unread != nil {
		say(report.Note, nil, "", "an object in it is not looked at, for it is no YAML: "+w.Unread.Error())
	}
	if allocator := document.Find(w.Spec, "targetAllocator"); document.Truth(document.TextOf(allocator, "enabled")) {
		in.Allocator = "http://" + w.Name() + "-targetallocator:80" // the name that the operator gives it
		say(report.Lost, allocator, "spec.targetAllocator", "the operator gives receivers `prometheus` a `target_allocator`, "+
			"which has their jobs and those of monitors: keep the manifest, with the image of ours, or write one under the receiver")
	}
	if args := document.Find(w.Spec, "args"); !document.IsNull(args) {
		say(report.Lost, args, "spec.args", "they are arguments of the collector's command, and no part of its configuration: give them to ours")
	}
	w.SayArguments(in)
}

// tellBeside reports the configurations of a manifest that are not converted.
func tellBeside(in *input.Input, chosen *manifest.Configuration) {
	for _, w := range chosen.Beside {
		if w.File == "" || !in.Opened[w.File] {
			in.Report.Add(report.Finding{Kind: report.Note, File: in.Name(), Text: "there is also " + w.Object + " in it, which `--pick " + strconv.Quote(w.Object) + "` converts"})
		}
	}
}

// environmentVariable matches a variable without a default, and the dollars before it: two dollars stand for a literal
// one.
var environmentVariable = lazyregexp.New(`(\$+)\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}`)

// tellVariables reports which environment variables the collector needs, as the program did that the input is for.
func tellVariables(in *input.Input, config []byte) {
	var names []string
	for _, found := range environmentVariable().FindAllSubmatch(config, -1) {
		if len(found[1])%2 == 1 {
			names = append(names, string(found[2]))
		}
	}
	if slices.Sort(names); len(names) > 0 {
		in.Report.Add(report.Finding{Kind: report.Note, Text: "environment variables that the collector must have: " + strings.Join(slices.Compact(names), ", ")})
	}
}
