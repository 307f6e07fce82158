// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"
)

// newOnes returns a page of n series that no other page has.
func newOnes(page, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "m{id=\"%d-%d-%0300d\"} 1\n", page, i, 0)
	}
	return b.String()
}

// TestAllPagesShareARoom: what each page may take is not what all may take together.
func TestAllPagesShareARoom(t *testing.T) {
	const most = 4 << 20
	room := NewRoom(most)
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), MaxMemory: most, Room: room})
	known := testTarget(j, 0)
	good := newOnes(0, 1000)
	read := func(target *Target, text string) error {
		r := show(target, start, typeText, text, 1<<16)
		defer r.Release()
		return r.Err
	}
	require.NoError(t, read(known, good))

	var open []*Scrape
	for i := 1; ; i++ {
		s, err := testTarget(j, i).Begin(start, typeText)
		require.NoError(t, err)
		open = append(open, s)
		if err := s.Feed([]byte(newOnes(i, 2000))); err != nil {
			require.ErrorIs(t, err, ErrMemory)
			require.ErrorAs(t, err, new(RoomError))
			break
		}
		require.Less(t, i, 10, "nobody is turned away")
	}
	require.Greater(t, len(open), 1, "one page does not take all of it")
	require.NoError(t, read(known, good), "what is known goes on")
	require.NoError(t, read(testTarget(j, 98), newOnes(98, 100)), "and so does what is small")
	require.Error(t, read(testTarget(j, 99), newOnes(99, 2000)))

	for _, s := range open {
		s.End(Report{Err: errors.New("connection reset")}).Release()
	}
	require.Zero(t, room.pages.Load())
	last := testTarget(j, 99)
	_ = read(last, newOnes(99, 2000)) // may be the one that finds what the others have left
	require.NoError(t, read(last, newOnes(99, 2000)), "there is room again")
}

// TestKnownPagesGoOnWithoutRoom: also those that are collected as a whole, and those with many exemplars.
func TestKnownPagesGoOnWithoutRoom(t *testing.T) {
	collected := testScrapeConfig()
	convert := true
	collected.ConvertClassicHistogramsToNHCB = &convert
	var exemplars strings.Builder
	exemplars.WriteString("# TYPE m counter\n")
	for i := range 1000 {
		fmt.Fprintf(&exemplars, "m_total{id=\"%d\"} 1 # {trace=\"%d\"} 1\n", i, i)
	}
	exemplars.WriteString("# EOF\n")
	for name, test := range map[string]struct {
		cfg         *promconfig.ScrapeConfig
		media, text string
	}{
		"collected": {collected, typeText, newOnes(0, 1000)},
		"exemplars": {testScrapeConfig(), typeOM, exemplars.String()},
	} {
		t.Run(name, func(t *testing.T) {
			room := NewRoom(16 << 20)
			j := newTestJob(t, Config{Scrape: test.cfg, Room: room})
			target := testTarget(j, 0)
			read := func(target *Target, text string) error {
				r := show(target, start, test.media, text, 1<<16)
				defer r.Release()
				return r.Err
			}
			require.NoError(t, read(target, test.text))
			room.pages.Add(room.most)
			require.ErrorIs(t, read(testTarget(j, 1), test.text), ErrMemory, "who has shown nothing yet")
			for range 3 {
				require.NoError(t, read(target, test.text))
			}
			require.ErrorIs(t, read(target, newOnes(1, 2000)+test.text), ErrMemory)
			require.NoError(t, read(target, test.text), "a page that failed changes nothing")
		})
	}
}

// TestRoomIsGivenBack: with the last target of a catalog, and by series that are replaced.
func TestRoomIsGivenBack(t *testing.T) {
	room := NewRoom(16 << 20) // a third of what the pages have
	j := newTestJob(t, Config{Scrape: testScrapeConfig(), Room: room})
	target := testTarget(j, 0)
	for i := range 20 {
		r := show(target, start.Add(time.Duration(i)*time.Second), typeText, newOnes(i, 3000), 1<<16)
		r.Release()
		require.NoError(t, r.Err, "page %d", i)
	}
	require.Positive(t, room.catalogs.Load())
	target.Retire(start.Add(time.Minute)).Release()
	require.Zero(t, room.catalogs.Load())
	require.Zero(t, room.pages.Load())
}

// TestWidePagesComeInParts: metrics of points with hundreds of attributes take as much as those of many more points.
func TestWidePagesComeInParts(t *testing.T) {
	text := func(labels int) string {
		var b strings.Builder
		for i := range 1500 {
			b.WriteString("m{")
			for l := range labels {
				fmt.Fprintf(&b, "l%d=\"%d\",", l, i)
			}
			b.WriteString("} 1\n")
		}
		return b.String()
	}
	for labels, inParts := range map[int]bool{10: false, 200: true} {
		target := testTarget(newTestJob(t, Config{Scrape: testScrapeConfig(), Reuse: true}), 1)
		for range 3 {
			r := show(target, start, typeText, text(labels), 1<<20)
			require.NoError(t, r.Err)
			require.Equal(t, inParts, r.Pending() > 0, labels)
			require.Equal(t, inParts, r.Width() > 100)
			_, r = merge(t, r)
			r.Release()
		}
	}
}
