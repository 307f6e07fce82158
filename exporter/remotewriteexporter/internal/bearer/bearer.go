// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package bearer authenticates requests to clouds that accept remote write, with tokens of Azure's Entra ID
// and of Google's IAM. The exchanges are one or two requests each, and are implemented here, because the clouds' own libraries
// take megabytes.
package bearer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// timeout limits one exchange.
	timeout = 30 * time.Second
	// early is how long before its end a token is renewed; a token with a shorter life is renewed halfway.
	early = 5 * time.Minute
	// pause is how long no token is requested after a failure, since requests are repeated sooner.
	pause = 5 * time.Second
	// renewal limits the exchange for another token while the old one is valid: a request waits for it.
	renewal = 5 * time.Second
	// maxAnswer limits how much of an answer is read, and maxDetail how much of it an error quotes.
	maxAnswer = 1 << 20
	maxDetail = 200
)

// Keys of token requests, in forms, queries and claims.
const (
	clientIDKey     = "client_id"
	clientSecretKey = "client_secret"
	grantTypeKey    = "grant_type"
	resourceKey     = "resource"
	scopeKey        = "scope"
)

// Token authenticates requests for a while.
type Token struct {
	Text string
	Ends time.Time
}

// A Source gets tokens.
type Source interface {
	Token(ctx context.Context) (Token, error)
}

// Transport adds a token to each request. A token that was refused is not used again.
type Transport struct {
	next   http.RoundTripper
	source Source

	mu       sync.Mutex // held while a token is requested, unless one is valid: all requests need it
	token    Token
	renew    time.Time
	renewing bool  // a request is renewing the token
	failed   error // until the next attempt
	again    time.Time
}

// NewTransport makes a transport.
func NewTransport(next http.RoundTripper, source Source) *Transport {
	return &Transport{next: next, source: source}
}

// RoundTrip sends a request with a token.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := t.current(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		t.forget(token)
	}
	return response, err
}

// CloseIdleConnections closes those of the transport that sends.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// current returns the token to use. A valid one is used while it cannot be renewed, and by all other requests while one
// renews it.
func (t *Transport) current(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, was := time.Now(), t.token.Text
	holds, failed := was != "" && now.Before(t.token.Ends), t.failed != nil && now.Before(t.again)
	switch {
	case holds && (now.Before(t.renew) || t.renewing || failed):
		return was, nil
	case failed:
		return "", t.failed
	}
	token, err := t.get(ctx, holds)
	if err == nil && token.Text == "" {
		err = errors.New("the answer has none")
	}
	now = time.Now() // the call above may have taken long
	if err != nil {
		t.failed, t.again = fmt.Errorf("cannot get a token: %w", err), now.Add(pause)
		if holds {
			return was, nil
		}
		return "", t.failed
	}
	t.token, t.failed = token, nil
	t.renew = token.Ends.Add(-min(early, token.Ends.Sub(now)/2))
	return token.Text, nil
}

// get requests a token. The caller holds mu, which is released meanwhile if there is a valid token.
func (t *Transport) get(ctx context.Context, holds bool) (Token, error) {
	limit := timeout
	if holds {
		limit, t.renewing = renewal, true
		t.mu.Unlock()
		defer func() {
			t.mu.Lock()
			t.renewing = false
		}()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return t.source.Token(ctx)
}

// forget drops a token that was refused.
func (t *Transport) forget(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token.Text == token {
		t.token = Token{}
	}
}

// exchanges do not use the settings of the client whose requests they are for, which are about another server. They use
// the proxy of the environment.
var exchanges = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: time.Minute}, Timeout: timeout}

// post requests a token with a form.
func post(ctx context.Context, to string, form url.Values) (Token, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode())) //nolint:gosec // the user's own configuration or environment says where
	if err != nil {
		return Token{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return exchange(r)
}

// get requests a token with a header.
func get(ctx context.Context, from, header, value string) (Token, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil) //nolint:gosec // the same
	if err != nil {
		return Token{}, err
	}
	r.Header.Set(header, value)
	return exchange(r)
}

// answer is the answer of a token server. Some servers send numbers as texts.
type answer struct {
	Token   string `json:"access_token"`
	Seconds number `json:"expires_in"`
	At      number `json:"expires_on"` // in seconds since 1970
}

type number int64

// UnmarshalJSON decodes a number, or a text with one.
func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil {
		return nil //nolint:nilerr // a time in another form: the other of the two is there
	}
	*n = number(v)
	return nil
}

// usual is how long a token is used whose answer does not give its lifetime.
const usual = 10 * time.Minute

// longest limits the lifetime of a token, in seconds.
const longest = 365 * 24 * 3600

func exchange(r *http.Request) (Token, error) {
	server := r.URL.Scheme + "://" + r.URL.Host
	now := time.Now()
	response, err := exchanges.Do(r) //nolint:gosec // the same
	if err != nil {
		return Token{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return Token{}, fmt.Errorf("cannot read the answer of %s: %w", server, err)
	}
	if response.StatusCode != http.StatusOK {
		return Token{}, fmt.Errorf("%s answered %d: %s", server, response.StatusCode, detail(body))
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return Token{}, fmt.Errorf("cannot read the answer of %s: it is no JSON object", server) // without the answer, which may contain a token
	}
	t := Token{Text: a.Token, Ends: now.Add(usual)}
	switch {
	case a.Seconds > 0:
		t.Ends = now.Add(time.Duration(min(a.Seconds, longest)) * time.Second)
	case a.At > 0:
		t.Ends = time.Unix(min(int64(a.At), now.Unix()+longest), 0)
	}
	return t, nil
}

// detail is the beginning of an error answer.
func detail(body []byte) string {
	text := strings.Join(strings.Fields(string(body)), " ")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "..."
	}
	return text
}
