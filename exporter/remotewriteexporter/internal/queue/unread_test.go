// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/internal/racetest"
)

var errUnread = errors.New("input/output error")

// spotty is a storage that cannot read some keys.
type spotty struct {
	*memoryClient

	unreadable map[string]bool
}

func (c *spotty) Get(ctx context.Context, key string) ([]byte, error) {
	if c.unreadable[key] {
		return nil, errUnread
	}
	return c.memoryClient.Get(ctx, key)
}

// TestABlockThatCannotBeReadHoldsUpItsLaneAndNotForEver: reading is retried for a while, then the block is counted as
// lost.
func TestABlockThatCannotBeReadHoldsUpItsLaneAndNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMedium()
		q, _ := open(t, 1, 10, stored(on(m)))
		push(t, q, 0, blockOf(1, 0), blockOf(2, 0), blockOf(3, 1), blockOf(4, 1))
		client := &spotty{memoryClient: on(m), unreadable: map[string]bool{}}
		q, dropped := open(t, 1, 10, func(c *Config) { c.Storage = client })
		client.unreadable[key(BlockPrefix, 0)] = true
		_, err := q.Next(t.Context(), 0, Bound{})
		require.ErrorIs(t, err, errUnread)
		next(t, q, 0, 3).Done(nil)
		next(t, q, 0, 4).Done(nil)

		began := time.Now()
		for time.Since(began) < readTime-readPause {
			_, err = q.Next(t.Context(), 0, Bound{})
			require.ErrorIs(t, err, errUnread)
		}
		require.Empty(t, dropped)
		for err != nil {
			var l *Lease
			if l, err = q.Next(t.Context(), 0, Bound{}); err == nil {
				require.Equal(t, 2, numberOf(l.Blocks[0]))
				l.Done(nil)
			}
		}
		require.Less(t, time.Since(began), readTime+5*readPause)
		require.Equal(t, drops{ReasonCorrupt: 1}, dropped)
		require.Zero(t, q.Stats(0).Blocks)
	})
}

// TestFilesThatVanishUnderTheQueueCostWhatIsInThem: the loss is immediate and counted; later data is stored and sent.
func TestFilesThatVanishUnderTheQueueCostWhatIsInThem(t *testing.T) {
	racetest.Sequential(t)
	const blocks, size = 30, 1 << 20
	for name, harm := range map[string]func(t *testing.T, directory string, logs []string){
		"a file is deleted": func(t *testing.T, _ string, logs []string) { require.NoError(t, os.Remove(logs[1])) },
		"a file is cut off": func(t *testing.T, _ string, logs []string) { require.NoError(t, os.Truncate(logs[1], 100)) },
		"the folder is deleted": func(t *testing.T, directory string, _ []string) {
			require.NoError(t, os.RemoveAll(directory))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			directory := filepath.Join(t.TempDir(), "queue")
			store, told := damagedStore(t, directory)
			require.Empty(t, told)
			q, dropped := open(t, 1, 1<<20, stored(store))
			for n := range blocks {
				push(t, q, 0, shaped(r, n, size))
			}
			logs, err := filepath.Glob(filepath.Join(directory, "*.log"))
			require.NoError(t, err)
			require.Greater(t, len(logs), 2)
			harm(t, directory, logs)
			for n := blocks; n < 2*blocks; n++ {
				push(t, q, 0, shaped(r, n, size))
			}
			arrived := contents(t, q, 0)
			require.True(t, slices.IsSorted(arrived))
			require.Equal(t, drops{ReasonCorrupt: 2*blocks - len(arrived)}, dropped)
			require.Greater(t, len(arrived), blocks/2)
			require.Less(t, len(arrived), 2*blocks)
			for n := blocks + 8; n < 2*blocks; n++ { // some were written to the open file
				require.Contains(t, arrived, n)
			}
			left := 0
			for name := range maps.Keys(content(t, directory)) {
				if filepath.Ext(name) == ".log" {
					left++
				}
			}
			require.Equal(t, 1, left)
			require.NoError(t, q.Close(t.Context()))
		})
	}
}

// TestTenantsThatAreNotServedKeepHalfOfTheSenders: the others are for tenants that are served.
func TestTenantsThatAreNotServedKeepHalfOfTheSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const senders, tenants = 4, 6
		q, _ := open(t, 1, 100, func(c *Config) { c.Tenants, c.Senders = 10, senders })
		for i := range tenants {
			b := blockOf(i, 0)
			b.Tenant = string(rune('a' + i))
			push(t, q, 0, b)
		}
		for i := range tenants {
			next(t, q, 0, i).Later(0, nil, time.Second)
		}
		idle(t, q)
		time.Sleep(2 * time.Second)
		first, second := next(t, q, 0, 0), next(t, q, 0, 1)
		idle(t, q)
		served := blockOf(100, 0)
		served.Tenant = "served"
		push(t, q, 0, served)
		next(t, q, 0, 100).Done(nil)
		first.Later(0, nil, time.Hour)
		third := next(t, q, 0, 2)
		idle(t, q)
		second.Done(nil)
		next(t, q, 0, 3).Done(nil)
		third.Done(nil)
		next(t, q, 0, 4).Done(nil)
		next(t, q, 0, 5).Done(nil)
	})
}

var _ storage.Client = (*spotty)(nil)
