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

// Given is what somebody wants to have converted.
type Given struct {
	// Files are the names of files. Those beyond the first belong to it: what flags of vmagent name.
	Files []string
	// Args are flags of vmagent, in place of a file with them.
	Args []string
	// Dir is the directory that relative paths in the files are relative to. Default: the directory of the first file.
	Dir string
	// Distribution shall run the result.
	Distribution string
	// Read reads a file that is given, or named in one.
	Read func(name string) ([]byte, error)
	// Glob finds files by a pattern.
	Glob func(pattern string) ([]string, error)
}

// An Input is the files that are converted, and what is said of them.
type Input struct {
	Given

	Report   report.Report
	sections []*Section
	// Text is the contents of the first file, extra those of the others by their base names.
	Text  []byte
	extra map[string]string
	// Mounts are where a container of Docker Compose has files of its host.
	Mounts []Mount
	// Packed are files that a manifest of Kubernetes has beside the configuration in it.
	Packed map[string]PackedFile
	// Allocator is where the operator's target allocator for the configuration is, "" where there is none.
	Allocator string
	// Opened are the files of either that were read.
	Opened map[string]bool
	// moved reports whether a relative path was found, and made absolute.
	moved bool
}

// PackedFile is a file of a ConfigMap or a Secret; others tells that there is another of its name.
type PackedFile struct {
	Text   []byte
	Object string
	Others bool
}

// ErrNothing is about input without anything that a collector could do.
var ErrNothing = errors.New("there is nothing to scrape, to receive or to send in it")

// Stdin names the standard input.
const Stdin = "-"

// New is an input of which nothing is read yet.
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

// Name is what the input is called in a report.
func (in *Input) Name() string {
	if len(in.Files) == 0 {
		return "the flags"
	}
	return in.Files[0]
}

// Open reads a file that is named in another. One that was given beside the first, under whatever directory, is meant first.
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
		if !filepath.IsAbs(there) {
			there = filepath.Join(in.Dir, there)
		}
		name = there
	}
	text, err = in.Read(in.Join(name))
	return text, name, err
}

// Beside are the files beside the first that a pattern names: by its last folder, too, where it stands for several.
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

// Join makes a path absolute as its file meant it.
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

// Close reports what nobody claimed.
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

// unread reports files that nobody has read. Where flags name files, it may be that none names these.
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

// AddExtra takes files beside the first, which it or the flags may name.
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
