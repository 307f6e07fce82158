// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runtimeprofileextension

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBinaryPagesAreReleasedByDefaultInMinimalOnly(t *testing.T) {
	no, yes := false, true
	assert.True(t, (&Config{Profile: ProfileMinimal}).releaseBinaryPages())
	assert.True(t, (&Config{Profile: ProfileLean}).releaseBinaryPages())
	assert.True(t, (&Config{Profile: ProfileAuto}).releaseBinaryPages())
	assert.False(t, (&Config{Profile: ProfileBalanced}).releaseBinaryPages())
	assert.False(t, (&Config{Profile: ProfileMinimal, ReleaseBinaryPages: &no}).releaseBinaryPages())
	assert.True(t, (&Config{Profile: ProfileBalanced, ReleaseBinaryPages: &yes}).releaseBinaryPages())
}

func TestBinaryPagesAreReleasedAfterReadyAndAtEachRefresh(t *testing.T) {
	quietEnv(t)
	f := func(profile Profile, first, perRefresh int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := newSubject(&Config{Profile: profile, RefreshInterval: time.Minute}, tree(nil))
			var releases atomic.Int64
			s.pages.unmap = func() (int64, error) { return releases.Add(1), nil }
			after := func(wait time.Duration, want int64) {
				t.Helper()
				time.Sleep(wait)
				synctest.Wait()
				assert.Equal(t, want, releases.Load())
				assert.Equal(t, want, s.pages.bytes.Load(), "the metric tells of the last release")
			}
			s.start(t)
			after(time.Hour, 0) // pipelines that never get ready release nothing
			after(55*time.Second, 0)
			require.NoError(t, s.Ready())
			after(releaseDelay-1, 0) // nor after a refresh before the first release
			after(1, first)
			settled := first
			for wait := settleDelay; wait < 30*time.Second; wait *= 2 { // while it is learned which pages are used
				after(wait-1, settled)
				settled += first
				after(1, settled)
			}
			after(10*time.Second, settled) // this refresh is too early
			after(59*time.Second, settled)
			after(time.Second, settled+perRefresh)
			require.NoError(t, s.NotReady())
			after(10*time.Minute, settled+11*perRefresh)
			s.shutdown(t)
			after(time.Hour, settled+11*perRefresh)
		})
	}
	f(ProfileMinimal, 1, 1)
	f(ProfileBalanced, 0, 0)
}

func TestBinaryPagesAreLeftForAWhile(t *testing.T) {
	quietEnv(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(&Config{Profile: ProfileMinimal, RefreshInterval: time.Second}, tree(nil))
		var releases atomic.Int64
		s.pages.unmap = func() (int64, error) { return releases.Add(1), nil }
		s.start(t)
		require.NoError(t, s.Ready())
		for _, step := range []struct {
			wait time.Duration
			want int64
		}{{900 * time.Millisecond, 0}, {200 * time.Millisecond, 1}, {2800 * time.Millisecond, 1}, {200 * time.Millisecond, 2}, {5800 * time.Millisecond, 2}, {200 * time.Millisecond, 3}, {9 * time.Second, 3}, {time.Second, 4}, {time.Minute, 10}} {
			time.Sleep(step.wait)
			synctest.Wait()
			assert.Equal(t, step.want, releases.Load())
		}
		s.shutdown(t)
	})
}

func TestBinaryPagesOfThisProcess(t *testing.T) {
	quietEnv(t)
	said := "Binary pages released"
	if runtime.GOOS != "linux" {
		said = "release_binary_pages has no effect on this system"
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(&Config{Profile: ProfileMinimal}, tree(nil))
		s.start(t)
		defer s.shutdown(t)
		require.NoError(t, s.Ready())
		time.Sleep(releaseDelay)
		synctest.Wait()
		assert.Equal(t, runtime.GOOS == "linux", s.pages.bytes.Load() > 0)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, s.said(said))
	})
}

func TestReleasesAreToldOnChangeOnly(t *testing.T) {
	var unmapped int64
	var fault error
	s := newSubject(&Config{Profile: ProfileMinimal}, tree(nil))
	s.pages.unmap = func() (int64, error) { return unmapped, fault }
	f := func(bytes int64, err error, want ...string) {
		t.Helper()
		unmapped, fault = bytes, err
		s.pages.release()
		var got []string
		for _, line := range s.log.TakeAll() {
			got = append(got, fmt.Sprintf("%s %s %v", line.Level, line.Message, line.ContextMap()["released"]))
		}
		assert.Equal(t, want, got)
		assert.Equal(t, bytes, s.pages.bytes.Load())
	}
	f(40, nil, "info Binary pages released 40")
	f(25, nil)
	f(5, errors.New("locked"), "warn Cannot release all binary pages 5")
	f(4, errors.New("locked elsewhere"))
	f(30, nil, "info All binary pages can be released again 30")
	f(25, nil)

	// The first release fails.
	s.pages.outcome = untried
	f(0, errors.New("no /proc"), "warn Cannot release all binary pages 0")
	f(0, errors.New("no /proc"))
	f(30, nil, "info All binary pages can be released again 30")

	s.pages.outcome = untried
	f(0, errors.ErrUnsupported, "info release_binary_pages has no effect on this system: it needs Linux <nil>")
	f(0, errors.ErrUnsupported)
}
