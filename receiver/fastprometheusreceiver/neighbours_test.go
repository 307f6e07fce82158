// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/multierr"
)

// A pipeline handles the metrics of a fleet as a test wants it to.
type pipeline struct {
	consume func(ctx context.Context, instance string) error

	mu     sync.Mutex
	got    map[string]int // accepted scrapes, by instance
	inside atomic.Int64   // calls that have not returned
}

func (*pipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p *pipeline) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	p.inside.Add(1)
	defer p.inside.Add(-1)
	id, _ := md.ResourceMetrics().At(0).Resource().Attributes().Get("service.instance.id")
	instance := strings.Clone(id.Str())
	err := p.consume(ctx, instance)
	if err == nil {
		p.take(instance)
	}
	return err
}

func (p *pipeline) take(instance string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.got == nil {
		p.got = map[string]int{}
	}
	p.got[instance]++
}

func (p *pipeline) total() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.got {
		n += k
	}
	return n
}

func (p *pipeline) of(target int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got[fleetAddress(target)]
}

// scene has targets of a fleet that are scraped at an interval, each at its own offset.
type scene struct {
	targets  int
	interval time.Duration
	options  string
	paths    paths
	most     int64 // memory for scrapes that wait in the pipeline; 0 leaves the default
	fleet    fleet
}

// launch starts a receiver, and resets the counters when it knows its targets. It returns at a time when no scrape
// begins, so that each target has the same number of scrapes in each interval from then on.
func (s *scene) launch(t *testing.T, next *pipeline) *rig {
	t.Helper()
	s.fleet.latency = max(s.fleet.latency, time.Millisecond)
	var list strings.Builder
	for i := range s.targets {
		fmt.Fprintf(&list, "     - %s\n", fleetAddress(i))
	}
	text := fmt.Sprintf("%s\nconfig:\n scrape_configs:\n - job_name: fleet\n   scrape_interval: %[2]s\n   scrape_timeout: %[2]s\n   static_configs:\n   - targets:\n%s",
		s.options, s.interval, list.String())
	r := prepare(t, configure(t, text), withConsumer(next), withoutTraces)
	r.dial = s.fleet.dial
	r.behind = func(component.Host, component.ID) paths { return s.paths }
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	if s.most > 0 {
		r.backlog.most = s.most
	}
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	for states := r.census(); states[stateUnknown]+states[stateHealthy]+states[stateFailing] < s.targets; states = r.census() {
		time.Sleep(time.Millisecond)
	}
	const grid = 100 * time.Millisecond // no finer than that of the interval
	time.Sleep(grid - time.Duration(time.Now().UnixNano())%grid + 9*grid/10)
	synctest.Wait()
	r.counters.scrapes.Store(0)
	r.out.refusals.scrapes.Store(0)
	for i := range r.skips.counts {
		r.skips.counts[i].Store(0)
	}
	for _, target := range r.allJobs()[0].all() {
		target.skipped.Store(0)
		target.refused.Store(0)
	}
	next.mu.Lock()
	clear(next.got)
	next.mu.Unlock()
	return r
}

// due returns how many scrapes there are in the given number of intervals.
func (s *scene) due(intervals int) int { return s.targets * intervals }

// accounted returns how many scrapes were made or skipped, and how many have just begun or may still be made up for.
func (r *rig) accounted() (sure, open int) {
	for _, j := range r.allJobs() {
		for _, t := range j.all() {
			if phase(t.phase.Load()) != phaseIdle {
				open++
			}
		}
	}
	return int(r.counters.scrapes.Load() + r.skips.total()), open
}

func taking(context.Context, string) error { return nil }

