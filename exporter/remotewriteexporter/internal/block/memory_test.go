// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"bytes"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/handback"
)

func bodyOf(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }

// sameMemory reports whether two bodies use the same memory.
func sameMemory(a, b Block) bool { return &a.body[0] == &b.body[0] }

// While a body is held it does not change, whoever else frees it, in whatever order.
func TestNobodysBodyIsWrittenTo(t *testing.T) {
	defer handback.Poison(true)()
	for name, use := range map[string]func(b Block) (lastUser func()){
		"its maker": func(b Block) func() { return b.Free },
		"who holds it": func(b Block) func() {
			b.Hold()
			b.Free()
			return b.Free
		},
		"a reader": func(b Block) func() {
			r := b.Reader()
			b.Free()
			return func() { _ = r.Close() }
		},
		"the second reader": func(b Block) func() {
			first, second := b.Reader(), b.Reader()
			b.Free()
			_ = first.Close()
			_ = first.Close()
			return func() { _ = second.Close() }
		},
		"who holds it after a reader": func(b Block) func() {
			r := b.Reader()
			b.Hold()
			b.Free()
			_, _ = io.ReadAll(r)
			_ = r.Close()
			_ = r.Close()
			return b.Free
		},
	} {
		t.Run(name, func(t *testing.T) {
			var m Memory
			b := m.New(Header{}, bodyOf(1, 1000))
			last := use(b)
			for range 10 {
				other := m.New(Header{}, bodyOf(2, 1000))
				require.False(t, sameMemory(b, other))
			}
			require.Equal(t, bodyOf(1, 1000), b.Body())
			last()
			require.NotEqual(t, bodyOf(1, 1000), b.Body(), "poison shows that it is nobody's")
		})
	}
}

func TestABodyThatIsFreedTooOftenShows(t *testing.T) {
	var m Memory
	b := m.New(Header{}, bodyOf(1, 10))
	b.Free()
	assert.Panics(t, b.Free)
}

// A block with a body of its own may be held, freed and read like any other.
func TestABodyOfItsOwnIsNeverFreed(t *testing.T) {
	b := New(Header{}, bodyOf(1, 10))
	for range 3 {
		r := b.Reader()
		read, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, bodyOf(1, 10), read)
		require.NoError(t, r.Close())
		b.Free()
	}
	require.Equal(t, bodyOf(1, 10), b.Body())
}

// HTTP clients close a body while they may still read it.
func TestAClosedReaderReadsNothing(t *testing.T) {
	var m Memory
	b := m.New(Header{}, bodyOf(1, 100))
	r := b.Reader()
	part := make([]byte, 10)
	n, err := r.Read(part)
	require.NoError(t, err)
	require.Equal(t, 10, n)
	b.Free()
	require.NoError(t, r.Close())
	other := m.New(Header{}, bodyOf(2, 100))
	n, err = r.Read(part)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Zero(t, n)
	require.Equal(t, bodyOf(2, 100), other.Body())
}

// A body does not occupy much larger memory, which no queue would count.
func TestABodyTakesAPartOfItsMemory(t *testing.T) {
	var m Memory
	random := rand.New(rand.NewPCG(1, 2))
	var held []Block
	for range 2000 {
		b := m.New(Header{}, bodyOf(1, 1+random.IntN(10_000)))
		require.LessOrEqual(t, cap(b.body), leastPart*len(b.body)+8)
		if held = append(held, b); len(held) > 5 {
			i := random.IntN(len(held))
			held[i].Free()
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
		}
	}
}

// Consecutive bodies of about the same size need no new memory.
func TestBodiesTakeTheMemoryOfOthers(t *testing.T) {
	if handback.Poisons() {
		t.Skip("poison allocates")
	}
	var m Memory
	body := bodyOf(1, 1000)
	m.New(Header{}, body).Free()
	allocated := testing.AllocsPerRun(1000, func() {
		m.New(Header{}, body[:900]).Free()
	})
	assert.Less(t, allocated, 0.5) // the race detector discards some
}

// No concurrent maker, holder or reader ever sees a body change.
func TestBodiesOfManyGoroutines(t *testing.T) {
	defer handback.Poison(true)()
	var m Memory
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 2))
			for i := range 300 {
				want := bodyOf(byte(1+(g*300+i)%255), 900+random.IntN(200))
				b := m.New(Header{}, want)
				r := b.Reader()
				var readers sync.WaitGroup
				readers.Go(func() {
					defer r.Close()
					read, err := io.ReadAll(r)
					if assert.NoError(t, err) {
						assert.Equal(t, want, read)
					}
				})
				b.Hold()
				b.Free()
				assert.Equal(t, want, b.Body())
				b.Free()
				readers.Wait()
			}
		})
	}
	all.Wait()
}
