// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package convert makes a configuration of a collector out of what people run
// before they run this one: a prometheus.yml, vmagent's flags and files, or the
// configuration of another collector.
//
// It works on YAML, not on the types of Prometheus or of components, so that it
// adds little to a binary. Every key of the input is either taken by a converter
// or named in the report: converters claim what they read, and what nobody
// claimed is reported. An input is read as a whole, up to 16 MiB.
package convert

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A Kind is what somebody's file is.
type Kind string

// The kinds of files. What is not one of the first three is told, and not converted.
const (
	Prometheus Kind = "prometheus"
	VMAgent    Kind = "vmagent"
	Collector  Kind = "collector"
	Auto       Kind = "auto"
)

// A Source is what is to be converted.
type Source struct {
	// From is what the files are, or Auto.
	From Kind
	// Files are the names of files. Those beyond the first belong to it: what flags of vmagent name.
	Files []string
	// Args are flags of vmagent, in place of a file with them.
	Args []string
	// Dir is the directory that relative paths in the files are relative to. Default: the directory of the first file.
	Dir string
	// Distribution is the name of the binary that shall run the result, for example godwit-agent.
	Distribution string
	// Read reads a file that is given, or named in one.
	Read func(name string) ([]byte, error)
	// Glob finds files by a pattern.
	Glob func(pattern string) ([]string, error)
}

// A Result is a configuration and what is to be known of it.
type Result struct {
	// Kind is what the files were.
	Kind Kind
	// Wrapped tells that the first was a manifest of Kubernetes, and Kind is that of the configuration in it.
	Wrapped bool
	Config  []byte
	Report  Report
}

// errNothing is about input without anything that a collector could do.
var errNothing = errors.New("there is nothing to scrape, to receive or to send in it")

// Run converts. An error means that there is no result.
func Run(source Source) (Result, error) {
	in := newInput(source)
	kind, err := in.load()
	if err != nil {
		return Result{}, err
	}
	var config []byte
	switch kind {
	case Prometheus:
		config, err = convertPrometheus(in)
	case VMAgent:
		config, err = convertVMAgent(in)
	case Collector:
		config, err = convertCollector(in)
	default:
		err = fmt.Errorf("it is %s", kind.String())
		if _, fault := parse(in.first); kind == unknown && fault != nil {
			err = fmt.Errorf("%w: %w", err, atLine(in.first, fault))
		}
	}
	if err != nil {
		return Result{}, fmt.Errorf("cannot convert %s: %w", in.name(), err)
	}
	in.close()
	if kind != Collector {
		in.tellVariables(config)
	}
	in.report.sort()
	return Result{Kind: kind, Wrapped: in.wrapped, Config: config, Report: in.report}, nil
}

// An input is the files that are converted, and what is said of them.
type input struct {
	source   Source
	report   Report
	sections []*section
	// first is the contents of the first file, extra those of the others by their base names.
	first []byte
	extra map[string]string
	// dir is what relative paths are relative to.
	dir string
	// mounts are where a container of Docker Compose has files of its host.
	mounts []mount
	// files are those that a manifest of Kubernetes has beside the configuration in it.
	files map[string][]byte
	// wrapped tells whether the first was in such a manifest.
	wrapped bool
	// moved tells whether a relative path was found, and made absolute.
	moved bool
}

func newInput(source Source) *input {
	in := &input{source: source, dir: source.Dir, extra: map[string]string{}}
	if in.dir == "" && len(source.Files) > 0 && source.Files[0] != stdin {
		in.dir = filepath.Dir(source.Files[0])
	}
	if absolute, err := filepath.Abs(in.dir); err == nil {
		in.dir = absolute
	}
	return in
}

// stdin names the standard input.
const stdin = "-"

func (in *input) name() string {
	if len(in.source.Files) == 0 {
		return "the flags"
	}
	return in.source.Files[0]
}

