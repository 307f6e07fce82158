// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

const (
	provenance  = "provenance.intoto.jsonl"
	payloadType = "application/vnd.in-toto+json"
	// builderVariable names the builder with a URI; CI sets it to the run of its workflow.
	builderVariable = "GODWIT_BUILDER"
)

type (
	digests  map[string]string
	resource struct {
		Name   string  `json:"name,omitempty"`
		URI    string  `json:"uri,omitempty"`
		Digest digests `json:"digest,omitempty"`
	}
	// statement is in-toto's statement with SLSA's provenance 1.0.
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     struct {
			BuildDefinition struct {
				BuildType  string            `json:"buildType"`
				Parameters map[string]string `json:"externalParameters"`
				Internal   map[string]string `json:"internalParameters"`
				From       []resource        `json:"resolvedDependencies"`
			} `json:"buildDefinition"`
			RunDetails struct {
				Builder struct {
					ID string `json:"id"`
				} `json:"builder"`
			} `json:"runDetails"`
		} `json:"predicate"`
	}
	// envelope is DSSE's envelope.
	envelope struct {
		PayloadType string      `json:"payloadType"`
		Payload     string      `json:"payload"`
		Signatures  []signature `json:"signatures"`
	}
	signature struct {
		Sig string `json:"sig"`
	}
)

// writeProvenance writes what was built, from which commit and by whom. Without a key the envelope has no signature:
// then it only documents, and proves nothing.
func (r *release) writeProvenance(artefacts []artefact, signer *signer) error {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, a := range artefacts {
		s.Subject = append(s.Subject, resource{Name: a.name, Digest: digests{"sha256": a.digest}})
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = source + "/blob/main/packaging/README.md#provenance"
	definition.Parameters = map[string]string{"command": "make release VERSION=v" + r.version, "repository": source}
	definition.Internal = map[string]string{"go": runtime.Version()}
	from := resource{URI: "git+" + source}
	if r.commit != "" {
		from.Digest = digests{"gitCommit": r.commit}
	}
	definition.From = []resource{from}
	s.Predicate.RunDetails.Builder.ID = os.Getenv(builderVariable)
	if s.Predicate.RunDetails.Builder.ID == "" {
		s.Predicate.RunDetails.Builder.ID = source + "/blob/main/packaging/README.md#by-hand"
	}
	payload, err := json.Marshal(s)
	if err != nil {
		return err
	}
	e := envelope{PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(payload), Signatures: []signature{}}
	if signer != nil {
		sig, err := signer.sign(preAuthentication(payload))
		if err != nil {
			return fmt.Errorf("cannot sign the provenance: %w", err)
		}
		e.Signatures = append(e.Signatures, signature{Sig: sig})
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, provenance), append(line, '\n'), 0o644)
}

// preAuthentication returns what DSSE signs: the payload with its type.
func preAuthentication(payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}
