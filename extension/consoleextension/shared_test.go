// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Many who look cost what one does: they wait for the same answer.
func TestViewersShareAnswers(t *testing.T) {
	s := open(t)
	var asked atomic.Int32
	began, release := make(chan struct{}, 10), make(chan struct{})
	s.processor("cardinality", fakeCardinality{slow: func() {
		asked.Add(1)
		began <- struct{}{}
		<-release
	}})
	ask := func(n string) {
		if status, _, text := s.do(http.MethodGet, "/api/v1/cardinality/top?n="+n, ""); status != http.StatusOK {
			t.Error(text)
		}
	}
	const viewers = 10
	var all sync.WaitGroup
	for range viewers {
		all.Go(func() { ask("7") })
	}
	<-began
	close(release)
	all.Wait()
	require.EqualValues(t, 1, asked.Load())
	ask("8")
	require.EqualValues(t, 2, asked.Load(), "another question")
	s.clock.pass(sharedFor)
	ask("7")
	require.EqualValues(t, 3, asked.Load(), "later")
}

func TestWhatIsSharedIsBounded(t *testing.T) {
	s := open(t)
	s.shared.find(strings.Repeat("a", maxAsked+1), s.now())
	require.Empty(t, s.shared.answers)
	for i := range 2 * maxShared {
		s.shared.find(string(rune('a'+i)), s.now())
	}
	require.Len(t, s.shared.answers, maxShared)
	s.clock.pass(sampleInterval)
	s.sample()
	require.Empty(t, s.shared.answers, "while nobody asks nothing is kept")
}
