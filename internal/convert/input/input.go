// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package input has the files that are converted. A converter claims each key that it reads, and keys that nobody has claimed are reported at the end.
package input

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// Given describes what to convert.
type Given struct {
	// Files are names of files. All but the first are files that the first one names, such as those in vmagent's flags.
	Files []string
	// Args are flags of vmagent, instead of a file with them.
	Args []string
	// Dir is the directory that relative paths in the files are relative to. Default: the directory of the first file.
	Dir string
	// Distribution is the one that will run the result.
	Distribution string
	// Read reads a file that is given, or that another file names.
	Read func(name string) ([]byte, error)
	// Glob returns the files that match a pattern.
	Glob func(pattern string) ([]string, error)
}

// An Input holds the files to convert and the report on them.
type Input struct {
	Given

	Report   report.Report
	sections []*Section
	// Text is the content of the first file. extra maps the base names of the others to their names.
	Text  []byte
	extra map[string]string
	// Mounts are the files of the host that a container of Docker sees.
	Mounts []Mount
	// Packed are files in a Kubernetes manifest besides the configuration.
	Packed map[string]PackedFile
	// Allocator is the address of the operator's target allocator for the configuration, "" if there is none.
	Allocator string
	// Opened are the base names of files that were opened.
	Opened map[string]bool
	// moved reports whether a relative path was made absolute.
	moved bool
}

// PackedFile is a file of a ConfigMap or a Secret. Others reports whether other objects have a file of the same name.
type PackedFile struct {
	Text   []byte
	Object string
	Others bool
}

// ErrNothing is returned for input with nothing that a collector could do.
var ErrNothing = errors.New("there is nothing to scrape, to receive or to send in it")

// Stdin is the name of the standard input.
const Stdin = "-"

// New returns an input without reading its files.
func New(what Given) *Input {
	in := &Input{Given: what, extra: map[string]string{}, Opened: map[string]bool{}}
	in.Read = func(name string) ([]byte, error) {
		text, err := what.Read(name)
		return document.Readable(text), err
	}
	if in.Dir == "" && len(in.Files) > 0 && in.Files[0] != Stdin {
		in.Dir = filepath.Dir(in.Files[0])
	}
	if absolute, err := filepath.Abs(in.Dir); err == nil {
		in.Dir = absolute
	}
	return in
}

// Name returns the input's name in a report.
func (in *Input) Name() string {
	if len(in.Files) == 0 {
		return "the flags"
	}
	return in.Files[0]
}

// Open reads a file that another file names. A given file with the same base name takes precedence, whatever its
// directory.
func (in *Input) Open(name string) (text []byte, at string, err error) {
	base := filepath.Base(name)
	in.Opened[base] = true
	if given, ok := in.extra[base]; ok {
		text, err = in.Read(given)
		return text, given, err
	}
	if file, ok := in.Packed[base]; ok {
		if file.Others {
			in.Report.Add(report.Finding{Kind: report.Changed, File: in.Name(), Text: "several objects have a file " + base + ": that of " + file.Object + " is taken"})
		}
		return file.Text, in.Name(), nil
	}
	if there := outside(in.Mounts, name); there != name {
		if given, ok := in.extra[filepath.Base(there)]; ok {
			in.Opened[filepath.Base(there)] = true
			text, err = in.Read(given)
			return text, given, err
		}
		if !filepath.IsAbs(there) {
			there = filepath.Join(in.Dir, there)
		}
		name = there
	}
	moved := in.moved
	text, err = in.Read(in.Join(name))
	in.moved = moved // the path is read here, and not in the result
	return text, name, err
}

// Beside returns the given files that match a pattern by their base names. If the last part of the pattern is a
// wildcard, the directory must match, too.
func (in *Input) Beside(pattern string) (names []string) {
	for _, base := range slices.Sorted(maps.Keys(in.extra)) {
		name := in.extra[base]
		want, have := filepath.Base(pattern), base
		if strings.ContainsAny(want, "*?[") {
			want = filepath.Join(filepath.Base(filepath.Dir(pattern)), want)
			have = filepath.Join(filepath.Base(filepath.Dir(name)), base)
		}
		if ok, err := filepath.Match(want, have); err == nil && ok {
			in.Opened[base] = true
			names = append(names, name)
		}
	}
	return names
}

// Join makes a path absolute, relative to the directory of the input.
func (in *Input) Join(path string) string {
	switch {
	case path == "" || filepath.IsAbs(path) || path[0] == '/' || strings.HasPrefix(path, "${") || strings.HasPrefix(path, "%{"):
		return path
	case strings.Contains(path, "://"):
		return path
	}
	in.moved = true
	return filepath.Join(in.Dir, path)
}

// Close reports keys that were not claimed and files that were not read.
func (in *Input) Close(named bool) {
	for _, s := range in.sections {
		s.close()
	}
	in.unread(named)
	if in.moved {
		in.Report.Add(report.Finding{Kind: report.Changed, File: in.Name(), Text: "relative paths were relative to the file, and a collector's are relative to where it " +
			"is started: they begin with " + in.Dir + " now; `--dir` says another directory"})
	}
}

// unread reports the files that were not read. If flags name files, some of the given ones may not be among them.
func (in *Input) unread(named bool) {
	for _, base := range slices.Sorted(maps.Keys(in.extra)) {
		switch {
		case in.Opened[base]:
		case named:
			in.Report.Add(report.Finding{Kind: report.Note, File: in.extra[base], Text: "nothing names it, and it is not read"})
		default:
			in.Report.Add(report.Finding{Kind: report.Lost, File: in.extra[base], Text: "it is not read: convert each file by itself; a collector takes several, each with a `--config` of its own"})
		}
	}
}

// AddExtra adds files that the first file or the flags may name.
func (in *Input) AddExtra(names []string) error {
	for _, name := range names {
		base := filepath.Base(name)
		if was := in.extra[base]; was != "" && was != name {
			return fmt.Errorf("cannot convert: %s and %s have one name, and what is named in a file is found by it: give one of them another", was, name)
		}
		in.extra[base] = name
	}
	return nil
}