// A target whose metrics are refused, in whichever way, does not affect the others.
func TestNeighboursOfARefusedTarget(t *testing.T) {
	bad := fleetAddress(0)
	for name, err := range map[string]error{
		"plain":     errors.New("failed to execute statement: cannot parse"),
		"permanent": consumererror.NewPermanent(errors.New("bad data")),
		"joined":    errors.Join(errors.New("bad"), errors.New("data")),
		"limited":   errLimited,
	} {
		for _, behind := range []paths{{}, {1, 1}, {2, 2}} {
			t.Run(fmt.Sprint(name, " ", behind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := scene{targets: 30, interval: 5 * time.Second, paths: behind}
					p := &pipeline{consume: func(_ context.Context, instance string) error {
						if instance == bad {
							return err
						}
						return nil
					}}
					r := s.launch(t, p)
					time.Sleep(20 * s.interval)
					assert.Equal(t, 29*20, p.total())
					for i := 1; i < s.targets; i++ {
						assert.Equal(t, 20, p.of(i), i)
					}
					assert.Equal(t, int64(20), r.out.refusals.scrapes.Load())
					assert.Zero(t, r.skips.total())
					lines := r.log.FilterMessage("The pipeline refuses the metrics of a target").All()
					require.Len(t, lines, 1)
					assert.Contains(t, lines[0].ContextMap()["target"], bad)
					for _, target := range r.inspectTargets().Jobs[0].Targets {
						want := int64(0)
						if strings.Contains(target.URL, bad) {
							want = 20
						}
						assert.Equal(t, want, target.Refused)
					}
				})
			})
		}
	}
}

// If one of two pipelines refuses everything, the other one is not affected, whatever is known about them.
func TestNeighboursOfARefusingPipeline(t *testing.T) {
	for _, behind := range []paths{{}, {1, 2}, {2, 2}, {2, 3}} {
		for _, err := range []error{errFull, errLimited} {
			if behind.pipelines == 1 && errors.Is(err, errLimited) {
				continue // the limiter comes before both exporters
			}
			synctest.Test(t, func(t *testing.T) {
				s := scene{targets: 100, interval: 10 * time.Second, paths: behind}
				p := &pipeline{}
				p.consume = func(_ context.Context, instance string) error {
					p.take(instance) // the other pipeline
					return err
				}
				r := s.launch(t, p)
				time.Sleep(20 * s.interval)
				assert.Equal(t, s.due(20), p.total(), behind)
				assert.Equal(t, int64(s.due(20)), r.out.refusals.scrapes.Load())
				assert.Zero(t, r.skips.total())
				assert.Equal(t, 1, r.log.FilterMessageSnippet("refuses the metrics of all targets").Len())
				assert.LessOrEqual(t, r.log.Len(), evidence, "not a line for each")
			})
		}
	}
}

// A pipeline that is known to refuse everything stops scrapes. When it accepts metrics again, all targets are scraped
// at once.
func TestPipelineThatRefuses(t *testing.T) {
	for behind, err := range map[paths]error{
		{1, 1}: errFull,
		{1, 2}: errLimited,
		{2, 3}: multierr.Append(errLimited, errLimited),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := scene{targets: 200, interval: 10 * time.Second, paths: behind}
			var refusing atomic.Bool
			p := &pipeline{consume: func(context.Context, string) error {
				if refusing.Load() {
					return err
				}
				return nil
			}}
			r := s.launch(t, p)
			time.Sleep(2 * s.interval)
			require.Equal(t, s.due(2), p.total())

			refusing.Store(true)
			time.Sleep(2 * s.interval)
			before := r.counters.scrapes.Load()
			const minutes = 5
			time.Sleep(minutes * time.Minute)
			made := r.counters.scrapes.Load() - before
			assert.Less(t, made, int64(2*minutes*60), "about one each second")
			assert.Greater(t, made, int64(minutes*60/3))
			assert.Equal(t, r.skips.total(), r.skips.counts[skipRefused].Load())
			sure, _ := r.accounted()
			assert.Equal(t, s.due(4+minutes*6), sure)

			refusing.Store(false)
			time.Sleep(2 * s.interval) // during which a probe is accepted
			taken := p.total()
			time.Sleep(s.interval)
			assert.Equal(t, s.due(1), p.total()-taken)
			assert.Equal(t, 1, r.log.FilterMessage("The pipeline accepts metrics again").Len())
			assert.Equal(t, 1, r.log.FilterMessageSnippet("scraping about one target per second").Len())
			assert.LessOrEqual(t, r.log.Len(), 3+2*refusalLines, "one says of reuse")
		})
	}
}

