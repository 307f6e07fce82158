// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	other "github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// frame returns a client's frame with a mask of zeros.
func frame(first byte, payload string) string {
	b := appendHeader(nil, 0, len(payload), true, [keySize]byte{})
	b[0] = first
	return string(b) + payload
}

func TestWhoBreaksTheRulesIsTold(t *testing.T) {
	const final, bin = bitFinal, byte(opBinary)
	for name, input := range map[string]string{
		"reserved bits":             frame(final|bin|0x40, "x"),
		"an opcode that is none":    frame(final|3, "x"),
		"a control that is none":    frame(final|11, "x"),
		"not masked":                "\x82\x01x",
		"nothing to continue":       frame(final, "x"),
		"a message in a message":    frame(bin, "x") + frame(final|bin, "y"),
		"a ping in pieces":          frame(byte(opPing), "x"),
		"a ping that is too long":   frame(final|byte(opPing), strings.Repeat("x", maxControl+1)),
		"a length beyond all":       "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",
		"half a status":             frame(final|byte(opClose), "x"),
		"a status that is not sent": frame(final|byte(opClose), "\x03\xed"),
	} {
		t.Run(name, func(t *testing.T) {
			c, s := scripted(t, []byte(input+frame(final|bin, "never read")), testLimit)
			_, _, err := c.Read(nil)
			require.Error(t, err)
			require.Equal(t, bitFinal|byte(opClose), s.said()[0])
			require.Equal(t, StatusProtocolError, StatusCode(binary.BigEndian.Uint16(s.said()[2:])))
			_, _, err = c.Read(nil)
			require.Error(t, err)
			c.Close(StatusNormalClosure, "")
		})
	}
}

func TestTextIsUTF8(t *testing.T) {
	const final, text = bitFinal, byte(opText)
	for name, input := range map[string]string{
		"a text":                 frame(final|text, "\xff"),
		"a text that ends early": frame(text, "\xe2\x82") + frame(final, ""),
		"a reason":               frame(final|byte(opClose), "\x03\xe8\xff"),
	} {
		t.Run(name, func(t *testing.T) {
			c, s := scripted(t, []byte(input+frame(final|text, "never read")), testLimit)
			_, _, err := c.Read(nil)
			require.ErrorContains(t, err, "UTF-8")
			require.Equal(t, StatusInvalidText, StatusCode(binary.BigEndian.Uint16(s.said()[2:])))
			_, _, err = c.Read(nil)
			require.Error(t, err)
			c.Close(StatusNormalClosure, "")
		})
	}
	c, _ := scripted(t, []byte(frame(text, "\xe2\x82")+frame(final, "\xac")), testLimit)
	got, isBinary, err := c.Read(nil)
	require.NoError(t, err)
	require.False(t, isBinary)
	require.Equal(t, "€", string(got), "a character may be in two frames")
}

func TestAReasonIsCutBetweenCharacters(t *testing.T) {
	c, s := scripted(t, nil, testLimit)
	c.Close(StatusTryAgainLater, strings.Repeat("x", maxControl-3)+"€")
	require.Equal(t, strings.Repeat("x", maxControl-3), string(s.said()[4:]))
}

func TestAClientTakesNoMasks(t *testing.T) {
	s := &script{in: bytes.NewReader([]byte(frame(bitFinal|byte(opBinary), "x")))}
	_, _, err := newConn(s, true, testLimit, nil).Read(nil)
	require.ErrorContains(t, err, "mask")
}

