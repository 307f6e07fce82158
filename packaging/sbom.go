// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// bom is the part of CycloneDX 1.5 that a Go binary's build information can fill.
type bom struct {
	Schema       string          `json:"$schema"`
	Format       string          `json:"bomFormat"`
	Spec         string          `json:"specVersion"`
	Serial       string          `json:"serialNumber"`
	Version      int             `json:"version"`
	Metadata     bomMetadata     `json:"metadata"`
	Components   []bomComponent  `json:"components"`
	Dependencies []bomDependency `json:"dependencies"`
}

type bomMetadata struct {
	Timestamp time.Time    `json:"timestamp"`
	Component bomComponent `json:"component"`
}

type bomComponent struct {
	Type       string        `json:"type"`
	Ref        string        `json:"bom-ref"`
	Name       string        `json:"name"`
	Version    string        `json:"version"`
	PURL       string        `json:"purl"`
	Hashes     []bomHash     `json:"hashes,omitempty"`
	Licences   []bomLicence  `json:"licenses,omitempty"`
	Properties []bomProperty `json:"properties,omitempty"`
}

type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type bomLicence struct {
	Licence struct {
		ID string `json:"id"`
	} `json:"license"`
}

type bomProperty struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type bomDependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

// sbom lists the modules linked into a binary, from its build information.
func (r *release) sbom(b *build) ([]byte, error) {
	digest := hex.EncodeToString(b.digest[:])
	own := bomLicence{}
	own.Licence.ID = licence
	program := bomComponent{
		Type: "application", Ref: "pkg:golang/" + b.info.Main.Path + "@v" + r.version, Name: b.name, Version: r.version,
		PURL:     "pkg:golang/" + b.info.Main.Path + "@v" + r.version + "?goarch=" + b.arch + "&goos=" + b.os,
		Hashes:   []bomHash{{Algorithm: "SHA-256", Content: digest}},
		Licences: []bomLicence{own},
	}
	list := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.5.schema.json", Format: "CycloneDX", Spec: "1.5", Version: 1,
		// Derived from the binary's content: the same binary has the same serial number.
		Serial:   "urn:uuid:" + digest[:8] + "-" + digest[8:12] + "-5" + digest[13:16] + "-8" + digest[17:20] + "-" + digest[20:32],
		Metadata: bomMetadata{Timestamp: r.date, Component: program},
	}
	goVersion, _, _ := strings.Cut(strings.TrimPrefix(b.info.GoVersion, "go"), " ")
	modules := append([]*debug.Module{{Path: "stdlib", Version: goVersion}}, b.info.Deps...)
	on := make([]string, 0, len(modules))
	for _, m := range modules {
		m = linked(m)
		c := bomComponent{Type: "library", Name: m.Path, Version: m.Version}
		if c.Version == fromFolder {
			c.Version = "v" + r.version // modules of this repository have the release's version
		}
		c.PURL = "pkg:golang/" + c.Name + "@" + c.Version
		c.Ref = c.PURL
		if strings.HasPrefix(c.Name, ownModules) {
			c.Licences = []bomLicence{own}
		}
		if m.Sum != "" {
			c.Properties = []bomProperty{{Name: "go:sum", Value: m.Sum}}
		}
		list.Components, on = append(list.Components, c), append(on, c.Ref)
	}
	list.Dependencies = []bomDependency{{Ref: program.Ref, On: on}}
	text, err := json.MarshalIndent(list, "", "  ")
	return append(text, '\n'), err
}

// linked returns the module that a requirement resolved to. One that is replaced by a directory belongs to this
// repository.
func linked(m *debug.Module) *debug.Module {
	switch {
	case m.Replace == nil:
		return m
	case !strings.HasPrefix(m.Replace.Path, "."):
		return m.Replace
	case strings.HasPrefix(m.Path, ownModules):
		return m
	}
	folder := m.Replace.Path
	for strings.HasPrefix(folder, "../") {
		folder = strings.TrimPrefix(folder, "../")
	}
	return &debug.Module{Path: ownModules + folder, Version: fromFolder}
}

// fromFolder is the version of a module without one, which a package URL cannot express.
const fromFolder = "(devel)"

const ownModules = "github.com/godwit-otel/godwit/"

func (r *release) writeSBOM(b *build) error {
	text, err := r.sbom(b)
	if err != nil {
		return err
	}
	return os.WriteFile(r.artefact(b, ".cdx.json"), text, 0o644)
}
