// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// scopeOfGoogle allows writing metrics, nothing else.
const scopeOfGoogle = "https://www.googleapis.com/auth/monitoring.write"

// serviceAccount is the type of credentials with a key.
const serviceAccount = "service_account"

// refreshToken is the name of a grant, and of its parameter.
const refreshToken = "refresh_token"

// Google gets tokens from Google's IAM: with the credentials in File or, without one, the application default
// credentials: the file that GOOGLE_APPLICATION_CREDENTIALS names, that of gcloud, or the account of the machine.
type Google struct {
	File string
}

// credentials are the content of a credentials file.
type credentials struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	PrivateKeyID string `json:"private_key_id"`
	TokenURI     string `json:"token_uri"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
}

const tokensOfGoogle = "https://oauth2.googleapis.com/token" //nolint:gosec // an address

// Token gets a token.
func (g *Google) Token(ctx context.Context) (Token, error) {
	file := g.file()
	if file == "" {
		return ofMachineAtGoogle(ctx)
	}
	c, err := readCredentials(file)
	if err != nil {
		return Token{}, fmt.Errorf("cannot read the credentials in %s: %w", file, err)
	}
	if c.Type == "authorized_user" {
		return post(ctx, c.TokenURI, url.Values{
			grantTypeKey: {refreshToken}, clientIDKey: {c.ClientID}, clientSecretKey: {c.ClientSecret}, refreshToken: {c.RefreshToken},
		})
	}
	assertion, err := c.sign(time.Now())
	if err != nil {
		return Token{}, fmt.Errorf("cannot use the private key in %s: %w", file, err)
	}
	return post(ctx, c.TokenURI, url.Values{grantTypeKey: {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}})
}

// file returns the name of the credentials file; empty for those of the machine.
func (g *Google) file() string {
	if g.File != "" {
		return g.File
	}
	if file := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); file != "" {
		return file
	}
	directory := os.Getenv("CLOUDSDK_CONFIG")
	if directory == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		directory = filepath.Join(home, ".config", "gcloud")
	}
	file := filepath.Join(directory, "application_default_credentials.json")
	if _, err := os.Stat(file); err != nil { //nolint:gosec // the user's own environment says where
		return ""
	}
	return file
}

// readCredentials reads the file each time a token is due, since its key may have changed.
func readCredentials(file string) (credentials, error) {
	c := credentials{TokenURI: tokensOfGoogle}
	text, err := os.ReadFile(file) //nolint:gosec // the user's own configuration or environment names it
	if err != nil {
		return c, err
	}
	if json.Unmarshal(text, &c) != nil {
		return c, errors.New("it is no JSON object") // without the original error, which would quote parts of the file
	}
	switch {
	case c.Type != serviceAccount && c.Type != "authorized_user":
		return c, fmt.Errorf("its `type` must be service_account or authorized_user, got %q", c.Type)
	case c.Type == serviceAccount && c.ClientEmail == "":
		return c, errors.New("it has no `client_email`")
	}
	return c, nil
}

// sign makes the signed claim to be this account, in exchange for which a token is given.
func (c *credentials) sign(now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(c.PrivateKey))
	if block == nil {
		return "", errors.New("it is no PEM")
	}
	key, err := parseKey(block.Bytes)
	if err != nil {
		return "", err
	}
	header, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": c.PrivateKeyID})
	if err != nil {
		return "", err
	}
	claim, err := json.Marshal(map[string]any{
		"iss": c.ClientEmail, scopeKey: scopeOfGoogle, "aud": c.TokenURI, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claim)
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// parseKey parses a private key in either of the usual formats.
func parseKey(der []byte) (*rsa.PrivateKey, error) {
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("it is neither PKCS1 nor PKCS8")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("it is none of RSA")
	}
	return key, nil
}

// ofMachineAtGoogle asks the metadata server of the machine.
func ofMachineAtGoogle(ctx context.Context) (Token, error) {
	host := os.Getenv("GCE_METADATA_HOST")
	if host == "" {
		host = "metadata.google.internal"
	}
	from := "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token?" + url.Values{"scopes": {scopeOfGoogle}}.Encode()
	t, err := get(ctx, from, "Metadata-Flavor", "Google")
	if err != nil {
		return t, fmt.Errorf("the account of this machine: %w", err)
	}
	return t, nil
}
