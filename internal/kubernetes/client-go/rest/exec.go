// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// ExecConfig is a program that returns credentials, as clouds provide them.
type ExecConfig struct {
	APIVersion string
	Command    string
	Args       []string
	Env        []string // name=value
	// Cluster is passed to programs that ask for it.
	Cluster     json.RawMessage
	InstallHint string
}

// A plugin is such a program, with its latest answer.
type plugin struct {
	config *ExecConfig

	mu      sync.Mutex
	known   bool
	expires time.Time // zero: never
	bearer  string
	cert    *tls.Certificate
}

// execCredential is the message in both directions.
type execCredential struct {
	Kind       string      `json:"kind"`
	APIVersion string      `json:"apiVersion"`
	Spec       execSpec    `json:"spec"`
	Status     *execStatus `json:"status,omitempty"`
}

type execSpec struct {
	Cluster     json.RawMessage `json:"cluster,omitempty"`
	Interactive bool            `json:"interactive"`
}

type execStatus struct {
	Token                 string    `json:"token"`
	ClientCertificateData string    `json:"clientCertificateData"`
	ClientKeyData         string    `json:"clientKeyData"`
	ExpirationTimestamp   time.Time `json:"expirationTimestamp"`
}

// token returns the program's token, which is kept while it is valid.
func (p *plugin) token(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.refresh(ctx)
	return p.bearer, err
}

// clientCertificate returns the program's certificate, or else the one from a file.
func (p *plugin) clientCertificate(others []tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(i *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch err := p.refresh(i.Context()); {
		case err != nil:
			return nil, err
		case p.cert != nil:
			return p.cert, nil
		case len(others) > 0:
			return &others[0], nil
		}
		return &tls.Certificate{}, nil
	}
}

// forget makes the next request run the program again, because its credentials were refused.
func (p *plugin) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = false
}

func (p *plugin) refresh(ctx context.Context) error {
	if p.known && (p.expires.IsZero() || time.Now().Before(p.expires)) {
		return nil
	}
	said, err := p.ask(ctx)
	if err != nil {
		return err
	}
	p.known, p.bearer, p.cert, p.expires = true, said.Token, nil, said.ExpirationTimestamp
	if said.ClientCertificateData != "" {
		pair, err := tls.X509KeyPair([]byte(said.ClientCertificateData), []byte(said.ClientKeyData))
		if err != nil {
			p.known = false
			return fmt.Errorf("cannot use the certificate of %s: %w", p.config.Command, err)
		}
		p.cert = &pair
	}
	return nil
}

func (p *plugin) ask(ctx context.Context) (*execStatus, error) {
	c := p.config
	info, err := json.Marshal(execCredential{Kind: "ExecCredential", APIVersion: c.APIVersion, Spec: execSpec{Cluster: c.Cluster}})
	if err != nil {
		return nil, fmt.Errorf("cannot tell %s about the cluster: %w", c.Command, err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Command, c.Args...) //nolint:gosec // its user names the program
	cmd.Env = append(append(os.Environ(), c.Env...), "KUBERNETES_EXEC_INFO="+string(info))
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) && c.InstallHint != "" {
			err = fmt.Errorf("%w\n%s", err, c.InstallHint)
		}
		return nil, fmt.Errorf("cannot log in by %s: %w", c.Command, err)
	}
	var said execCredential
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		return nil, fmt.Errorf("cannot understand %s: %w", c.Command, err)
	}
	switch s := said.Status; {
	case said.APIVersion != c.APIVersion:
		return nil, fmt.Errorf("%s speaks %s, not %s", c.Command, said.APIVersion, c.APIVersion)
	case s == nil:
		return nil, fmt.Errorf("%s has said nothing of a status", c.Command)
	case s.Token == "" && s.ClientCertificateData == "":
		return nil, fmt.Errorf("%s has said neither a token nor a certificate", c.Command)
	case (s.ClientCertificateData == "") != (s.ClientKeyData == ""):
		return nil, fmt.Errorf("%s has said a certificate or a key, not both", c.Command)
	}
	return said.Status, nil
}
