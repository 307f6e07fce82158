// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	promcommon "github.com/prometheus/common/config"

	"github.com/godwit-otel/godwit/internal/redact"
)

// grantJWT is the grant_type that takes a key in place of a secret.
const grantJWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// maxComplaint limits what is quoted of a token server's refusal.
const maxComplaint = 1 << 10

// An oauth has the access tokens of a job with OAuth2. Prometheus' transport fetches and caches them, but without a
// context and under a lock: a token server that does not answer would block every target of the job, for ever. Here
// targets take turns, and wait no longer than their scrape may last.
type oauth struct {
	url    string        // as it is shown
	user   *url.Userinfo // in it
	secret promcommon.SecretReader
	dial   promcommon.DialContextFunc
	turn   chan struct{}
	// The fields below belong to whoever has the turn.
	transport http.RoundTripper
	asking    context.Context
	token     string // with its type
}

// newOAuth returns nil for a job without OAuth2.
func newOAuth(cfg *promcommon.OAuth2, options Options) (*oauth, error) {
	if cfg == nil {
		return nil, nil
	}
	secret, err := oauthSecret(cfg)
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(cfg.TokenURL)
	if err != nil {
		return nil, fmt.Errorf("cannot read `token_url`: %w", redact.Error(err))
	}
	o := &oauth{url: redact.URL(cfg.TokenURL), user: server.User, secret: secret, dial: options.Dial, turn: make(chan struct{}, 1)}
	own := *cfg // Prometheus' client stores the proxy in it, and a reload compares configurations
	o.transport = promcommon.NewOAuth2RoundTripper(secret, &own, taker{o},
		// A connection belongs to one request, and ends with it.
		promcommon.WithDialContextFunc(o.connect), promcommon.WithKeepAlivesDisabled())
	return o, nil
}

// oauthSecret is the secret or the key that Prometheus' client would authenticate with.
func oauthSecret(cfg *promcommon.OAuth2) (promcommon.SecretReader, error) {
	text, file, reference := cfg.ClientSecret, cfg.ClientSecretFile, cfg.ClientSecretRef
	if cfg.GrantType == grantJWT {
		text, file, reference = cfg.ClientCertificateKey, cfg.ClientCertificateKeyFile, cfg.ClientCertificateKeyRef
	}
	switch {
	case text != "":
		return promcommon.NewInlineSecret(string(text)), nil
	case file != "":
		return promcommon.NewFileSecret(file), nil
	case reference != "":
		return nil, errors.New("cannot use a reference to a secret: there is nothing that would resolve it")
	}
	return nil, nil
}

// get returns what to send as Authorization.
func (o *oauth) get(ctx context.Context, agent string) (string, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return "", o.failed(context.Cause(ctx))
	}
	// The request is not sent anywhere: the taker intercepts it.
	request := &http.Request{Header: http.Header{"User-Agent": {agent}}}
	o.asking = ctx
	response, err := o.transport.RoundTrip(request.WithContext(ctx))
	o.asking = nil
	switch {
	case err == nil:
		return o.token, response.Body.Close()
	case ctx.Err() != nil: // which closed the connection
		return "", o.failed(context.Cause(ctx))
	default: // the error has all that the server said
		text := err.Error()
		return "", o.failed(errors.New(text[:min(len(text), maxComplaint)]))
	}
}

func (o *oauth) failed(err error) error {
	return &credentialsError{fmt.Errorf("cannot get a token from %s: %w", o.url, err)}
}

// connect makes a connection that is closed when the request's context ends.
func (o *oauth) connect(_ context.Context, network, address string) (net.Conn, error) {
	ctx := o.asking
	conn, err := o.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return bound{conn, context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
}

// bound is a connection that ends with a context.
type bound struct {
	net.Conn

	loose func() bool
}

func (b bound) Close() error {
	b.loose()
	return b.Conn.Close()
}

// taker takes the token from a request instead of sending it.
type taker struct{ *oauth }

// RoundTrip implements [http.RoundTripper].
func (t taker) RoundTrip(r *http.Request) (*http.Response, error) {
	t.token = r.Header.Get("Authorization")
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}
