// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package bearer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script is a source with known tokens that counts its calls.
type script struct {
	mu    sync.Mutex
	asked int
	lives time.Duration
	err   error
}

func (s *script) Token(context.Context) (Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil {
		return Token{}, s.err
	}
	return Token{Text: fmt.Sprint("token ", s.asked), Ends: time.Now().Add(s.lives)}, nil
}

// echo responds with a status, and records the authorization of the last request.
type echo struct {
	status int
	last   string
}

func (e *echo) RoundTrip(r *http.Request) (*http.Response, error) {
	e.last = r.Header.Get("Authorization")
	return &http.Response{StatusCode: e.status, Body: http.NoBody, Request: r}, nil
}

func sendBy(t *testing.T, transport http.RoundTripper) error {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://store/write", strings.NewReader("body"))
	response, err := transport.RoundTrip(r)
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	assert.Empty(t, r.Header.Get("Authorization"), "the request is the caller's")
	return err
}

// TestATokenIsUsedWhileItHolds: and renewed some time before its end, or halfway through a short life.
func TestATokenIsUsedWhileItHolds(t *testing.T) {
	for lives, renewed := range map[time.Duration]time.Duration{time.Hour: 55 * time.Minute, time.Minute: 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			source, next := &script{lives: lives}, &echo{status: http.StatusOK}
			transport := NewTransport(next, source)
			require.NoError(t, sendBy(t, transport))
			time.Sleep(renewed - time.Second)
			require.NoError(t, sendBy(t, transport))
			require.Equal(t, "Bearer token 1", next.last)
			time.Sleep(2 * time.Second)
			require.NoError(t, sendBy(t, transport))
			require.Equal(t, "Bearer token 2", next.last)
			require.Equal(t, 2, source.asked)
		})
	}
}

// TestATokenOutlivesItsServer: while a token is valid, a failed renewal does no harm, and is not retried all the time.
func TestATokenOutlivesItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, next := &script{lives: time.Hour}, &echo{status: http.StatusOK}
		transport := NewTransport(next, source)
		require.NoError(t, sendBy(t, transport))
		source.err = errors.New("no token today")
		time.Sleep(56 * time.Minute)
		for range 10 {
			require.NoError(t, sendBy(t, transport))
		}
		require.Equal(t, "Bearer token 1", next.last)
		require.Equal(t, 2, source.asked)
		time.Sleep(5 * time.Minute)
		for range 10 {
			require.ErrorIs(t, sendBy(t, transport), source.err)
		}
		require.Equal(t, 3, source.asked)
		source.err = nil
		time.Sleep(pause)
		require.NoError(t, sendBy(t, transport))
		require.Equal(t, "Bearer token 4", next.last)
	})
}

// hanging is a source that blocks after its first token.
type hanging struct {
	script

	hangs bool
}

func (h *hanging) Token(ctx context.Context) (Token, error) {
	token, err := h.script.Token(ctx)
	if !h.hangs {
		return token, err
	}
	<-ctx.Done()
	return Token{}, ctx.Err()
}

// TestARenewalHoldsNobodyUp: one request waits for it, but not for long. All others use the valid token.
func TestARenewalHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, next := &hanging{script: script{lives: time.Hour}}, &echo{status: http.StatusOK}
		transport := NewTransport(next, source)
		require.NoError(t, sendBy(t, transport))
		source.hangs = true
		time.Sleep(56 * time.Minute)
		began := time.Now()
		first := make(chan error, 1)
		go func() {
			_, err := transport.current(t.Context())
			first <- err
		}()
		time.Sleep(time.Millisecond)
		require.NoError(t, sendBy(t, transport))
		require.Equal(t, time.Millisecond, time.Since(began))
		require.NoError(t, <-first)
		require.Equal(t, renewal, time.Since(began))
		require.Equal(t, "Bearer token 1", next.last)
	})
}

