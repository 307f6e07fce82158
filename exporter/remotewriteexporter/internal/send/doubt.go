// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package send

// doubt is about a format that has delivered before, after a block was refused in it as if its content were bad.
type doubt struct {
	format   int
	refused  answer
	failures int // of requests in the last format
}

// mostFailures is the number of server errors after which they count as such, when they might mean that the last format
// is not known.
const mostFailures = 3

// settles reports whether an answer to the last format shows that it was about the content: it is refused again, or the
// server does not know that format.
func (t *doubt) settles(v verdict, a answer) bool {
	switch {
	case t == nil:
		return false
	case v == retry && a.mayBeFormat():
		t.failures++
		return t.failures >= mostFailures
	}
	return v == retrySlowly || v == rejected && !a.wroteSome()
}
