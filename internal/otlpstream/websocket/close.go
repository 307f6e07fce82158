// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package websocket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// StatusCode is the reason why a connection is closed.
type StatusCode uint16

// The codes of RFC 6455 and its registry that are used here.
const (
	StatusNormalClosure StatusCode = 1000
	StatusProtocolError StatusCode = 1002
	// StatusNone stands for a close frame without a code.
	StatusNone StatusCode = 1005
	// StatusInvalidText is for a text that is not UTF-8.
	StatusInvalidText   StatusCode = 1007
	StatusTooLarge      StatusCode = 1009
	StatusTryAgainLater StatusCode = 1013
)

// CloseError is returned when the other end has closed the connection, with its reason.
type CloseError struct {
	Code   StatusCode
	Reason string
}

func (e CloseError) Error() string {
	return fmt.Sprintf("the other end has closed the connection: %d %s", e.Code, e.Reason)
}

// CloseStatus returns the code of a CloseError, and 0 for other errors.
func CloseStatus(err error) StatusCode {
	var said CloseError
	if errors.As(err, &said) {
		return said.Code
	}
	return 0
}

// closeTimeout is how long the other end has to answer a close frame.
const closeTimeout = 5 * time.Second

// Close sends the reason why there will be no more messages, waits until the other end agrees, and closes the
// connection. Messages that still arrive are not read.
func (c *Conn) Close(code StatusCode, reason string) {
	late := time.AfterFunc(closeTimeout, c.CloseNow)
	defer late.Stop()
	_ = c.writeClose(code, reason)
	c.discard()
	c.CloseNow()
}

// writeClose writes a close frame, unless there was one.
func (c *Conn) writeClose(code StatusCode, reason string) error {
	late := time.AfterFunc(closeTimeout, c.CloseNow) // it may have to wait for a writer that is stuck
	defer late.Stop()
	var payload []byte
	if code != StatusNone {
		reason = strings.ToValidUTF8(reason[:min(len(reason), maxControl-2)], "") // it may have been cut within a character
		payload = append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...)
	}
	return c.writeControl(opClose, payload)
}

func parseClose(payload []byte) (said CloseError, ok bool) {
	if len(payload) == 0 {
		return CloseError{Code: StatusNone}, true
	}
	if len(payload) == 1 {
		return said, false
	}
	said.Code = StatusCode(binary.BigEndian.Uint16(payload))
	said.Reason = strings.ToValidUTF8(string(payload[2:]), "\uFFFD")
	return said, said.Code.mayBeSent()
}

// mayBeSent reports whether a code is allowed in close frames: others stand for how a connection ended without one.
func (code StatusCode) mayBeSent() bool {
	switch code {
	case 1004, StatusNone, 1006:
		return false
	}
	return code >= StatusNormalClosure && code <= 1014 || code >= 3000 && code < 5000
}
