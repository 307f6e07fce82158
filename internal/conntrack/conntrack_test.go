// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"net"
	"testing"
)

func TestDialsAsTold(t *testing.T) {
	own := errors.New("own")
	dial := NewDialContextFunc(DialWithDialContextFunc(func(context.Context, string, string) (net.Conn, error) { return nil, own }),
		DialWithTracing(), DialWithName("name"))
	if _, err := dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, own) {
		t.Fatal(err)
	}
}

func TestDialsByItself(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := NewDialContextFunc(DialWithTracing(), DialWithName("name"))(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestListensAsBefore(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if NewListener(l, TrackWithName("name"), TrackWithTracing()) != l {
		t.Fatal("another listener")
	}
}
