// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	checksums = "checksums.txt"
	publicKey = "godwit.pub"
)

// artefact is a file of the release with its SHA-256.
type artefact struct{ name, digest string }

// artefacts returns the files made so far, sorted by name.
func (r *release) artefacts() ([]artefact, error) {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	all := make([]artefact, 0, len(entries))
	for _, e := range entries {
		digest, err := digestOf(filepath.Join(r.out, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, artefact{name: e.Name(), digest: digest})
	}
	return all, nil
}

func digestOf(path string) (_ string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// sumLines formats checksums for `sha256sum --check`.
func sumLines(artefacts []artefact) []byte {
	var text bytes.Buffer
	for _, a := range artefacts {
		fmt.Fprintf(&text, "%s  %s\n", a.digest, a.name)
	}
	return text.Bytes()
}
