// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/godwit-otel/godwit/e2e/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo starts a server that returns what it receives.
func echo(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, w *Wire) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", w.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// says sends a text and returns what comes back within patience.
func says(c net.Conn, text string, patience time.Duration) string {
	if _, err := io.WriteString(c, text); err != nil {
		return err.Error()
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	answer := make([]byte, len(text))
	n, _ := io.ReadFull(c, answer)
	return string(answer[:n])
}

const (
	patient = time.Minute
	brief   = 100 * time.Millisecond
)

func TestAGoodWireCarriesBothWays(t *testing.T) {
	w := New(t, echo(t))
	c := dial(t, w)
	assert.Equal(t, "hello", says(c, "hello", patient))
	assert.Equal(t, 1, w.Accepted())
	w.Cut()
	_ = c.SetReadDeadline(time.Now().Add(patient))
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	assert.NotErrorIs(t, err, io.ErrNoProgress)
}

func TestAConnectionIsCutAfterItsBytes(t *testing.T) {
	w := New(t, echo(t))
	w.CutAfter(func() int { return 3 })
	c := dial(t, w)
	_, err := io.WriteString(c, "hello")
	require.NoError(t, err)
	got, _ := io.ReadAll(c)
	assert.LessOrEqual(t, len(got), 3)
	assert.Equal(t, 1, w.Cuts())
	w.CutAfter(nil)
	assert.Equal(t, "hello", says(dial(t, w), "hello", patient))
	assert.Equal(t, 1, w.Cuts())
}

func TestAHoleSwallowsAndKeepsConnectionsOpen(t *testing.T) {
	w := New(t, echo(t))
	c := dial(t, w)
	assert.Equal(t, "hello", says(c, "hello", patient))
	w.Swallow(true)
	assert.Empty(t, says(c, "anyone?", brief))
	w.Swallow(false)
	assert.Equal(t, "again", says(c, "again", patient))
}

func TestAForgottenConnectionIsHalfOpen(t *testing.T) {
	w := New(t, echo(t))
	c := dial(t, w)
	assert.Equal(t, "hello", says(c, "hello", patient))
	w.Forget()
	for range 3 {
		assert.Empty(t, says(c, "anyone?", brief), "it is not told")
	}
	assert.Equal(t, "hello", says(dial(t, w), "hello", patient), "new ones are fine")
}

func TestASlowWireTakesItsTime(t *testing.T) {
	w := New(t, echo(t))
	w.Slow(1000)
	c := dial(t, w)
	begun := time.Now()
	text := string(make([]byte, 200))
	assert.Equal(t, text, says(c, text, patient))
	assert.GreaterOrEqual(t, time.Since(begun), 150*time.Millisecond)
}

func TestAServerThatHangsUpIsNoticed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	w := New(t, l.Addr().String())
	c := dial(t, w)
	server, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, server.Close())
	wait.Until(t, patient, func() (bool, string) {
		_ = c.SetReadDeadline(time.Now().Add(brief))
		_, err := c.Read(make([]byte, 1))
		return errors.Is(err, io.EOF), "the client does not know"
	})
}
