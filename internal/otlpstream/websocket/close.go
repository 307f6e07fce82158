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

// StatusCode says why a connection is closed.
type StatusCode uint16

// Those of RFC 6455 and its registry that are of use here.
const (
	StatusNormalClosure StatusCode = 1000
	StatusProtocolError StatusCode = 1002
	// StatusNone is that of a close frame without any.
	StatusNone StatusCode = 1005
	// StatusInvalidText is that of a text that is not UTF-8.
	StatusInvalidText   StatusCode = 1007
	StatusTooLarge      StatusCode = 1009
	StatusTryAgainLater StatusCode = 1013
)

// CloseError is the end as the other end wants it.
type CloseError struct {
	Code   StatusCode
	Reason string
}

func (e CloseError) Error() string {
	return fmt.Sprintf("the other end has closed the connection: %d %s", e.Code, e.Reason)
}

// CloseStatus is the code of a CloseError, and 0 that of other errors.
func CloseStatus(err error) StatusCode {
	var said CloseError
	if errors.As(err, &said) {
		return said.Code
	}
	return 0
}

// closeTimeout is how long the other end has to take its leave.
const closeTimeout = 5 * time.Second

// Close says why there will be no more messages, waits for the other end to agree, and closes the connection. What still
// comes is not read.
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
		reason = strings.ToValidUTF8(reason[:min(len(reason), maxControl-2)], "") // it may be cut within a character
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

// mayBeSent reports whether a code is one for close frames: others stand for how a connection ended without one.
func (code StatusCode) mayBeSent() bool {
	switch code {
	case 1004, StatusNone, 1006:
		return false
	}
	return code >= StatusNormalClosure && code <= 1014 || code >= 3000 && code < 5000
}