func TestTheLimitIsOneOfMessages(t *testing.T) {
	const limit = 1000
	c, s := pair(t)
	s.limit = limit
	require.NoError(t, c.Write(message(limit)))
	require.NoError(t, errors.Join(c.Write(message(limit+1)), c.Write(message(5)), c.Flush()))
	got, _, err := s.Read(nil)
	require.NoError(t, err)
	require.Len(t, got, limit)
	_, _, err = s.Read(nil)
	require.ErrorIs(t, err, ErrTooLarge)
	closed := make(chan struct{})
	go func() { s.Close(StatusTryAgainLater, "said before"); close(closed) }()
	_, _, err = c.Read(nil)
	require.Equal(t, StatusTooLarge, CloseStatus(err))
	<-closed

	inPieces := frame(byte(opBinary), strings.Repeat("x", limit)) + frame(bitFinal, "y")
	c, _ = scripted(t, []byte(inPieces), limit)
	_, _, err = c.Read(nil)
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestMemoryComesWithWhatIsThere(t *testing.T) {
	promise := binary.BigEndian.AppendUint64([]byte{bitFinal | byte(opBinary), bitMasked | length64}, 1<<40)
	input := append(append(promise, 0, 0, 0, 0), make([]byte, 10_000)...)
	c, _ := scripted(t, input, 1<<50)
	got, _, err := c.Read(nil)
	require.Error(t, err)
	require.Less(t, cap(got), 2*mostBuffer)
}

func TestAMessageThatIsCutShortIsNone(t *testing.T) {
	whole := frame(byte(opBinary), "in ") + frame(bitFinal, "pieces")
	for n := range len(whole) {
		w := &loop{}
		w.WriteString(whole[:n])
		_, _, err := newConn(w, false, testLimit, nil).Read(nil)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "after %d bytes", n)
	}
}

// all reads a connection to its end.
func all(read func() (string, error)) (messages []string, end int) {
	for {
		message, err := read()
		if err == nil {
			messages = append(messages, message)
			continue
		}
		var said CloseError
		var theirs other.CloseError
		switch {
		case errors.As(err, &said):
			end = int(said.Code)
		case errors.As(err, &theirs):
			end = int(theirs.Code)
		}
		return messages, end
	}
}

// FuzzRead reads anything that a client may send after the handshake, and compares with another implementation.
func FuzzRead(f *testing.F) {
	const final, bin, text = bitFinal, byte(opBinary), byte(opText)
	f.Add([]byte(frame(final|bin, "one") + frame(final|text, "two") + frame(final|byte(opClose), "\x03\xe8bye")))
	f.Add([]byte(frame(bin, "in") + frame(final|byte(opPing), "?") + frame(0, "") + frame(final, " pieces") + frame(final|byte(opPong), "")))
	f.Add([]byte(frame(final|bin, strings.Repeat("x", 300)) + frame(final|byte(opClose), "")))
	f.Add([]byte("\x82\x83\x01\x02\x03\x04abc\x82\xfe\x00\x01\xff\xff\xff\xffx"))
	f.Add([]byte(frame(final|text, "\xff") + frame(final|byte(opClose), "\x03\xe8\xff")))
	f.Add([]byte(frame(bin, strings.Repeat("y", 200)) + frame(final, strings.Repeat("z", 900))))
	f.Fuzz(func(t *testing.T, input []byte) {
		const limit = 1000
		ours, _ := scripted(t, input, limit)
		var last error
		got, end := all(func() (string, error) {
			message, isBinary, err := ours.Read(nil)
			last = err
			if isBinary {
				return "b" + string(message), err
			}
			return "t" + string(message), err
		})

		theirs, err := other.Accept(hijack{httptest.NewRecorder(), &script{in: bytes.NewReader(input)}}, request(), nil)
		require.NoError(t, err)
		defer theirs.CloseNow()
		theirs.SetReadLimit(limit)
		want, wantEnd := all(func() (string, error) {
			kind, message, err := theirs.Read(context.Background())
			if kind == other.MessageBinary {
				return "b" + string(message), err
			}
			return "t" + string(message), err
		})
		if last != nil && strings.Contains(last.Error(), "UTF-8") { // the other one does not check that
			want, wantEnd = append([]string(nil), want[:len(got)]...), end
		}
		require.Equal(t, want, got)
		require.Equal(t, wantEnd, end)
		ours.Close(StatusNormalClosure, "")
	})
}
