// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
)

func TestOneLookAtATime(t *testing.T) {
	s := open(t)
	source := consoletest.Scraped(10)
	waiting := make(chan chan struct{})
	source.Look = consoletest.Looker{Waiting: waiting}
	s.Register(source)
	first := make(chan int)
	go func() {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.SetPathValue("id", "0000000000000001")
		w := httptest.NewRecorder()
		answer.Func(s.view.Look).ServeHTTP(w, r)
		first <- w.Code
	}()
	release := <-waiting
	status, code, _ := consoletest.Fault(t, s.view.Look, "", "{}", of("0000000000000001"))
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, "busy", code)
	close(release)
	require.Equal(t, http.StatusOK, <-first)
}

func TestLook(t *testing.T) {
	s := open(t)
	s.Register(consoletest.Scraped(100))
	status, _, text := consoletest.Ask(t, s.view.Look, "", "{}", of("0000000000000001"))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `"body":"up 1\n�"`)
	require.Contains(t, text, `"wire_bytes":1048576`, "the limit is asked for")
	require.Contains(t, text, `"status":"503 Service Unavailable"`)

	status, code, _ := consoletest.Fault(t, s.view.Look, "", "{}", of("http://evil.example/"))
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "not_found", code)

	status, code, message := consoletest.Fault(t, s.view.Look, "", "{}", of("000000000000000f"))
	require.Equal(t, http.StatusBadGateway, status)
	require.Equal(t, "target", code)
	require.NotContains(t, message, "s3cr3t")

	for _, body := range []string{"[]", "{} {}", `{"url":"http://evil.example"}`, "{"} {
		status, _, _ := consoletest.Fault(t, s.view.Look, "", body, of("0000000000000001"))
		require.Equal(t, http.StatusBadRequest, status, body)
	}
}
