// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package httpsnoop

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// optional returns which optional methods a writer has.
func optional(w http.ResponseWriter) map[string]bool {
	has := map[string]bool{}
	_, has["Flush"] = w.(http.Flusher)
	_, has["FlushError"] = w.(interface{ FlushError() error })
	_, has["CloseNotify"] = w.(http.CloseNotifier) //nolint:staticcheck // see connection
	_, has["Hijack"] = w.(http.Hijacker)
	_, has["ReadFrom"] = w.(io.ReaderFrom)
	_, has["SetReadDeadline"] = w.(interface{ SetReadDeadline(at time.Time) error })
	_, has["SetWriteDeadline"] = w.(interface{ SetWriteDeadline(at time.Time) error })
	_, has["EnableFullDuplex"] = w.(interface{ EnableFullDuplex() error })
	_, has["Push"] = w.(http.Pusher)
	_, has["WriteString"] = w.(io.StringWriter)
	return has
}

func serve(t *testing.T, protocols func(*http.Protocols), handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handle)
	server.Config.Protocols = &http.Protocols{}
	protocols(server.Config.Protocols)
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{Protocols: server.Config.Protocols}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

var protocols = map[string]func(*http.Protocols){
	"HTTP/1": func(p *http.Protocols) { p.SetHTTP1(true) },
	"HTTP/2": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
}

func TestHasTheWritersMethods(t *testing.T) {
	for name, set := range protocols {
		t.Run(name, func(t *testing.T) {
			serve(t, set, func(w http.ResponseWriter, r *http.Request) {
				if want, got := optional(w), optional(Wrap(w, Hooks{})); !maps.Equal(want, got) {
					t.Errorf("%s: the writer has %v, its wrapper %v", r.Proto, want, got)
				}
			})
		})
	}
}

func TestHooksReplaceMethods(t *testing.T) {
	for name, set := range protocols {
		t.Run(name, func(t *testing.T) {
			var calls []string
			body := serve(t, set, func(w http.ResponseWriter, _ *http.Request) {
				w = Wrap(w, Hooks{
					Header: func(f HeaderFunc) HeaderFunc {
						return func() http.Header {
							calls = append(calls, "Header")
							return f()
						}
					},
					WriteHeader: func(f WriteHeaderFunc) WriteHeaderFunc {
						return func(code int) {
							calls = append(calls, "WriteHeader")
							f(code)
						}
					},
					Write: func(f WriteFunc) WriteFunc {
						return func(b []byte) (int, error) {
							calls = append(calls, "Write "+string(b))
							return f(b)
						}
					},
					Flush: func(f FlushFunc) FlushFunc {
						return func() {
							calls = append(calls, "Flush")
							f()
						}
					},
				})
				w.Header().Set("X", "y")
				w.WriteHeader(http.StatusAccepted)
				_, _ = w.Write([]byte("a"))
				_, _ = io.WriteString(w, "b")
				w.(http.Flusher).Flush()
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
			})
			if got := strings.Join(calls, ", "); body != "ab" || got != "Header, WriteHeader, Write a, Write b, Flush, Flush" {
				t.Error(body, got)
			}
		})
	}
}

func TestWithoutHooks(t *testing.T) {
	for name, set := range protocols {
		t.Run(name, func(t *testing.T) {
			body := serve(t, set, func(w http.ResponseWriter, _ *http.Request) {
				w = Wrap(w, Hooks{})
				w.Header().Set("X", "y")
				w.WriteHeader(http.StatusAccepted)
				_, _ = w.Write([]byte("a"))
				w.(http.Flusher).Flush()
				_, _ = io.Copy(w, strings.NewReader("b"))
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
				if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Error(err)
				}
			})
			if body != "ab" {
				t.Error(body)
			}
		})
	}
}

func TestHijacks(t *testing.T) {
	body := serve(t, protocols["HTTP/1"], func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := Wrap(w, Hooks{}).(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
		c.Close()
	})
	if body != "ok" {
		t.Error(body)
	}
}

func TestPushIsTheWriters(t *testing.T) {
	serve(t, protocols["HTTP/2"], func(w http.ResponseWriter, _ *http.Request) {
		want, got := w.(http.Pusher).Push("/", nil), Wrap(w, Hooks{}).(http.Pusher).Push("/", nil)
		if want == nil || !errors.Is(got, want) && got.Error() != want.Error() {
			t.Errorf("%v instead of %v", got, want)
		}
	})
}

// deadlined is a writer with methods of its own.
type deadlined struct {
	http.ResponseWriter

	at time.Time
}

func (w *deadlined) SetReadDeadline(at time.Time) error {
	w.at = at
	return nil
}

func TestMethodsOfOtherWritersAreFound(t *testing.T) {
	w := &deadlined{ResponseWriter: struct{ http.ResponseWriter }{httptest.NewRecorder()}}
	wrapped, at := Wrap(w, Hooks{}), time.Unix(1, 0)
	if _, ok := wrapped.(http.Flusher); ok {
		t.Error("flushes, though the writer does not")
	}
	if err := http.NewResponseController(wrapped).SetReadDeadline(at); err != nil || w.at != at {
		t.Error(err, w.at)
	}
}
