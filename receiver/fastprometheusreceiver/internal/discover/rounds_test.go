// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Members that started at different times apply what they are told at the same moment, soon after, whichever of them
// polled first.
func TestRoundsAreTheSameForAll(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 7 * time.Second, 30 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			changed := begun.Add(3*interval + interval/3)
			ask := func(context.Context) ([]*targetgroup.Group, error) {
				address := model.LabelValue("old:1")
				if !time.Now().Before(changed) {
					address = "new:1"
				}
				return []*targetgroup.Group{{Source: "s", Targets: []model.LabelSet{{model.AddressLabel: address}}}}, nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			moments := map[time.Time]int{}
			told := make(chan time.Time)
			up := make(chan []*targetgroup.Group, 100)
			for i := range 20 {
				r := rounds{job: "job", interval: interval, place: uint64(i) * 0x9e3779b97f4a7c15, ask: ask, members: new(members), tell: func(ctx context.Context, u Update) {
					if u.Groups["job"][0].Targets[0][model.AddressLabel] != "new:1" {
						return
					}
					assert.True(t, time.Now().Equal(u.At), "it is told when it counts")
					select {
					case told <- u.At:
					case <-ctx.Done():
					}
				}}
				go func() {
					time.Sleep(time.Duration(i) * interval / 10)
					r.Run(ctx, up)
				}()
			}
			for range 20 {
				moments[<-told]++
			}
			require.Len(t, moments, 1)
			for at := range moments {
				assert.Less(t, at.Sub(changed), interval+mostAnswering+grid)
				assert.Equal(t, grid/2, at.Sub(at.Truncate(grid)), "scrapes begin at other times")
			}
			cancel()
			synctest.Wait()
		})
	}
}

// The first response is applied at once if the others' next round is far. One that is late, or follows a failure, is
// applied, too.
func TestRoundsOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 20 * time.Second
		var answers []func() ([]*targetgroup.Group, error)
		group := func(address string) []*targetgroup.Group {
			return []*targetgroup.Group{{Source: "s", Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(address)}}}}
		}
		time.Sleep(time.Until(time.Now().Truncate(interval).Add(interval + time.Second)))
		begun := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answers = append(answers,
			func() ([]*targetgroup.Group, error) { return group("a:1"), nil },
			func() ([]*targetgroup.Group, error) { return nil, errors.New("not now") },
			func() ([]*targetgroup.Group, error) { time.Sleep(10 * time.Second); return group("b:1"), nil },
			func() ([]*targetgroup.Group, error) { return nil, nil },
		)
		told := make(chan Update)
		r := rounds{
			job: "job", interval: interval, members: new(members),
			ask: func(context.Context) ([]*targetgroup.Group, error) {
				if len(answers) == 0 {
					return nil, nil
				}
				answer := answers[0]
				answers = answers[1:]
				return answer()
			},
			tell: func(_ context.Context, u Update) { told <- u },
		}
		go r.Run(ctx, make(chan []*targetgroup.Group, 10))
		assert.Equal(t, time.Duration(0), (<-told).At.Sub(begun))
		late := <-told
		assert.Equal(t, 39*time.Second+mostAnswering+grid/2, late.At.Sub(begun), "when it was due")
		assert.Equal(t, 49*time.Second, time.Since(begun))
		require.Len(t, late.Groups["job"], 1)
		cancel()
		synctest.Wait()
	})
}

// Without any response, a member polls again before the next round, because nothing is scraped until then.
func TestRoundsBeginWithAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 5 * time.Minute
		time.Sleep(time.Until(time.Now().Truncate(interval).Add(interval + 20*time.Second)))
		begun := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var asked []time.Duration
		told := make(chan Update)
		r := rounds{
			job: "job", interval: interval, members: new(members),
			ask: func(context.Context) ([]*targetgroup.Group, error) {
				asked = append(asked, time.Since(begun).Round(time.Second))
				if len(asked) == 4 {
					return []*targetgroup.Group{{Source: "s"}}, nil
				}
				return nil, errors.New("not now") // later failures can wait for the next round
			},
			tell: func(_ context.Context, u Update) { told <- u },
		}
		go r.Run(ctx, make(chan []*targetgroup.Group, 10))
		assert.Equal(t, 7*time.Second, (<-told).At.Sub(begun))
		time.Sleep(2 * interval)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, interval - 20*time.Second, 2*interval - 20*time.Second}, asked)
		cancel()
		synctest.Wait()
	})
}

// The same for a poll because a member has gone, whose targets are not scraped until then. The result is not applied
// before the others apply it.
func TestExtraRoundsEndWithAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 5 * time.Minute
		time.Sleep(time.Until(time.Now().Truncate(interval).Add(interval + 20*time.Second)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fails := 0
		told := make(chan Update, 10)
		r := rounds{
			job: "job", interval: interval, members: new(members),
			ask: func(context.Context) ([]*targetgroup.Group, error) {
				if fails > 0 {
					fails--
					return nil, errors.New("not now")
				}
				now := model.LabelValue(time.Now().String())
				return []*targetgroup.Group{{Source: "s", Targets: []model.LabelSet{{model.AddressLabel: now}}}}, nil
			},
			tell: func(_ context.Context, u Update) { told <- u },
		}
		go r.Run(ctx, make(chan []*targetgroup.Group, 10))
		<-told
		for failures, want := range []time.Duration{2 * time.Second, 2 * time.Second, 3 * time.Second, 7 * time.Second} {
			time.Sleep(time.Until(time.Now().Truncate(mostBetweenLooks).Add(mostBetweenLooks)))
			begun := time.Now()
			fails = failures
			time.Sleep(mostBetweenLooks / 4) // as long as it takes until they see it
			r.members.call(call{others, begun})
			assert.Equal(t, want, (<-told).At.Sub(begun).Truncate(time.Second), failures)
		}
		cancel()
		synctest.Wait()
	})
}

// A clock that is set back or forward between a poll and its response delays nobody.
func TestRoundsOutliveAClockThatIsSet(t *testing.T) {
	r := rounds{interval: 30 * time.Second, place: 7}
	now := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	next := r.next(now)
	asked, at := next.asked, next.at
	require.Equal(t, at.Sub(asked)-time.Second, untilTaken(asked, at, asked.Add(time.Second)))
	for _, set := range []time.Duration{-24 * time.Hour, -time.Minute, time.Minute, 24 * time.Hour} {
		called := r.outOfTurn(call{others, time.Now().Add(-set)})
		require.LessOrEqual(t, untilTaken(called.asked, called.at, time.Now()), mostBetweenLooks, set)
		require.LessOrEqual(t, untilTaken(asked, at, asked.Add(set)), mostAnswering+grid, set)
	}
}