// TestAServerThatDoesNotAnswerIsLeftAlone: requests that have waited for a token do not request one after another.
func TestAServerThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &hanging{hangs: true}
		transport := NewTransport(&echo{status: http.StatusOK}, source)
		began := time.Now()
		require.ErrorIs(t, sendBy(t, transport), context.DeadlineExceeded)
		require.ErrorIs(t, sendBy(t, transport), context.DeadlineExceeded)
		require.Equal(t, timeout, time.Since(began))
		require.Equal(t, 1, source.asked)
	})
}

func TestARefusedTokenIsNotUsedAgain(t *testing.T) {
	source, next := &script{lives: time.Hour}, &echo{status: http.StatusUnauthorized}
	transport := NewTransport(next, source)
	require.NoError(t, sendBy(t, transport))
	next.status = http.StatusOK
	require.NoError(t, sendBy(t, transport))
	require.Equal(t, "Bearer token 2", next.last)
}

// server is a token server that issues a token if want accepts the request.
func server(t *testing.T, want func(r *http.Request) error, answer string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := want(r); err != nil {
			http.Error(w, fmt.Sprintf(`{"error": %q}`, err), http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// wants compares fields of a form, and the path and a header if given.
func wants(path string, header [2]string, form map[string]string) func(r *http.Request) error {
	return func(r *http.Request) error {
		if r.URL.Path != path {
			return fmt.Errorf("path %s", r.URL.Path)
		}
		if got := r.Header.Get(header[0]); header[0] != "" && got != header[1] {
			return fmt.Errorf("header %q", got)
		}
		for key, value := range form {
			if got := r.Form.Get(key); got != value {
				return fmt.Errorf("%s is %q", key, got)
			}
		}
		return nil
	}
}

func TestWhatServersOfTokensAnswer(t *testing.T) {
	for answer, want := range map[string]time.Duration{
		`{"access_token": "text", "expires_in": 3599}`:                                                   3599 * time.Second,
		`{"access_token": "text", "expires_in": "3599", "expires_on": "1700000000"}`:                     3599 * time.Second,
		`{"access_token": "text", "expires_on": "` + fmt.Sprint(time.Now().Add(time.Hour).Unix()) + `"}`: time.Hour,
		`{"access_token": "text", "expires_on": "9/1/2030 1:00:00 PM +00:00"}`:                           usual,
		`{"access_token": "text"}`:                                    usual,
		`{"access_token": "text", "expires_in": 9223372036854775807}`: longest * time.Second,
		`{"access_token": "text", "expires_on": 9223372036854775807}`: longest * time.Second,
	} {
		at := server(t, func(*http.Request) error { return nil }, answer)
		token, err := get(t.Context(), at, "Metadata", "true")
		require.NoError(t, err, answer)
		require.Equal(t, "text", token.Text)
		require.WithinDuration(t, time.Now().Add(want), token.Ends, 5*time.Second, answer)
	}
}

// TestFaultsOfServersOfTokens: errors contain the server and its response, but nothing that may be secret.
func TestFaultsOfServersOfTokens(t *testing.T) {
	at := server(t, func(*http.Request) error { return errors.New(strings.Repeat("no such bird\n", 100)) }, "")
	_, err := get(t.Context(), at, "Metadata", "true")
	require.ErrorContains(t, err, at+" answered 400: ")
	require.Less(t, len(err.Error()), 400)
	at = server(t, func(*http.Request) error { return nil }, `"a secret"`)
	_, err = get(t.Context(), at, "Metadata", "true")
	require.ErrorContains(t, err, "no JSON object")
	require.NotContains(t, err.Error(), "secret")
	at = server(t, func(*http.Request) error { return nil }, `{}`)
	err = sendBy(t, NewTransport(&echo{status: http.StatusOK}, sourceFunc(func(ctx context.Context) (Token, error) { return get(ctx, at, "a", "b") })))
	require.EqualError(t, err, "cannot get a token: the answer has none")
}

type sourceFunc func(ctx context.Context) (Token, error)

func (f sourceFunc) Token(ctx context.Context) (Token, error) { return f(ctx) }