// A pipeline may be slow. As long as there is memory for the scrapes that wait in it, none is lost.
func TestSlowPipelineTakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scene{targets: 200, interval: 2 * time.Second}
		p := &pipeline{consume: func(context.Context, string) error {
			time.Sleep(1500 * time.Millisecond)
			return nil
		}}
		r := s.launch(t, p)
		time.Sleep(20*s.interval + 1500*time.Millisecond)
		assert.GreaterOrEqual(t, p.total(), s.due(20))
		assert.Zero(t, r.skips.total())
		assert.Zero(t, r.out.refusals.scrapes.Load())
	})
}

// A pipeline that takes longer than the interval is fully used, and skipped scrapes are counted.
func TestPipelineSlowerThanTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scene{targets: 200, interval: 2 * time.Second}
		p := &pipeline{consume: func(context.Context, string) error {
			time.Sleep(5 * time.Second)
			return nil
		}}
		r := s.launch(t, p)
		const intervals = 50
		time.Sleep(intervals * s.interval)
		assert.InEpsilon(t, s.targets*intervals*2/5, p.total(), 0.1, "each target's metrics are always in the pipeline")
		sure, open := r.accounted()
		assert.InDelta(t, s.due(intervals), sure, float64(open))
		assert.Equal(t, r.skips.total(), r.skips.counts[skipPipeline].Load())
		assert.Equal(t, 1, r.log.FilterMessageSnippet("the pipeline takes longer for metrics").Len())
		for _, target := range r.inspectTargets().Jobs[0].Targets {
			assert.Positive(t, target.Skipped)
		}
	})
}

// A pipeline blocks for a minute: memory stays within its limit, every skipped scrape is counted meanwhile, and there
// is no rush afterwards.
func TestPipelineThatBlocksForAMinute(t *testing.T) {
	for name, most := range map[string]int64{"room for all": 1 << 30, "room for some": 50 * scrapeWeight} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scene{targets: 200, interval: 10 * time.Second, most: most}
				s.fleet.latency = fleetLatency
				blocked := make(chan struct{})
				var blocks atomic.Bool
				p := &pipeline{consume: func(context.Context, string) error {
					if blocks.Load() {
						<-blocked
					}
					return nil
				}}
				r := s.launch(t, p)
				time.Sleep(2*s.interval + s.interval/200)
				usual := s.fleet.most.Load()
				taken := p.total()

				blocks.Store(true)
				for minute := time.Now().Add(time.Minute); time.Now().Before(minute); time.Sleep(s.interval) {
					assert.LessOrEqual(t, r.backlog.held.Load(), most)
				}
				lost := int(r.skips.total())
				if name == "room for all" {
					assert.Equal(t, int64(s.targets), p.inside.Load())
					assert.GreaterOrEqual(t, lost, s.due(4)-s.targets/10)
				} else {
					assert.Positive(t, r.skips.counts[skipBacklog].Load())
					assert.GreaterOrEqual(t, lost, s.due(3))
				}
				s.fleet.most.Store(0)
				blocks.Store(false)
				close(blocked)
				time.Sleep(3 * s.interval)
				assert.LessOrEqual(t, s.fleet.most.Load(), 4*usual, "they do not all ask their targets at once")
				assert.Zero(t, r.backlog.held.Load())
				sure, open := r.accounted()
				assert.InDelta(t, s.due(11), sure, float64(open+s.targets/50))
				assert.InDelta(t, s.due(11)-int(r.skips.total()), p.total(), float64(open))
				assert.Greater(t, p.total()-taken, s.due(3)-s.targets/10)
				time.Sleep(2 * calm)
				for _, line := range r.log.FilterMessage("No more scrapes are skipped").All() {
					t.Log(line.ContextMap())
				}
				assert.Equal(t, r.log.FilterMessageSnippet("Skipping scrapes").Len(), r.log.FilterMessage("No more scrapes are skipped").Len())
				assert.LessOrEqual(t, r.log.Len(), 2*int(skipKinds))
			})
		})
	}
}

