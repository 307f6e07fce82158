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
	// timeout is that of one exchange.
	timeout = 30 * time.Second
	// early is how long before its end a token is renewed; one that lives shorter is when half of its life is over.
	early = 5 * time.Minute
	// pause is how long nobody asks again after a failure: requests are repeated sooner.
	pause = 5 * time.Second
	// renewal is that of an exchange for another token while one holds: a request waits for it.
	renewal = 5 * time.Second
	// maxAnswer is how much of an answer is read, and maxDetail how much of it an error has.
	maxAnswer = 1 << 20
	maxDetail = 200
)

// The keys of what is asked of servers of tokens, in forms, queries and claims.
const (
	clientIDKey     = "client_id"
	clientSecretKey = "client_secret"
	grantTypeKey    = "grant_type"
	resourceKey     = "resource"
	scopeKey        = "scope"
)

// Token is what authenticates requests for a while.
type Token struct {
	Text string
	Ends time.Time
}

// A Source gets tokens.
type Source interface {
	Token(ctx context.Context) (Token, error)
}

// Transport authenticates requests before another one sends them. A token that was refused is not used again.
type Transport struct {
	next   http.RoundTripper
	source Source

	mu       sync.Mutex // held while a token is got, unless one holds: all requests need it
	token    Token
	renew    time.Time
	renewing bool  // a request is about to
	failed   error // until again
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

// current is the token to use. One that still holds is used while it cannot be renewed, and by all others while one request renews it.
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
	now = time.Now() // it may have taken long
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

// get gets a token. The caller holds mu, which is free meanwhile if there is one that holds.
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

// exchanges are made without the settings of the client whose requests they are for: those are about another server. A proxy of
// the environment is used.
var exchanges = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, IdleConnTimeout: time.Minute}, Timeout: timeout}

// post asks a server of tokens with a form.
func post(ctx context.Context, to string, form url.Values) (Token, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode())) //nolint:gosec // the user's own configuration or environment says where
	if err != nil {
		return Token{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return exchange(r)
}

// get asks a server of tokens with the header that it wants.
func get(ctx context.Context, from, header, value string) (Token, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil) //nolint:gosec // the same
	if err != nil {
		return Token{}, err
	}
	r.Header.Set(header, value)
	return exchange(r)
}

// answer is what servers of tokens say. Numbers are texts in some of them.
type answer struct {
	Token   string `json:"access_token"`
	Seconds number `json:"expires_in"`
	At      number `json:"expires_on"` // seconds since 1970
}

type number int64

// UnmarshalJSON reads a number, or a text with one.
func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil {
		return nil //nolint:nilerr // a time in another form: the other of the two is there
	}
	*n = number(v)
	return nil
}

// usual is how long a token is taken to hold whose answer does not say it.
const usual = 10 * time.Minute

// longest is for how many seconds a token is taken to hold at most.
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
		return Token{}, fmt.Errorf("cannot read the answer of %s: it is no JSON object", server) // which may hold a token
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

// detail is the beginning of an answer that is an error.
func detail(body []byte) string {
	text := strings.Join(strings.Fields(string(body)), " ")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "..."
	}
	return text
}
