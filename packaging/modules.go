// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// runModules writes the tagged modules of a repository to a directory that serves as a module proxy with
// GOPROXY=file://<directory>: for machines without access to a proxy, and for tests.
func runModules(args []string) error {
	flags := flag.NewFlagSet("packaging modules", flag.ContinueOnError)
	root := flags.String("root", ".", "root of the repository")
	version := flags.String("version", "", "version of the tags, as vX.Y.Z")
	out := flags.String("out", "bin/modules", "folder to write to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	tags, err := exec.Command("git", "-C", *root, "tag", "--list", "*/"+*version).Output()
	if err != nil {
		return fmt.Errorf("cannot list the tags of %s: %w", *root, err)
	}
	found := strings.Fields(string(tags))
	if len(found) == 0 {
		return fmt.Errorf("cannot find modules of %q: run `make tags VERSION=%[1]s` first", *version)
	}
	for _, tag := range found {
		if err := writeModule(*root, tag, *version, *out); err != nil {
			return fmt.Errorf("cannot write the module of the tag %s: %w", tag, err)
		}
	}
	return nil
}

// writeModule writes the four files of one version.
func writeModule(root, tag, version, out string) (err error) {
	dir := strings.TrimSuffix(tag, "/"+version)
	text, err := exec.Command("git", "-C", root, "show", tag+":"+dir+"/go.mod").Output()
	if err != nil {
		return fmt.Errorf("cannot read its go.mod: %w", err)
	}
	m := module.Version{Path: modfile.ModulePath(text), Version: version}
	if want := ownModules + dir; m.Path != want {
		return fmt.Errorf("cannot serve it: its go.mod says %s, and Go would look for %s", m.Path, want)
	}
	when, err := exec.Command("git", "-C", root, "log", "-1", "--format=%cI", tag).Output()
	if err != nil {
		return err
	}
	date, err := time.Parse(time.RFC3339, strings.TrimSpace(string(when)))
	if err != nil {
		return err
	}
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	folder := filepath.Join(out, filepath.FromSlash(path.Join(escaped, "@v")))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, date.UTC().Format(time.RFC3339))
	file, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "list"), []byte(version+"\n"), 0o644),
		os.WriteFile(filepath.Join(folder, version+".info"), []byte(info), 0o644),
		os.WriteFile(filepath.Join(folder, version+".mod"), text, 0o644),
		zip.CreateFromVCS(file, m, root, tag, dir),
	)
}
