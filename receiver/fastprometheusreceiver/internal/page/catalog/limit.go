// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
)

// ErrLimit matches Result.Err, by errors.Is, when a page exceeds a limit of its job.
var ErrLimit = errors.New("limit exceeded")

// A limitError says which limit was exceeded, in Prometheus' words.
type limitError string

func (e limitError) Error() string { return string(e) }

// Is makes the error match ErrLimit.
func (e limitError) Is(target error) bool { return target == ErrLimit }

// The limits of a page as a whole.
const (
	ErrSampleLimit = limitError("sample limit exceeded")
	ErrBucketLimit = limitError("histogram bucket limit exceeded")
)

func limitErrorf(format string, args ...any) error { return limitError(fmt.Sprintf(format, args...)) }
