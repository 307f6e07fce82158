// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package buffers limits what a configuration may ask of a connection's buffers. net/http and gRPC allocate them as configured, when
// a connection is made: one that is too large ends the process then, long after its start.
package buffers

import (
	"errors"
	"fmt"
)

// Most is the largest buffer that a connection may have. Each connection has two.
const Most = 16 << 20

// Check returns an error for sizes of a connection's buffers that are too large. before precedes the keys, and ends in
// their separator.
func Check(before string, read, write int) error {
	return errors.Join(check(before+"read_buffer_size", read), check(before+"write_buffer_size", write))
}

func check(key string, size int) error {
	if size > Most {
		return fmt.Errorf("`%s` must be at most %d, which is 16 MiB for each connection, got %d", key, Most, size)
	}
	return nil
}
