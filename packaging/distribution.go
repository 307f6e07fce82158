// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	source  = "https://github.com/godwit-otel/godwit"
	licence = "Apache-2.0"
)

// distribution is what its directory says about it; its Dockerfile describes the image.
type distribution struct {
	name, description string
	// readsHost is set if a component reads what processes of the machine do.
	readsHost bool
	stage     stage
}

func (r *release) distribution(name string) (*distribution, error) {
	dir := filepath.Join(r.root, "distributions", name)
	main, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot find the distribution %q: %w", name, err)
	}
	described := regexp.MustCompile(`Description:\s+"([^"]*)"`).FindSubmatch(main)
	if described == nil {
		return nil, fmt.Errorf("cannot find the description of %s in its main.go", name)
	}
	components, err := os.ReadFile(filepath.Join(dir, "components.go"))
	if err != nil {
		return nil, err
	}
	stage, err := finalStage(filepath.Join(dir, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	return &distribution{
		name: name, description: string(described[1]), stage: stage,
		readsHost: bytes.Contains(components, []byte("hostmetricsreceiver")),
	}, nil
}

// build is a distribution's binary for one platform.
type build struct {
	*distribution

	os, arch, path string
	info           *buildinfo.BuildInfo
	digest         [sha256.Size]byte
}

func (r *release) build(d *distribution, platform string) (*build, error) {
	goos, arch, found := strings.Cut(platform, "/")
	if !found {
		return nil, fmt.Errorf("cannot read the platform %q: give os/arch", platform)
	}
	b := &build{distribution: d, os: goos, arch: arch}
	path := filepath.Join(r.binaries, goos+"_"+arch, b.binary())
	var err error
	if b.path, err = filepath.EvalSymlinks(path); err != nil { // otherwise a package would contain the link
		return nil, fmt.Errorf("cannot find the binary of %s for %s: %w", d.name, platform, err)
	}
	content, err := os.ReadFile(b.path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the binary of %s for %s: %w", d.name, platform, err)
	}
	b.digest = sha256.Sum256(content)
	if b.info, err = buildinfo.Read(bytes.NewReader(content)); err != nil {
		return nil, fmt.Errorf("cannot read what %s was built from: %w", b.path, err)
	}
	return b, nil
}

// binary returns the file name.
func (b *build) binary() string {
	if b.os == "windows" {
		return b.name + ".exe"
	}
	return b.name
}

// artefact returns the path of a file made from this binary.
func (r *release) artefact(b *build, ending string) string {
	return filepath.Join(r.out, fmt.Sprintf("%s_%s_%s_%s%s", b.name, r.version, b.os, b.arch, ending))
}

// stage holds the arguments of each instruction in the last stage of a Dockerfile.
type stage map[string][]string

func finalStage(file string) (stage, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := stage{}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		verb, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "", "#":
		case "FROM":
			clear(s)
			if strings.TrimSpace(args) != "scratch" {
				s["FROM"] = []string{args}
			}
		case "ARG", "LABEL", "COPY", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD":
			s[verb] = append(s[verb], strings.TrimSpace(args))
		default:
			s["RUN"] = append(s["RUN"], line)
		}
	}
	var faults []error
	for _, verb := range []string{"FROM", "RUN"} {
		if len(s[verb]) > 0 {
			faults = append(faults, fmt.Errorf("cannot make an image of %s without an engine: its last stage has %q", file, s[verb][0]))
		}
	}
	for _, verb := range []string{"COPY", "USER", "ENTRYPOINT", "CMD"} {
		if len(s[verb]) == 0 {
			faults = append(faults, fmt.Errorf("cannot make an image of %s: no %s in its last stage", file, verb))
		}
	}
	return s, errors.Join(faults...)
}

// words returns all arguments of an instruction.
func (s stage) words(verb string) []string {
	var all []string
	for _, args := range s[verb] {
		all = append(all, strings.Fields(args)...)
	}
	return all
}

// list returns the arguments of an instruction in its JSON form.
func (s stage) list(verb string) ([]string, error) {
	var list []string
	if err := json.Unmarshal([]byte(s[verb][0]), &list); err != nil {
		return nil, fmt.Errorf("cannot read %s %s: %w", verb, s[verb][0], err)
	}
	return list, nil
}

// copied is one COPY: its source, its destination, and its owner there.
type copied struct {
	from, to  string
	fromBuild bool
	owner     int
}

func (s stage) copies() ([]copied, error) {
	all := make([]copied, 0, len(s["COPY"]))
	for _, args := range s["COPY"] {
		c, words := copied{}, strings.Fields(args)
		for ; strings.HasPrefix(words[0], "--"); words = words[1:] {
			switch key, value, _ := strings.Cut(words[0], "="); {
			case key == "--from" && value == "build":
				c.fromBuild = true
			case key == "--chown":
				if _, err := fmt.Sscanf(value, "%d:", &c.owner); err != nil {
					return nil, fmt.Errorf("cannot read COPY %s: %w", args, err)
				}
			default:
				return nil, fmt.Errorf("cannot do COPY %s: %s is unknown", args, key)
			}
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("cannot do COPY %s: give one source and one destination", args)
		}
		c.from, c.to = words[0], words[1]
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b copied) int { return strings.Compare(a.to, b.to) })
	return all, nil
}
