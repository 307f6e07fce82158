// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	other "github.com/coder/websocket"
)

// BenchmarkRivals sends messages over the loopback interface, each with a response of ten bytes, like requests on a
// stream. Up to 32 are unanswered.
func BenchmarkRivals(b *testing.B) {
	for _, size := range []int{2_000, 20_000, 100_000} {
		sent := message(size)
		b.Run(fmt.Sprintf("size=%d/who=godwit", size), func(b *testing.B) { exchange(b, sent, dialOwn(b, 1)) })
		b.Run(fmt.Sprintf("size=%d/who=godwit,batched", size), func(b *testing.B) { exchange(b, sent, dialOwn(b, 8)) })
		b.Run(fmt.Sprintf("size=%d/who=coder", size), func(b *testing.B) { exchange(b, sent, dialOther(b)) })
	}
}

// peer is a client that sends messages and waits for responses.
type peer struct {
	send    func(message []byte) error
	receive func() error
}

const unanswered = 32

func exchange(b *testing.B, sent []byte, p peer) {
	b.Helper()
	window := make(chan struct{}, unanswered)
	failed := make(chan error, 1)
	go func() {
		for {
			if err := p.receive(); err != nil {
				failed <- err
				return
			}
			<-window
		}
	}()
	b.SetBytes(int64(len(sent)))
	b.ReportAllocs()
	for b.Loop() {
		select {
		case window <- struct{}{}:
		case err := <-failed:
			b.Fatal(err)
		}
		if err := p.send(sent); err != nil {
			b.Fatal(err)
		}
	}
	if err := p.send(nil); err != nil { // sends buffered messages
		b.Fatal(err)
	}
	for range unanswered { // all have a response when there is room for the same number again
		window <- struct{}{}
	}
}

var answer = []byte("0123456789")

func dialOwn(b *testing.B, batch int) peer {
	b.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Accept(w, r, testLimit)
		if err != nil {
			return
		}
		defer c.CloseNow()
		var got []byte
		for {
			if got, _, err = c.Read(got[:0]); err != nil {
				return
			}
			if len(got) > 0 && (c.Write(answer) != nil || c.Flush() != nil) {
				return
			}
		}
	}))
	b.Cleanup(server.Close)
	c, _, err := Dial(context.Background(), server.Client(), server.URL, http.Header{}, testLimit)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.CloseNow)
	var got []byte
	held := 0
	return peer{
		send: func(message []byte) error {
			if err := c.Write(message); err != nil {
				return err
			}
			if held++; held < batch && len(message) > 0 {
				return nil
			}
			held = 0
			return c.Flush()
		},
		receive: func() (err error) {
			got, _, err = c.Read(got[:0])
			return err
		},
	}
}

func dialOther(b *testing.B) peer {
	b.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := other.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		c.SetReadLimit(testLimit)
		for {
			_, got, err := c.Read(r.Context())
			if err != nil || len(got) > 0 && c.Write(r.Context(), other.MessageBinary, answer) != nil {
				return
			}
		}
	}))
	b.Cleanup(server.Close)
	ctx := context.Background()
	c, _, err := other.Dial(ctx, "ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.CloseNow() })
	return peer{
		send: func(message []byte) error { return c.Write(ctx, other.MessageBinary, message) },
		receive: func() error {
			_, _, err := c.Read(ctx)
			return err
		},
	}
}
