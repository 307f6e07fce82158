// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Many concurrent requests cost as much as one: they wait for the same response.
func TestViewersShareAnswers(t *testing.T) {
	at := time.Unix(1, 0)
	var asked atomic.Int32
	began, release := make(chan struct{}, 10), make(chan struct{})
	answer := NewShared(func() time.Time { return at }).Share(func(*http.Request) (any, error) {
		asked.Add(1)
		began <- struct{}{}
		<-release
		return []int{1}, nil
	})
	ask := func(n string) {
		w := httptest.NewRecorder()
		answer.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/top?n="+n, http.NoBody))
		if w.Code != http.StatusOK || w.Body.String() != "[1]" {
			t.Error(w.Body)
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
	at = at.Add(sharedFor)
	ask("7")
	require.EqualValues(t, 3, asked.Load(), "later")
}

func TestWhatIsSharedIsBounded(t *testing.T) {
	at := time.Unix(1, 0)
	s := NewShared(func() time.Time { return at })
	s.find(strings.Repeat("a", maxAsked+1))
	require.Empty(t, s.answers)
	for i := range 2 * maxShared {
		s.find(string(rune('a' + i)))
	}
	require.Len(t, s.answers, maxShared)
	s.Forget()
	require.Len(t, s.answers, maxShared)
	at = at.Add(sharedFor)
	s.Forget()
	require.Empty(t, s.answers, "while nobody asks nothing is kept")
}