// load reads the first file and says what it is.
func (in *input) load() (Kind, error) {
	if len(in.source.Files) == 0 && len(in.source.Args) == 0 {
		return "", errors.New("cannot convert: name a file")
	}
	for i, name := range in.source.Files {
		if i > 0 {
			in.extra[filepath.Base(name)] = name
			continue
		}
		text, err := in.source.Read(name)
		if err != nil {
			return "", fmt.Errorf("cannot read %s: %w", name, err)
		}
		in.first = text
		inner, err := unwrap(text)
		if err != nil {
			return "", fmt.Errorf("cannot convert %s: %w", name, err)
		}
		if inner != nil {
			in.first, in.files, in.wrapped = inner.text, inner.files, true
			in.report.add(Finding{Kind: Note, File: name, Text: "it is what is in " + inner.of})
			if inner.allocator != nil {
				in.report.add(Finding{Kind: Lost, File: name, Line: inner.allocator.Line, Path: "spec.targetAllocator", Text: "the operator gives receivers `prometheus` a `target_allocator`, " +
					"which has their jobs and those of monitors: keep the manifest, with the image of ours, or write one under the receiver"})
			}
		}
	}
	kind := in.source.From
	switch {
	case len(in.source.Args) > 0:
		return VMAgent, nil
	case kind == "" || kind == Auto:
		return Detect(in.first), nil
	case kind != Prometheus && kind != VMAgent && kind != Collector:
		return "", fmt.Errorf("cannot convert from %q: it must be prometheus, vmagent, collector or auto", kind)
	}
	return kind, nil
}

// open reads a file that is named in another. One that was given beside the first, under whatever directory, is meant first.
func (in *input) open(name string) (text []byte, at string, err error) {
	if given, ok := in.extra[filepath.Base(name)]; ok {
		text, err = in.source.Read(given)
		return text, given, err
	}
	if text, ok := in.files[filepath.Base(name)]; ok {
		return text, in.name(), nil
	}
	if there := outside(in.mounts, name); there != name {
		if !filepath.IsAbs(there) {
			there = filepath.Join(in.dir, there)
		}
		name = there
	}
	text, err = in.source.Read(in.join(name))
	return text, name, err
}

// given are the files beside the first that a pattern names: by its last folder, too, where it stands for several.
func (in *input) given(pattern string) (names []string) {
	for _, base := range slices.Sorted(maps.Keys(in.extra)) {
		name := in.extra[base]
		want, have := filepath.Base(pattern), base
		if strings.ContainsAny(want, "*?[") {
			want = filepath.Join(filepath.Base(filepath.Dir(pattern)), want)
			have = filepath.Join(filepath.Base(filepath.Dir(name)), base)
		}
		if ok, err := filepath.Match(want, have); err == nil && ok {
			names = append(names, name)
		}
	}
	return names
}

// join makes a path absolute as its file meant it.
func (in *input) join(path string) string {
	switch {
	case path == "" || filepath.IsAbs(path) || path[0] == '/' || strings.HasPrefix(path, "${") || strings.HasPrefix(path, "%{"):
		return path
	case strings.Contains(path, "://"):
		return path
	}
	in.moved = true
	return filepath.Join(in.dir, path)
}

// close reports what nobody claimed.
func (in *input) close() {
	for _, s := range in.sections {
		s.close()
	}
	if in.moved {
		in.report.add(Finding{Kind: Changed, File: in.name(), Text: "relative paths were relative to the file, and a collector's are relative to where it " +
			"is started: they begin with " + in.dir + " now; `--dir` says another directory"})
	}
}

var environmentVariable = expression(`(?:^|[^$])\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

// tellVariables says which variables the collector has to have, as whatever the input is of had.
func (in *input) tellVariables(config []byte) {
	var names []string
	for _, found := range environmentVariable().FindAllSubmatch(config, -1) {
		names = append(names, string(found[1]))
	}
	if slices.Sort(names); len(names) > 0 {
		in.report.add(Finding{Kind: Note, Text: "environment variables that the collector must have: " + strings.Join(slices.Compact(names), ", ")})
	}
}
