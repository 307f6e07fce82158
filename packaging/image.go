// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const sbomType = "application/vnd.cyclonedx+json"

// writeImage makes one image for all architectures, as the last stage of the distribution's Dockerfile says, and writes
// it as an archive of an OCI layout. The layout also has the SBOMs, as artefacts that refer to the image.
func (r *release) writeImage(d *distribution, builds []*build) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	boms := make([]v1.Image, 0, len(builds))
	for _, b := range builds {
		image, err := r.image(b)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.os, Architecture: b.arch}},
		})
		about, err := r.bomOf(b, image)
		if err != nil {
			return err
		}
		boms = append(boms, about)
	}
	index = mutate.Annotations(index, r.labels(d)).(v1.ImageIndex)

	staging, err := os.MkdirTemp("", "packaging")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	written, err := layout.Write(staging, empty.Index)
	if err != nil {
		return err
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version,
		"io.containerd.image.name":          d.name + ":" + r.version,
	})); err != nil {
		return err
	}
	for _, about := range boms {
		if err := written.AppendImage(about); err != nil {
			return err
		}
	}
	return r.writeLayout(filepath.Join(r.out, d.name+"_"+r.version+"_image.tar"), staging)
}

// image returns the image of one architecture: a layer of files that seldom change, then one with the binary.
func (r *release) image(b *build) (v1.Image, error) {
	entrypoint, err1 := b.stage.list("ENTRYPOINT")
	command, err2 := b.stage.list("CMD")
	entries, program, err3 := r.imageFiles(b)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	ports := map[string]struct{}{}
	for _, port := range b.stage.words("EXPOSE") {
		ports[port+"/tcp"] = struct{}{}
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: b.os, Architecture: b.arch, Author: "The Godwit Authors", Created: v1.Time{Time: r.date},
		Config: v1.Config{
			User: b.stage["USER"][0], Env: b.stage.words("ENV"), ExposedPorts: ports,
			Entrypoint: entrypoint, Cmd: command, Labels: r.labels(b.distribution),
		},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		says    string
		entries []entry
	}{{"configuration, certificates and documents", entries}, {"/" + b.name, program}} {
		layer, err := r.layer(part.entries)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: part.says},
		})
		if err != nil {
			return nil, err
		}
	}
	return image, nil
}

// imageFiles executes the COPY instructions of the Dockerfile.
func (r *release) imageFiles(b *build) (entries, program []entry, err error) {
	copies, err := b.stage.copies()
	if err != nil {
		return nil, nil, err
	}
	for _, c := range copies {
		switch {
		case c.fromBuild && c.from == "/empty":
			mode := int64(0o755) // root owns it, and the service reads it
			if c.owner != 0 {
				mode = 0o750
			}
			entries = append(entries, entry{name: c.to + "/", owner: c.owner, mode: mode})
		case c.fromBuild && c.from == "/etc/ssl/certs/ca-certificates.crt":
			entries = append(entries, entry{name: c.to, mode: 0o644, content: certificates()})
		case c.fromBuild && c.from == "/src/bin/"+b.name:
			content, err := os.ReadFile(b.path)
			if err != nil {
				return nil, nil, err
			}
			program = append(program, entry{name: c.to, mode: 0o755, content: content})
		case c.fromBuild:
			return nil, nil, fmt.Errorf("cannot copy %s out of the Dockerfile's build stage", c.from)
		default:
			content, err := os.ReadFile(filepath.Join(r.root, c.from))
			if err != nil {
				return nil, nil, err
			}
			entries = append(entries, entry{name: c.to, mode: 0o644, content: content})
		}
	}
	documents, err := r.documents(b)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range documents {
		d.name = "/usr/share/doc/" + b.name + "/" + d.name
		entries = append(entries, d)
	}
	return entries, program, nil
}

// certificates returns Mozilla's root certificates as the Go project publishes them, which do not depend on the
// machine.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer accepts everything
	}
	return text.Bytes()
}

var label = regexp.MustCompile(`([\w.]+)="([^"]*)"`)

// labels returns the labels of the Dockerfile, and those that a Dockerfile cannot know.
func (r *release) labels(d *distribution) map[string]string {
	labels := map[string]string{}
	for _, line := range d.stage["LABEL"] {
		for _, m := range label.FindAllStringSubmatch(line, -1) {
			labels[m[1]] = strings.ReplaceAll(m[2], "$VERSION", r.version)
		}
	}
	labels["org.opencontainers.image.description"] = d.description
	labels["org.opencontainers.image.created"] = r.date.Format(time.RFC3339)
	if r.commit != "" {
		labels["org.opencontainers.image.revision"] = r.commit
	}
	return labels
}

func (r *release) layer(entries []entry) (v1.Layer, error) {
	var content bytes.Buffer
	if err := writeTar(&content, r.date, entries); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithCompressedCaching, tarball.WithCompressionLevel(r.level()), tarball.WithMediaType(types.OCILayer))
}

// bomOf returns an artefact of OCI 1.1 that refers to an image, which is where tools look for SBOMs.
func (r *release) bomOf(b *build, image v1.Image) (v1.Image, error) {
	text, err := r.sbom(b)
	if err != nil {
		return nil, err
	}
	about, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(text, sbomType))
	if err != nil {
		return nil, err
	}
	of, err := descriptorOf(image)
	if err != nil {
		return nil, err
	}
	return mutate.Subject(mutate.ConfigMediaType(about, sbomType), *of).(v1.Image), nil
}

func descriptorOf(image v1.Image) (*v1.Descriptor, error) {
	digest, err1 := image.Digest()
	size, err2 := image.Size()
	media, err3 := image.MediaType()
	return &v1.Descriptor{Digest: digest, Size: size, MediaType: media}, errors.Join(err1, err2, err3)
}

// writeLayout packs a directory, sorted by name.
func (r *release) writeLayout(name, dir string) (err error) {
	var entries []entry
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		entries = append(entries, entry{name: filepath.ToSlash(inside), mode: 0o644, content: content})
		return err
	}); err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return writeTar(file, r.date, entries)
}
