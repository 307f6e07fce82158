// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// entry is a file, or a directory if it has no content and its name ends in a slash.
type entry struct {
	name    string
	mode    int64
	owner   int
	content []byte
}

// writeTar writes the entries in order, each after its parent directories. The result does not depend on the machine.
func writeTar(w io.Writer, date time.Time, entries []entry) error {
	archive, made := tar.NewWriter(w), map[string]bool{".": true}
	header := func(h tar.Header) error {
		h.ModTime, h.Format = date, tar.FormatPAX
		return archive.WriteHeader(&h)
	}
	var folder func(name string, owner int, mode int64) error
	folder = func(name string, owner int, mode int64) error {
		if made[name] {
			return nil
		}
		made[name] = true
		if err := folder(path.Dir(name), 0, 0o755); err != nil {
			return err
		}
		return header(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, Uid: owner, Gid: owner})
	}
	for _, e := range entries {
		name := strings.Trim(e.name, "/")
		if strings.HasSuffix(e.name, "/") {
			if err := folder(name, e.owner, e.mode); err != nil {
				return err
			}
			continue
		}
		if err := folder(path.Dir(name), 0, 0o755); err != nil {
			return err
		}
		if err := header(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content))}); err != nil {
			return err
		}
		if _, err := archive.Write(e.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// documents returns the documents that accompany every binary in any format.
func (r *release) documents(b *build) ([]entry, error) {
	readme, err := os.ReadFile(filepath.Join(r.root, "distributions", b.name, "README.md"))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	others, err := notices(b)
	if err != nil {
		return nil, err
	}
	list, err := r.sbom(b)
	if err != nil {
		return nil, err
	}
	return []entry{
		{name: "LICENSE", mode: 0o644, content: text},
		{name: "README.md", mode: 0o644, content: readme},
		{name: "THIRD-PARTY-LICENSES", mode: 0o644, content: others},
		{name: "sbom.cdx.json", mode: 0o644, content: list},
	}, nil
}

// writeArchive packs the binary, its configuration and its documents into one directory.
func (r *release) writeArchive(b *build) (err error) {
	entries, err := r.documents(b)
	if err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(r.root, "distributions", b.name, "config.yaml"))
	if err != nil {
		return err
	}
	program, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	entries = append(entries, entry{name: "config.yaml", mode: 0o644, content: config}, entry{name: b.binary(), mode: 0o755, content: program})
	if b.name == agent {
		entries = append(entries, entry{name: "targets/", mode: 0o755}) // its configuration watches it
	}
	for i := range entries {
		entries[i].name = b.name + "_" + r.version + "/" + entries[i].name
	}
	file, err := os.Create(r.artefact(b, ".tar.gz"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed, err := gzip.NewWriterLevel(file, r.level())
	if err != nil {
		return err
	}
	return errors.Join(writeTar(packed, r.date, entries), packed.Close())
}
