// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestQueuedStepsComeFirstAndTheRestIsAlwaysTheSame(t *testing.T) {
	var s Script[string]
	assert.Empty(t, s.Next(), "the zero script gives the zero step")

	s.Always("fine")
	s.Then("refuse", "hang")
	s.Then("reset")
	assert.Equal(t, 3, s.Left())
	assert.Equal(t, []string{"refuse", "hang", "reset", "fine", "fine"}, []string{s.Next(), s.Next(), s.Next(), s.Next(), s.Next()})
	assert.Zero(t, s.Left())
}
