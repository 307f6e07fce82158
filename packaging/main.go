// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Program packaging makes a release from built binaries: archives, deb and rpm packages, images for several
// architectures, SBOMs, checksums, provenance and signatures.
//
// It needs neither a container engine nor any tool besides Go. Its output depends only on its flags, the binaries and
// the repository: made twice, the bytes are the same. Only signatures differ, and what holds them: the
// provenance, and the checksums, which have its digest.
package main

import (
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "push":
			return runPush(args[1:])
		case "modules":
			return runModules(args[1:])
		}
	}
	return runRelease(args)
}

// formats are the formats of artefacts, in the order in which they are made.
var formats = []string{"sbom", "archive", "deb", "rpm", "image"}

func runRelease(args []string) error {
	r := release{}
	flags := flag.NewFlagSet("packaging", flag.ContinueOnError)
	flags.StringVar(&r.root, "root", ".", "root of the repository")
	flags.StringVar(&r.binaries, "binaries", "bin/cross", "folder with a folder of binaries for each <os>_<arch>")
	flags.StringVar(&r.out, "out", "bin/release", "folder to write to; it is made anew")
	version := flags.String("version", "", "version, as vX.Y.Z")
	date := flags.String("date", "", "time of all files, in seconds since 1970")
	flags.StringVar(&r.commit, "commit", "", "commit that the binaries were built from")
	distributions := flags.String("distributions", "godwit,godwit-agent,godwit-gateway", "what to pack")
	platforms := flags.String("platforms", "linux/amd64", "for which machines, as os/arch")
	which := flags.String("formats", strings.Join(formats, ","), "what to make")
	flags.BoolVar(&r.loose, "loose", false, "compress little, to try things out")
	if err := flags.Parse(args); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(*date, 10, 64)
	if err != nil {
		return fmt.Errorf("cannot read -date %q: give seconds since 1970, such as `git log -1 --format=%%ct` prints", *date)
	}
	r.date = time.Unix(seconds, 0).UTC()
	var found bool
	if r.version, found = strings.CutPrefix(*version, "v"); !found || r.version == "" {
		return fmt.Errorf("cannot read -version %q: give vX.Y.Z", *version)
	}
	for f := range strings.SplitSeq(*which, ",") {
		if !slices.Contains(formats, f) {
			return fmt.Errorf("cannot make %q: -formats takes %s", f, strings.Join(formats, ", "))
		}
	}
	signer, err := signerFromEnvironment()
	if err != nil {
		return err
	}
	return r.make(strings.Split(*distributions, ","), strings.Split(*platforms, ","), strings.Split(*which, ","), signer)
}

// release holds what all artefacts of a release share.
type release struct {
	root, binaries, out string
	// version has no leading v.
	version, commit string
	loose           bool
	// date is the date of the commit, and of every file in every artefact.
	date time.Time
}

// level returns the compression level of gzip.
func (r *release) level() int {
	if r.loose {
		return gzip.BestSpeed
	}
	return gzip.DefaultCompression
}

func (r *release) make(distributions, platforms, which []string, signer *signer) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, name := range distributions {
		d, err := r.distribution(name)
		if err != nil {
			return err
		}
		var linux []*build
		for _, platform := range platforms {
			b, err := r.build(d, platform)
			if err != nil {
				return err
			}
			if err := r.pack(b, which); err != nil {
				return fmt.Errorf("cannot pack %s for %s: %w", name, platform, err)
			}
			if b.os == "linux" {
				linux = append(linux, b)
			}
		}
		if slices.Contains(which, "image") && len(linux) > 0 {
			if err := r.writeImage(d, linux); err != nil {
				return fmt.Errorf("cannot make the image of %s: %w", name, err)
			}
		}
	}
	return r.conclude(signer)
}

// pack makes the artefacts that contain only one binary.
func (r *release) pack(b *build, which []string) error {
	makers := map[string]func(*build) error{"sbom": r.writeSBOM, "archive": r.writeArchive, "deb": r.writeDeb, "rpm": r.writeRPM}
	for _, format := range which {
		if maker, ok := makers[format]; ok {
			if err := maker(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// conclude writes the files about all artefacts.
func (r *release) conclude(signer *signer) error {
	artefacts, err := r.artefacts()
	if err != nil {
		return err
	}
	if err := r.writeProvenance(artefacts, signer); err != nil {
		return err
	}
	if artefacts, err = r.artefacts(); err != nil {
		return err
	}
	sums := filepath.Join(r.out, checksums)
	if err := os.WriteFile(sums, sumLines(artefacts), 0o644); err != nil {
		return err
	}
	if signer == nil {
		fmt.Println("packaging: not signed, as " + keyVariable + " is not set")
		return nil
	}
	return errors.Join(signer.signFile(sums), os.WriteFile(filepath.Join(r.out, publicKey), signer.public, 0o644))
}
