// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// runPush pushes the images of a release to a registry, with the artefacts that refer to them and, if there is a key,
// with signatures that `cosign verify --key` accepts. Credentials come from the machine's Docker configuration.
func runPush(args []string) error {
	flags := flag.NewFlagSet("packaging push", flag.ContinueOnError)
	from := flags.String("from", "bin/release", "folder that has the images")
	to := flags.String("to", "", "registry and folder, such as registry.example.com/godwit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *to == "" {
		return errors.New("cannot push: -to says to which registry, such as registry.example.com/godwit")
	}
	signer, err := signerFromEnvironment()
	if err != nil {
		return err
	}
	images, err := filepath.Glob(filepath.Join(*from, "*_image.tar"))
	if err != nil {
		return err
	}
	if len(images) == 0 {
		return fmt.Errorf("cannot find images in %s: run `make release` first", *from)
	}
	for _, image := range images {
		if err := push(image, *to, signer); err != nil {
			return fmt.Errorf("cannot push %s: %w", image, err)
		}
	}
	return nil
}

func push(image, to string, signer *signer) error {
	dir, err := os.MkdirTemp("", "packaging")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := unpackLayout(image, dir); err != nil {
		return err
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	which, _, _ := strings.Cut(filepath.Base(image), "_")
	repository, err := name.NewRepository(to + "/" + which)
	if err != nil {
		return err
	}
	with := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	for _, d := range manifest.Manifests {
		if !d.MediaType.IsIndex() { // an artefact that refers to an image
			about, err := index.Image(d.Digest)
			if err != nil {
				return err
			}
			if err := remote.Write(repository.Digest(d.Digest.String()), about, with); err != nil {
				return err
			}
			continue
		}
		all, err := index.ImageIndex(d.Digest)
		if err != nil {
			return err
		}
		tag := repository.Tag(d.Annotations["org.opencontainers.image.ref.name"])
		if err := remote.WriteIndex(tag, all, with); err != nil {
			return err
		}
		fmt.Printf("%s@%s\n", tag, d.Digest)
		if signer == nil {
			continue
		}
		signed, err := signer.signImage(repository, d.Digest)
		if err != nil {
			return err
		}
		if err := remote.Write(repository.Tag(strings.Replace(d.Digest.String(), ":", "-", 1)+".sig"), signed, with); err != nil {
			return err
		}
	}
	return nil
}

// signImage makes what cosign stores under the tag sha256-<digest>.sig.
func (s *signer) signImage(repository name.Repository, digest v1.Hash) (v1.Image, error) {
	var says struct {
		Critical struct {
			Identity struct {
				Reference string `json:"docker-reference"`
			} `json:"identity"`
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
		Optional map[string]string `json:"optional"`
	}
	says.Critical.Identity.Reference, says.Critical.Image.Digest = repository.Name(), digest.String()
	says.Critical.Type = "cosign container image signature"
	payload, err := json.Marshal(says)
	if err != nil {
		return nil, err
	}
	signature, err := s.sign(payload)
	if err != nil {
		return nil, err
	}
	signed := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.Append(signed, mutate.Addendum{
		Layer:       static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": signature},
	})
}

// unpackLayout unpacks an archive of writeLayout. It rejects names that lead out of the directory.
func unpackLayout(file, dir string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for archive := tar.NewReader(f); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir {
			if err := root.MkdirAll(strings.TrimSuffix(header.Name, "/"), 0o755); err != nil {
				return err
			}
			continue
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if err := root.WriteFile(header.Name, content, 0o644); err != nil {
			return err
		}
	}
}