// With little memory, the targets share what the pipeline accepts.
func TestLittleRoomIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scene{targets: 100, interval: 10 * time.Second, most: 20 * scrapeWeight}
		p := &pipeline{consume: func(context.Context, string) error {
			time.Sleep(3 * time.Second)
			return nil
		}}
		r := s.launch(t, p)
		const intervals = 40
		time.Sleep(intervals * s.interval)
		sure, open := r.accounted()
		assert.InDelta(t, s.due(intervals), sure, float64(open))
		mean := p.total() / s.targets
		assert.Greater(t, mean, intervals/4)
		for i := range s.targets {
			assert.Greater(t, p.of(i), mean/4, i)
		}
		assert.Equal(t, r.skips.total(), r.skips.counts[skipBacklog].Load())
	})
}

// Targets that do not respond, or only just, do not affect the others. Even if all slots are taken by them, the others
// get their turn.
func TestNeighboursOfTargetsThatHang(t *testing.T) {
	for _, limit := range []int{0, 10} {
		synctest.Test(t, func(t *testing.T) {
			s := scene{targets: 100, interval: 10 * time.Second, options: fmt.Sprintf("max_concurrent_scrapes: %d", limit)}
			hanging := map[string]bool{}
			for i := range 20 {
				hanging[fleetAddress(i)] = true
			}
			s.fleet.answers = func(address string) time.Duration {
				if hanging[address] {
					return time.Hour
				}
				return fleetLatency
			}
			p := &pipeline{consume: taking}
			r := s.launch(t, p)
			const intervals = 30
			time.Sleep(intervals * s.interval)
			sure, open := r.accounted()
			assert.InDelta(t, s.due(intervals), sure, float64(open+s.targets))
			if limit == 0 {
				for i := 20; i < s.targets; i++ {
					assert.Equal(t, intervals, p.of(i))
				}
				assert.Zero(t, r.skips.total(), "each has failed by its next tick")
				return
			}
			assert.Equal(t, r.skips.total(), r.skips.counts[skipConcurrency].Load())
			for i := 20; i < s.targets; i++ {
				assert.Greater(t, p.of(i), intervals/3)
			}
		})
	}
}

// However the pipeline fails, Shutdown returns.
func TestShutdownWhileThePipelineFails(t *testing.T) {
	for name, test := range map[string]struct {
		consume func(ctx context.Context, instance string) error
		most    time.Duration
	}{
		"refuses":   {func(context.Context, string) error { return errFull }, 0},
		"is slow":   {func(context.Context, string) error { time.Sleep(1500 * time.Millisecond); return nil }, 1500 * time.Millisecond},
		"blocks":    {func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }, lastWait},
		"is stuck":  {func(context.Context, string) error { time.Sleep(time.Hour); return nil }, lastWait + giveUpWait},
		"takes all": {taking, 0},
	} {
		for _, options := range []string{"", "scrape_on_shutdown: true", "max_concurrent_scrapes: 3"} {
			for _, most := range []int64{1 << 30, 10 * scrapeWeight} {
				t.Run(fmt.Sprint(name, " ", options, " ", most), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := scene{targets: 50, interval: 10 * time.Second, most: most, options: options}
						s.fleet.latency = fleetLatency
						p := &pipeline{consume: test.consume}
						r := s.launch(t, p)
						time.Sleep(2 * s.interval)
						asked := time.Now()
						require.NoError(t, r.Shutdown(t.Context()))
						limit := test.most
						if options == "scrape_on_shutdown: true" {
							limit = max(limit, lastWait+giveUpWait)
						}
						assert.LessOrEqual(t, time.Since(asked), limit)
						time.Sleep(2 * time.Hour) // until the last of the stuck calls has returned
						synctest.Wait()
						assert.Zero(t, p.inside.Load())
						assert.Zero(t, s.fleet.open.Load())
					})
				})
			}
		}
	}
}
