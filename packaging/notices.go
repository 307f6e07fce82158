// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/module"
)

var noticeFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)`)

// notices returns the licences of the modules linked into a binary, as they require: each text once, below its modules.
// The texts are read from the module cache, which has the modules that the binary was built from.
func notices(b *build) ([]byte, error) {
	folders, err := goFolders()
	if err != nil {
		return nil, err
	}
	modules := map[string][]string{} // modules by text
	for _, m := range b.info.Deps {
		if m = linked(m); strings.HasPrefix(m.Path, ownModules) {
			continue // under the licence of this repository
		}
		path, err := module.EscapePath(m.Path)
		if err != nil {
			return nil, err
		}
		version, err := module.EscapeVersion(m.Version)
		if err != nil {
			return nil, err
		}
		if err := collect(modules, filepath.Join(folders[0], path+"@"+version), m.Path+" "+m.Version); err != nil {
			return nil, fmt.Errorf("cannot read the licence of %s: run `go mod download` in the distribution's folder: %w", m.Path, err)
		}
	}
	if err := collect(modules, folders[1], "Go "+b.info.GoVersion); err != nil {
		return nil, fmt.Errorf("cannot read the licence of Go: %w", err)
	}
	sections := make([]string, 0, len(modules))
	for text, names := range modules {
		slices.Sort(names)
		sections = append(sections, strings.Join(slices.Compact(names), "\n")+"\n\n"+text)
	}
	slices.Sort(sections)
	rule := strings.Repeat("=", 80) + "\n"
	return []byte("What is linked into " + b.name + ", and under which licences.\n\n" + rule + strings.Join(sections, "\n"+rule)), nil
}

func collect(modules map[string][]string, dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !noticeFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		key := string(bytes.TrimSpace(text)) + "\n"
		modules[key] = append(modules[key], name)
	}
	return nil
}

// goFolders returns the directories of the module cache and of Go's own sources.
var goFolders = sync.OnceValues(func() (folders [2]string, err error) {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return folders, fmt.Errorf("cannot ask `go env` where the module cache is: %w", err)
	}
	if n := copy(folders[:], strings.Split(strings.TrimSpace(string(out)), "\n")); n != len(folders) {
		return folders, fmt.Errorf("cannot read %q of `go env`", out)
	}
	return folders, nil
})
