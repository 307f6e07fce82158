// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

const (
	// keyVariable holds the private key itself in PEM: from `cosign generate-key-pair`, or an ECDSA key from openssl.
	keyVariable = "GODWIT_SIGNING_KEY"
	// passwordVariable is cosign's variable for encrypted keys.
	passwordVariable = "COSIGN_PASSWORD"
)

// signer signs as cosign does with a key: ECDSA over SHA-256, in base64.
type signer struct {
	key *ecdsa.PrivateKey
	// public is the public key in PEM.
	public []byte
}

// signerFromEnvironment returns nil if no key is set.
func signerFromEnvironment() (*signer, error) {
	text := os.Getenv(keyVariable)
	if text == "" {
		return nil, nil
	}
	s, err := newSigner([]byte(text), os.Getenv(passwordVariable))
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", keyVariable, err)
	}
	return s, nil
}

func newSigner(text []byte, password string) (*signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not PEM: give the key itself, not the name of a file")
	}
	content := block.Bytes
	var parsed any
	var err error
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		if content, err = encrypted.Decrypt(content, []byte(password)); err != nil {
			return nil, fmt.Errorf("cannot decrypt it with %s: %w", passwordVariable, err)
		}
		parsed, err = x509.ParsePKCS8PrivateKey(content)
	case "PRIVATE KEY":
		parsed, err = x509.ParsePKCS8PrivateKey(content)
	case "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(content)
	default:
		return nil, fmt.Errorf("cannot read a %s: give an ECDSA key, as `cosign generate-key-pair` makes one", block.Type)
	}
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("cannot sign with a %T: give an ECDSA key, as `cosign generate-key-pair` makes one", parsed)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return &signer{key: key, public: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})}, nil
}

func (s *signer) sign(content []byte) (string, error) {
	digest := sha256.Sum256(content)
	signature, err := s.key.Sign(rand.Reader, digest[:], crypto.SHA256)
	return base64.StdEncoding.EncodeToString(signature), err
}

// signFile writes the signature to a file with the suffix .sig.
func (s *signer) signFile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	signature, err := s.sign(content)
	if err != nil {
		return fmt.Errorf("cannot sign %s: %w", path, err)
	}
	return os.WriteFile(path+".sig", []byte(signature), 0o644)
}
