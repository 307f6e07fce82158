// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package clientcmd

import (
	"encoding"
	std "encoding/base64"
	"strings"
)

// base64 is bytes that a file has in base64.
type base64 []byte

var _ encoding.TextUnmarshaler = (*base64)(nil)

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *base64) UnmarshalText(text []byte) (err error) {
	*b, err = std.StdEncoding.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	return err
}
