// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math/rand/v2"

	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/page/catalog"
)

const (
	// manyLines is the number of lines after which a page is checked for repeated lines.
	manyLines = 1 << 17
	// linesPerLook is how many lines there are for each one that is checked.
	linesPerLook = 128
)

// A repeatError is a page that repeats its lines. Their values would count once, but each takes memory until the page's
// end.
type repeatError int

func (e repeatError) Error() string {
	return fmt.Sprintf("cannot read page: its first %d lines are nearly all the same few again and again", int(e))
}

// Is makes the error match ErrMemory.
func (repeatError) Is(target error) bool { return target == ErrMemory }

// repeats finds out whether the page has hundreds of samples for each series and time, as only a page has that is made
// to exhaust memory: compressed, it is tiny. Lines of the plan need no check.
func (s *Scrape) repeats() error {
	if len(s.values) < s.look {
		return nil
	}
	s.look = 2 * len(s.values)
	if !s.strayed || len(s.lines) < manyLines {
		return nil
	}
	type sample struct {
		line *catalog.Line
		time int64
	}
	looks := len(s.lines) / linesPerLook
	seen := make(map[sample]struct{}, looks)
	for range looks {
		i := rand.IntN(len(s.lines)) //nolint:gosec // nobody can tell which, and that is enough
		one := sample{line: s.lines[i]}
		if i < len(s.times) {
			one.time = s.times[i]
		}
		seen[one] = struct{}{}
	}
	if len(seen) < looks/2 {
		return repeatError(len(s.lines))
	}
	return nil
}

// reasonToStop returns the reason not to read on: the page is made to exhaust memory. The rest is skipped instead of refused,
// since most such pages also exceed the size limit, which is the more helpful error.
func (s *Scrape) reasonToStop() error {
	if !s.whole && len(s.carry) > maxLine {
		s.carry = nil
		return lineError{}
	}
	return s.repeats()
}
