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
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
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
	// Pick names one of several configurations in a manifest of Kubernetes.
	Pick string
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
	in.close(kind)
	if kind != Collector || in.wrapped {
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
	// files are those that a manifest of Kubernetes has beside the configuration in it, and beside other configurations.
	files  map[string]manifestFile
	beside []wrapped
	// opened are the files of either that were read.
	opened map[string]bool
	// wrapped tells whether the first was in such a manifest.
	wrapped bool
	// moved tells whether a relative path was found, and made absolute.
	moved bool
}

func newInput(source Source) *input {
	in := &input{source: source, dir: source.Dir, extra: map[string]string{}, opened: map[string]bool{}}
	in.source.Read = func(name string) ([]byte, error) {
		text, err := source.Read(name)
		return readable(text), err
	}
	if in.dir == "" && len(source.Files) > 0 && source.Files[0] != stdin {
		in.dir = filepath.Dir(source.Files[0])
	}
	if absolute, err := filepath.Abs(in.dir); err == nil {
		in.dir = absolute
	}
	return in
}

const anotherDocument = "another document begins here: only the first of a file is read"

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
			base := filepath.Base(name)
			if was := in.extra[base]; was != "" && was != name {
				return "", fmt.Errorf("cannot convert: %s and %s have one name, and what is named in a file is found by it: give one of them another", was, name)
			}
			in.extra[base] = name
			continue
		}
		text, err := in.source.Read(name)
		if err != nil {
			return "", fmt.Errorf("cannot read %s: %w", name, err)
		}
		in.first = text
		inner, err := unwrap(text, in.source.Pick)
		switch {
		case err != nil:
			return "", fmt.Errorf("cannot convert %s: %w", name, err)
		case inner != nil:
			in.take(inner)
		case in.source.Pick != "":
			return "", fmt.Errorf("cannot convert %s: it is no manifest with configurations to pick from", name)
		default:
			if line := furtherDocument(text); line > 0 {
				in.report.add(Finding{Kind: Note, File: name, Line: line, Text: anotherDocument + ", there as here"})
			}
		}
	}
	kind := in.source.From
	switch {
	case len(in.source.Args) > 0:
		return VMAgent, nil
	case kind == "" || kind == Auto:
		return in.detect(), nil
	case kind != Prometheus && kind != VMAgent && kind != Collector:
		return "", fmt.Errorf("cannot convert from %q: it must be prometheus, vmagent, collector or auto", kind)
	}
	return kind, nil
}

// take makes a configuration in a manifest the one to convert.
func (in *input) take(w *wrapped) {
	in.first, in.files, in.beside, in.wrapped = w.text, w.files, w.beside, true
	say := func(kind Outcome, at *yaml.Node, path, text string) {
		f := Finding{Kind: kind, File: in.name(), Path: path, Text: text}
		if at != nil {
			f.Line = at.Line
		}
		in.report.add(f)
	}
	say(Note, nil, "", "it is what is in "+w.of)
	if w.unread != nil {
		say(Note, nil, "", "an object in it is not looked at, for it is no YAML: "+w.unread.Error())
	}
	if allocator := find(w.spec, "targetAllocator"); truth(textOf(allocator, "enabled")) {
		say(Lost, allocator, "spec.targetAllocator", "the operator gives receivers `prometheus` a `target_allocator`, "+
			"which has their jobs and those of monitors: keep the manifest, with the image of ours, or write one under the receiver")
	}
	if args := find(w.spec, "args"); !isNull(args) {
		say(Lost, args, "spec.args", "they are arguments of the collector's command, and no part of its configuration: give them to ours")
	}
}

// furtherDocument is the line of the first document that nobody reads, 0 for none.
func furtherDocument(text []byte) int {
	if !bytes.Contains(text, []byte("\n---")) {
		return 0
	}
	first := true
	for _, document := range documents(text) {
		root, err := parseLoosely(document)
		switch {
		case err != nil || isNull(root):
		case first:
			first = false
		default:
			return root.Line
		}
	}
	return 0
}

// detect says what the first file is. Of Prometheus' and vmagent's, which look the same, it is vmagent's if the files that it names are.
func (in *input) detect() Kind {
	kind := Detect(in.first)
	if kind != Prometheus {
		return kind
	}
	root, err := parseLoosely(in.first)
	if err != nil || find(root, "remote_write") != nil || find(root, "rule_files") != nil || find(root, "alerting") != nil {
		return kind
	}
	for _, pattern := range contents(find(root, "scrape_config_files")) {
		names := in.given(pattern.Value)
		if len(names) == 0 {
			if names, err = in.source.Glob(in.join(pattern.Value)); err != nil {
				continue
			}
		}
		for _, name := range names {
			if text, err := in.source.Read(name); err == nil && Detect(text) == jobs {
				return VMAgent
			}
		}
	}
	return kind
}

// open reads a file that is named in another. One that was given beside the first, under whatever directory, is meant first.
func (in *input) open(name string) (text []byte, at string, err error) {
	base := filepath.Base(name)
	in.opened[base] = true
	if given, ok := in.extra[base]; ok {
		text, err = in.source.Read(given)
		return text, given, err
	}
	if file, ok := in.files[base]; ok {
		if file.others {
			in.report.add(Finding{Kind: Changed, File: in.name(), Text: "several objects have a file " + base + ": that of " + file.of + " is taken"})
		}
		return file.text, in.name(), nil
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
			in.opened[base] = true
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

// unread reports files and configurations that are there, and not in the result.
func (in *input) unread(kind Kind) {
	for _, base := range slices.Sorted(maps.Keys(in.extra)) {
		switch {
		case in.opened[base]:
		case kind == VMAgent:
			in.report.add(Finding{Kind: Note, File: in.extra[base], Text: "nothing names it, and it is not read"})
		default:
			in.report.add(Finding{Kind: Lost, File: in.extra[base], Text: "it is not read: convert each file by itself; a collector takes several, each with a `--config` of its own"})
		}
	}
	if in.source.Pick != "" {
		return
	}
	for _, w := range in.beside {
		if w.file == "" || !in.opened[w.file] {
			in.report.add(Finding{Kind: Note, File: in.name(), Text: "there is also " + w.of + " in it, which `--pick " + strconv.Quote(w.of) + "` converts"})
		}
	}
}

// close reports what nobody claimed.
func (in *input) close(kind Kind) {
	for _, s := range in.sections {
		s.close()
	}
	in.unread(kind)
	if in.moved {
		in.report.add(Finding{Kind: Changed, File: in.name(), Text: "relative paths were relative to the file, and a collector's are relative to where it " +
			"is started: they begin with " + in.dir + " now; `--dir` says another directory"})
	}
}

var environmentVariable = expression(`(?:^|[^$])\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}`)

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
