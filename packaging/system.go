// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

//go:embed files
var templates embed.FS

// agent is the distribution with a file for its queue and a directory for its targets.
const agent = "godwit-agent"

// systemd's directories, which are the same on Debian and Red Hat.
const (
	unitFolder  = "/usr/lib/systemd/system/"
	usersFolder = "/usr/lib/sysusers.d/"
)

func (r *release) writeDeb(b *build) error {
	return r.writePackage(b, deb.Default, "deb-")
}

func (r *release) writeRPM(b *build) error {
	return r.writePackage(b, rpm.DefaultRPM, "rpm-")
}

func (r *release) writePackage(b *build, packager nfpm.Packager, scripts string) (err error) {
	if b.os != "linux" {
		return nil
	}
	staging, err := os.MkdirTemp("", "packaging")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	s := staged{dir: staging, build: b}

	set := func(mode os.FileMode) *files.ContentFileInfo {
		return &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.date}
	}
	etc, doc := "/etc/"+b.name+"/", "/usr/share/doc/"+b.name+"/"
	info := nfpm.Info{
		Name: b.name, Arch: b.arch, Platform: "linux", Version: r.version, Release: "1", Section: "net", Priority: "optional",
		Maintainer: "The Godwit Authors <godwit-otel@users.noreply.github.com>", Vendor: "The Godwit Authors",
		Description: b.description, Homepage: source, License: licence, MTime: r.date, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: files.Contents{
				{Source: b.path, Destination: "/usr/bin/" + b.name, FileInfo: set(0o755)},
				{Source: s.render("unit.service"), Destination: unitFolder + b.name + ".service", FileInfo: set(0o644)},
				{Source: s.render("sysusers.conf"), Destination: usersFolder + b.name + ".conf", FileInfo: set(0o644)},
				{Source: s.render(b.name + ".conf"), Destination: etc + b.name + ".conf", Type: files.TypeConfigNoReplace, FileInfo: set(0o640)},
				{
					Source:      filepath.Join(r.root, "distributions", b.name, "config.yaml"),
					Destination: etc + "config.yaml", Type: files.TypeConfigNoReplace, FileInfo: set(0o640),
				},
				{Destination: etc, Type: files.TypeDir, FileInfo: set(0o755)},
			},
			Scripts: nfpm.Scripts{
				PostInstall: s.render(scripts + "postinstall.sh"), PreRemove: s.render(scripts + "preremove.sh"), PostRemove: s.render(scripts + "postremove.sh"),
			},
			Recommends: []string{"ca-certificates"},
			RPM:        nfpm.RPM{BuildHost: "localhost", Compression: "zstd", Summary: b.description},
		},
	}
	if b.name == agent {
		info.Contents = append(info.Contents,
			&files.Content{Source: s.render("queue.tmpl"), Destination: etc + "queue.yaml", Type: files.TypeConfigNoReplace, FileInfo: set(0o644)},
			&files.Content{Destination: etc + "targets", Type: files.TypeDir, FileInfo: set(0o755)})
	}
	documents, err := r.documents(b)
	if err != nil {
		return err
	}
	for _, d := range documents {
		name := d.name
		if name == "LICENSE" && scripts == "deb-" {
			name = "copyright" // Debian's name for it
		}
		info.Contents = append(info.Contents, &files.Content{Source: s.write(d.name, d.content), Destination: doc + name, FileInfo: set(0o644)})
	}
	if err := errors.Join(s.faults...); err != nil {
		return err
	}
	if r.loose {
		info.Deb.Compression, info.RPM.Compression = "none", "gzip:1"
	}
	ready := nfpm.WithDefaults(&info)
	if err := nfpm.PrepareForPackager(ready, map[string]string{"deb-": "deb", "rpm-": "rpm"}[scripts]); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(ready)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return packager.Package(ready, file)
}

// staged writes the files of a package beside the binary to a directory, because nfpm accepts only files.
type staged struct {
	dir    string
	build  *build
	faults []error
}

func (s *staged) render(name string) string {
	t, err := template.ParseFS(templates, "files/"+name)
	if err != nil {
		s.faults = append(s.faults, fmt.Errorf("cannot read the template %s: %w", name, err))
		return ""
	}
	var text bytes.Buffer
	err = t.Option("missingkey=error").Execute(&text, map[string]any{
		"Name": s.build.name, "Description": s.build.description, "Source": source, "ReadsHost": s.build.readsHost,
	})
	if err != nil {
		s.faults = append(s.faults, err)
	}
	return s.write(name, text.Bytes())
}

func (s *staged) write(name string, content []byte) string {
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		s.faults = append(s.faults, err)
	}
	return path
}
