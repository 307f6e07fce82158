// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// releaseDelay is the time before the first release, for what the start and the first data need. It is also the minimum
// time between releases at refreshes: pages in use come back at once, each at the cost of a fault.
const releaseDelay = 10 * time.Second

// settleDelay is the time between the first release and the second. Each further one comes after twice as long, until
// that is about half the interval of refreshes, with which releases come from then on: a page that is used once a second
// is back at the second release, and one that is used every ten seconds at the fourth. A piece of which any page is back
// is then divided into single pages.
const settleDelay = 3 * time.Second

// outcome is the result of a release; the zero value means that there was none yet.
type outcome int

const (
	untried outcome = iota
	done
	failed
	unsupported
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return done
	case errors.Is(err, errors.ErrUnsupported):
		return unsupported
	default:
		return failed
	}
}

// binaryPages releases the pages of the executable again and again, because they come back. It logs a release only if
// its outcome differs from the last.
type binaryPages struct {
	logger  *zap.Logger
	unmap   func() (int64, error) // replaced in tests
	outcome outcome
	bytes   atomic.Int64 // what the last release unmapped
}

func (p *binaryPages) release() {
	unmapped, err := p.unmap()
	p.bytes.Store(unmapped)
	before := p.outcome
	p.outcome = outcomeOf(err)
	switch {
	case p.outcome == before:
	case p.outcome == unsupported:
		p.logger.Info("release_binary_pages has no effect on this system: it needs Linux")
	case p.outcome == failed:
		p.logger.Warn("Cannot release all binary pages", zap.Int64("released", unmapped), zap.Error(err))
	case before == failed:
		p.logger.Info("All binary pages can be released again", zap.Int64("released", unmapped))
	default:
		p.logger.Info("Binary pages released", zap.Int64("released", unmapped))
	}
}
