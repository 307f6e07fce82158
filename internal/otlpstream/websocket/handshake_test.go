// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHandshakesThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Request)
		code   int
	}{
		"no upgrade":           {func(r *http.Request) { r.Header.Del("Connection") }, http.StatusUpgradeRequired},
		"to something else":    {func(r *http.Request) { r.Header.Set("Upgrade", "h2c") }, http.StatusUpgradeRequired},
		"HTTP/2":               {func(r *http.Request) { r.ProtoMajor, r.ProtoMinor = 2, 0 }, http.StatusUpgradeRequired},
		"HTTP/1.0":             {func(r *http.Request) { r.ProtoMinor = 0 }, http.StatusUpgradeRequired},
		"not GET":              {func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		"another version":      {func(r *http.Request) { r.Header.Set(headerVersion, "8") }, http.StatusBadRequest},
		"no key":               {func(r *http.Request) { r.Header.Del(headerKey) }, http.StatusBadRequest},
		"two keys":             {func(r *http.Request) { r.Header.Add(headerKey, r.Header.Get(headerKey)) }, http.StatusBadRequest},
		"a key of 3 bytes":     {func(r *http.Request) { r.Header.Set(headerKey, "AAAA") }, http.StatusBadRequest},
		"from elsewhere":       {func(r *http.Request) { r.Header.Set("Origin", "https://elsewhere") }, http.StatusForbidden},
		"from a file":          {func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"from no such place":   {func(r *http.Request) { r.Header.Set("Origin", "http://%") }, http.StatusForbidden},
		"nothing to take over": {func(*http.Request) {}, http.StatusSwitchingProtocols},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := request(), httptest.NewRecorder()
			test.change(r)
			_, err := Accept(w, r, testLimit)
			require.Error(t, err)
			require.Equal(t, test.code, w.Code)
		})
	}
	r := request()
	r.Header.Set("Origin", "https://HERE")
	_, err := Accept(hijack{httptest.NewRecorder(), &script{}}, r, testLimit)
	require.NoError(t, err)
}

func TestAnswersToAHandshakeThatAreNone(t *testing.T) {
	good := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "WebSocket")
		w.Header().Set(headerAccept, acceptance(r.Header.Get(headerKey)))
	}
	for name, change := range map[string]func(http.ResponseWriter, *http.Request){
		"no upgrade":     func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Upgrade", "h2c") },
		"not understood": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(headerAccept, "x") },
		"an extension":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Sec-WebSocket-Extensions", "x") },
		"a subprotocol":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Sec-WebSocket-Protocol", "x") },
		"another answer": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"just as it is":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				good(w, r)
				if change != nil {
					change(w, r)
				}
				if name != "another answer" {
					w.WriteHeader(http.StatusSwitchingProtocols)
				}
			})
			c, response, err := Dial(t.Context(), client(t), address, http.Header{}, testLimit)
			if change == nil {
				require.NoError(t, err)
				c.CloseNow()
				return
			}
			require.Error(t, err)
			require.NotNil(t, response)
		})
	}
	_, response, err := Dial(t.Context(), client(t), "http://127.0.0.1:1/", http.Header{}, testLimit)
	require.Error(t, err)
	require.Nil(t, response)
	_, _, err = Dial(t.Context(), client(t), "http://%", http.Header{}, testLimit)
	require.Error(t, err)
}
