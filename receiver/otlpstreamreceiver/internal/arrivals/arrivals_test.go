// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package arrivals

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const limit = 1 << 20

// sender sends a message in pieces, and records the result.
type sender struct {
	*Arrival

	cutOff, failed, ended atomic.Bool
}

func enter(a *Arrivals) *sender {
	s := &sender{}
	s.Arrival = a.Enter(func() { s.cutOff.Store(true) })
	return s
}

func (s *sender) send(size, piece int, pause time.Duration) {
	for sent := 0; sent < size; sent += piece {
		if s.Come(min(piece, size-sent)) != nil {
			s.failed.Store(true)
			s.Leave() // like a closed connection
			return
		}
		time.Sleep(pause)
	}
	s.ended.Store(true)
}

func TestWhoStopsMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(limit)
		var stopped []*sender
		for range 4 {
			s := enter(a)
			s.send(limit/4+Own, limit/4+Own, 0)
			stopped = append(stopped, s)
		}
		require.Equal(t, limit+4*Own, a.Held())
		other := enter(a)
		go other.send(limit, 32<<10, 0)
		time.Sleep(2 * pause)
		synctest.Wait()
		require.True(t, other.ended.Load(), "one goes on")
		another := enter(a)
		go another.send(limit, 32<<10, 0)
		synctest.Wait()
		require.False(t, another.ended.Load(), "one alone")
		require.LessOrEqual(t, a.Held(), 2*limit+6*Own+32<<10)
		cut := 0
		for begun := time.Now(); !another.ended.Load() && time.Since(begun) < 5*patience; {
			time.Sleep(patience)
			synctest.Wait()
			for _, s := range stopped {
				if s.cutOff.Load() {
					s.Leave()
					cut++
				}
			}
			synctest.Wait()
		}
		require.Positive(t, cut)
		require.True(t, another.ended.Load())
		another.DoneAll()
		other.DoneAll()
		for _, s := range append(stopped, other, another) {
			s.Leave()
			s.Leave()
		}
		require.Zero(t, a.Held())
		require.Equal(t, ErrCut, other.Come(1), "who has left counts for nothing")
		require.Zero(t, a.Held())
	})
}

func TestWhoGetsNothingDoneMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(limit)
		var slow []*sender
		for range 16 {
			s := enter(a)
			go s.send(16*limit, limit/50, patience/2)
			slow = append(slow, s)
		}
		synctest.Wait()
		time.Sleep(20 * time.Second)
		done := 0
		for range 100 { // one after the other, at the same time
			s := enter(a)
			begun := time.Now()
			go func() {
				s.send(limit/4, 32<<10, 0)
				s.Leave()
			}()
			for synctest.Wait(); !s.ended.Load() && !s.failed.Load(); synctest.Wait() {
				time.Sleep(time.Millisecond)
			}
			require.False(t, s.failed.Load())
			require.Less(t, time.Since(begun), 2*patience)
			done++
		}
		require.Equal(t, 100, done)
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, s := range slow {
			require.True(t, s.failed.Load())
		}
		require.Zero(t, a.Held())
	})
}

func TestWhoHasTooMuchBegunIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(limit)
		s := enter(a)
		s.send(4*limit, 32<<10, 0)
		require.True(t, s.failed.Load())
		require.Zero(t, a.Held())
	})
}

func TestMessagesThatAreThereLetOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(limit)
		var all []*sender
		for range 50 {
			s := enter(a)
			all = append(all, s)
			go func() {
				for range 20 {
					s.send(limit/8, 16<<10, time.Millisecond)
					if s.failed.Load() {
						return
					}
					s.Done(limit / 8)
				}
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, s := range all {
			require.False(t, s.failed.Load(), "nobody is slow")
			require.False(t, s.cutOff.Load())
		}
		require.Zero(t, a.Held())
	})
}

func TestACallThatEndsLeavesNothing(t *testing.T) {
	a := New(limit)
	s := enter(a)
	s.Begin()
	s.Begin()
	require.NoError(t, s.Come(1000))
	s.End()
	require.Equal(t, 1000, a.Held())
	s.End()
	require.Zero(t, a.Held())
}

func TestDataIsCountedHoweverItComes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	bytes, want := []byte(preface), 0
	for range 1000 {
		size, kind := random.IntN(3000), byte(random.IntN(10))
		header := binary.BigEndian.AppendUint32(nil, uint32(size)<<8|uint32(kind))
		bytes = append(bytes, header...)
		bytes = append(bytes, make([]byte, 5+size)...)
		if kind == 0 {
			want += size
		}
	}
	f, got := frames{skip: len(preface)}, 0
	for len(bytes) > 0 {
		n := min(1+random.IntN(2000), len(bytes))
		got += f.data(bytes[:n])
		bytes = bytes[n:]
	}
	require.Equal(t, want, got)
}
