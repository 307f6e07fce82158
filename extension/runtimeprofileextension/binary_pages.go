// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// releaseDelay lets what the start still needs, and the first data, come first. It is also how long pages are left where
// they are at least: what is in use comes back at once, and each page at the cost of a fault.
const releaseDelay = 10 * time.Second

// settleDelay is how long after the first release the second comes. The next ones come after twice as long each, until they are as far apart
// as refreshes: what is used once a second is there again when the second comes, and what is used once in ten when the fourth does. Where
// anything is there again, pages come one by one from then on.
const settleDelay = 3 * time.Second

// outcome is how a release went; the zero value is that of none yet.
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

// binaryPages releases the pages of the executable time and again, because they
// come back, and tells of it only when a release went otherwise than the last.
type binaryPages struct {
	logger  *zap.Logger
	unmap   func() (int64, error) // the executable's release outside tests
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
