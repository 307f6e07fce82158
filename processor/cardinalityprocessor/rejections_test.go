// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"bytes"
	"fmt"
	rand "math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/godwit-otel/godwit/internal/handback"
	"github.com/godwit-otel/godwit/internal/racetest"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/moment"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"
	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/series"
)

// values returns a metric's values, by attributes.
func (r *rig) values(name string) map[attribute.Set]int64 {
	all := map[attribute.Set]int64{}
	got, err := r.telemetry.GetMetric("otelcol_processor_cardinality_" + name)
	if err != nil {
		return all // nothing was counted yet
	}
	var points []metricdata.DataPoint[int64]
	switch data := got.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	}
	for _, dp := range points {
		all[dp.Attributes] = dp.Value
	}
	return all
}

// Pages whose rejected series are the same as last time lose the same points without a lookup. Compared with a processor
// that decides about each point, the same passes and the same is counted, whichever limits there are, and however often
// series come, end or expire, and limits change.
func TestWhatIsRefusedAgainIsDecidedAboutAlike(t *testing.T) {
	racetest.Sequential(t)
	again, changed := 0, 0
	for seed := range seeds(t, 48) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			of := newTargetCrowd(t, seed)
			for range 160 {
				of.round()
			}
			of.finish()
			again += of.again
			changed += of.changed
		})
	}
	require.Greater(t, again, 400, "pages whose refusals were known")
	require.Greater(t, changed, 20, "times when others were refused than before")
}

// targetCrowd sends pages of several targets to two processors with the same limits. Each target has a memory for one of
// them; or its page is made anew each time, in parts whose points are known.
type targetCrowd struct {
	t              *testing.T
	random         *rand.Rand
	given          *piped
	lent           []*lender
	start          time.Time
	passed         [2][]byte
	before         map[int]int // by target: points that passed
	again, changed int
	rounds         uint64

	words [][]*handback.Wording // by target and part, if metrics are made anew
}

const refusedTargets, refusedMetrics = 4, 9

func crowding(seed uint64) func(*Config) {
	return func(c *Config) {
		exceed := ExceedConfig{OnExceed: [][]string{{"drop"}, {"sample"}, {"collapse", "overflow"}, {"drop"}}[seed%4], SampleRate: 0.4}
		byMetric := RuleConfig{Name: "metric", MaxSeries: 5 + int(seed%7), GroupBy: []string{"metric"}, Exceed: exceed}
		byTarget := RuleConfig{Name: "target", MaxSeries: 12 + int(seed%11), GroupBy: []string{"service.instance.id"}, Exceed: exceed}
		switch seed % 6 {
		case 0:
			byMetric.LabelLimits = map[string]int{"user": 3}
		case 1:
			byTarget.MaxNewSeriesPerMinute = 5
		case 2:
			byTarget.LabelLimits = map[string]int{"user": 4}
		case 3:
			c.Tenant.From = []string{"resource:service.instance.id"}
			byTarget.GroupBy = []string{"tenant"}
			c.Overrides = map[string]OverrideConfig{"1": {MaxSeries: number(7)}, "2": {Rules: map[string]RuleOverrideConfig{"target": {MaxSeries: number(3)}}}}
		case 4:
			c.Exempt = []MatchConfig{{Metric: "m3"}, {Metric: "m5", Attributes: map[string]string{"user": "u1"}}}
		}
		c.Rules = []RuleConfig{byMetric, byTarget, {Name: "witness", Match: MatchConfig{Attributes: map[string]string{"user": "u5"}}}}
		if seed%5 == 0 {
			c.Mode = policy.ModeDryRun
		}
		c.Statistics.Enabled = seed%2 == 0
	}
}

func newTargetCrowd(t *testing.T, seed uint64) *targetCrowd {
	configure := crowding(seed)
	r := &targetCrowd{t: t, random: rand.New(rand.NewPCG(seed, 13)), given: newPiped(t, configure), before: map[int]int{}}
	lent := newPiped(t, configure)
	r.given.seen = func(md pmetric.Metrics) { r.passed[0] = append(r.passed[0], r.encode(md)...) }
	lent.seen = func(md pmetric.Metrics) { r.passed[1] = append(r.passed[1], r.encode(md)...) }
	r.start = lent.clock
	for i := range refusedTargets {
		l := &lender{piped: lent, shape: pageShape{from: i, gauges: seed%8 == 2}}
		for range refusedMetrics {
			l.shape.users = append(l.shape.users, r.users())
		}
		l.renew()
		l.loan.Seal(i%2 == 0)
		r.lent = append(r.lent, l)
		if seed/2%2 == 1 {
			r.words = append(r.words, newWords())
		}
	}
	return r
}

func newWords() []*handback.Wording { return []*handback.Wording{{}, {Part: 1}} }

func (r *targetCrowd) encode(md pmetric.Metrics) []byte {
	b, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(r.t, err)
	return b
}

func (r *targetCrowd) users() (all []string) {
	for _, i := range r.random.Perm(8)[:1+r.random.IntN(4)] {
		all = append(all, "u"+strconv.Itoa(i))
	}
	return all
}

// happens reports whether something happens that does once in n rounds.
func (r *targetCrowd) happens(n int) bool { return r.random.IntN(n) == 0 }

func (r *targetCrowd) round() {
	at := r.random.IntN(refusedTargets)
	l := r.lent[at]
	if r.happens(14) { // one series is replaced by another
		users := l.shape.users[r.random.IntN(refusedMetrics)]
		if u := "u" + strconv.Itoa(r.random.IntN(8)); !slices.Contains(users, u) {
			users[r.random.IntN(len(users))] = u
			rename(l.md, l.shape)
			l.loan.Forget()
			if r.words != nil {
				r.words[at] = newWords()
			}
			delete(r.before, at)
		}
	}
	if r.happens(30) {
		cfg := *r.given.cfg
		cfg.Rules = slices.Clone(cfg.Rules)
		cfg.Rules[r.random.IntN(2)].MaxSeries += r.random.IntN(5) - 2
		r.given.Apply(&cfg)
		l.Apply(&cfg)
	}
	pause := 0
	switch {
	case r.happens(40):
		pause = series.KeptEpochs + 1
	case r.happens(3):
		pause = 1 + r.random.IntN(2)
	}
	r.given.epochs(pause)
	l.epochs(pause)
	ends := func(int, int) bool { return false }
	if r.happens(12) {
		endsAt := r.random.IntN(30)
		ends = func(metric, i int) bool { return metric*3+i == endsAt }
	}
	r.rounds++
	r.given.clock, l.clock = r.given.clock.Add(time.Second), l.clock.Add(time.Second)
	r.given.err = nil
	if r.happens(12) {
		r.given.err = errBusy
	}
	l.err = r.given.err
	fresh := l.shape.make()
	l.shape.fill(fresh, r.start, l.clock, r.rounds, ends)
	l.shape.fill(l.md, r.start, l.clock, r.rounds, ends)
	r.passed = [2][]byte{}
	came, familiar := l.md.DataPointCount(), l.Familiar.Passed.Load()
	refused := r.send(r.given, fresh)
	switch {
	case r.happens(8): // the same series come in other memory
		other := l.shape.make()
		l.shape.fill(other, r.start, l.clock, r.rounds, ends)
		require.Equal(r.t, refused, r.send(l.piped, other))
	case r.words != nil:
		require.Equal(r.t, refused, r.send(l.piped, l.md, r.words[at]...))
		l.renew()
	default:
		require.Equal(r.t, refused, l.front.ConsumeMetrics(handback.Lend(r.t.Context(), l.loan, l.md), l.md))
		require.True(r.t, refused != nil || slices.Equal(l.points, addresses(l.md)), "all are where they were")
		if refused != nil {
			l.renew()
		}
	}
	require.True(r.t, bytes.Equal(r.passed[0], r.passed[1]), "round %d: what is passed on", r.rounds)
	if refused != nil {
		return
	}
	md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(r.passed[1])
	require.NoError(r.t, err)
	points := md.DataPointCount()
	if was, ok := r.before[at]; ok && was != points {
		r.changed++
	}
	if r.before[at] = points; points < came && l.Familiar.Passed.Load() == familiar+int64(len(l.shape.users)+7)/8 {
		r.again++
	}
	r.requireAlike("rejected_points")
	r.requireAlike("rejected_series")
}

// send sends metrics, in parts if their points are known.
func (r *targetCrowd) send(p *piped, md pmetric.Metrics, words ...*handback.Wording) error {
	if r.words == nil {
		return p.front.ConsumeMetrics(r.t.Context(), md)
	}
	for i, rm := range md.ResourceMetrics().All() {
		part, ctx := pmetric.NewMetrics(), r.t.Context()
		rm.MoveTo(part.ResourceMetrics().AppendEmpty())
		if words != nil {
			loan := new(handback.Loan)
			loan.Know(words[i])
			ctx = handback.Lend(ctx, loan, part)
		}
		if err := p.front.ConsumeMetrics(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (r *targetCrowd) requireAlike(name string) {
	require.Equal(r.t, r.given.values(name), r.lent[0].values(name), "round %d: %s", r.rounds, name)
}

func (r *targetCrowd) finish() {
	lent := r.lent[0]
	require.Equal(r.t, r.given.Points.In.Load(), lent.Points.In.Load())
	require.Equal(r.t, r.given.Points.Passed.Load(), lent.Points.Passed.Load())
	for _, name := range []string{"unaccounted_points", "series", "groups", "admitted_series", "expired_series", "ended_series", "overflow_members", "end_markers"} {
		r.requireAlike(name)
	}
	require.Equal(r.t, flushedTexts(r.t, r.given.rig), flushedTexts(r.t, lent.rig))
}

// refusedPage returns two targets, of which the second has no room for two of its series, which is known. They are the
// only ones that a rule matches.
func refusedPage(t *testing.T, change func(*Config)) (first, second *lender, pass func(*lender) int) {
	t.Helper()
	p := newPiped(t, func(c *Config) {
		c.Rules = []RuleConfig{{Name: "all", MaxSeries: 5}, {Name: "late", Match: MatchConfig{Attributes: map[string]string{"user": "late"}}}}
		change(c)
	})
	p.Apply(p.cfg) // from now on rules can be silent
	passed := 0
	p.seen = func(md pmetric.Metrics) { passed = md.DataPointCount() }
	first = &lender{piped: p, shape: pageShape{from: 1, users: [][]string{{"a", "b"}, {"c"}}}}
	second = &lender{piped: p, shape: pageShape{from: 2, users: [][]string{{"a", "b", "late"}, {"late"}}}}
	pass = func(l *lender) int {
		passed = 0
		l.come(t)
		return passed
	}
	for _, l := range []*lender{first, second} {
		l.renew()
		for range 4 {
			pass(l)
		}
	}
	was := p.Familiar.Passed.Load()
	require.Equal(t, 2, pass(second))
	require.Equal(t, was+1, p.Familiar.Passed.Load())
	return first, second, pass
}

// A place that becomes free is taken with the next page, however it did.
func TestRefusedSeriesTakeTheNextFreePlace(t *testing.T) {
	ends := func(first *lender) {
		first.shape.fill(first.md, first.clock, first.clock, 1, func(metric, _ int) bool { return metric == 1 })
		require.NoError(t, first.front.ConsumeMetrics(handback.Lend(t.Context(), first.loan, first.md), first.md))
	}
	for name, free := range map[string]func(first, second *lender){
		"a series ends": func(first, _ *lender) { ends(first) },
		"a limit is raised": func(first, _ *lender) {
			cfg := *first.cfg
			cfg.Rules = slices.Clone(cfg.Rules)
			cfg.Rules[0].MaxSeries++
			first.Apply(&cfg)
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second, pass := refusedPage(t, func(*Config) {})
			free(first, second)
			require.Equal(t, 3, pass(second))
			for range 3 {
				require.Equal(t, 3, pass(second), "the other one still has none")
			}
		})
	}
	t.Run("a target is gone", func(t *testing.T) {
		_, second, pass := refusedPage(t, func(*Config) {})
		for range series.KeptEpochs + 2 {
			second.epochs(1)
			pass(second)
		}
		require.Equal(t, 4, pass(second))
	})
	t.Run("somebody else was faster", func(t *testing.T) {
		first, second, pass := refusedPage(t, func(*Config) {})
		ends(first)
		require.Equal(t, 3, pass(first), "it comes back")
		require.Equal(t, 2, pass(second))
	})
	t.Run("the same series has got one elsewhere", func(t *testing.T) {
		first, second, pass := refusedPage(t, func(*Config) {})
		ends(first)
		same := second.shape.make()
		second.shape.fill(same, second.clock, second.clock, 1, func(int, int) bool { return false })
		require.NoError(t, second.front.ConsumeMetrics(t.Context(), same))
		require.Equal(t, 3, pass(second))
	})
}

// What is known about refused series is reported like what is found out: to metrics, to the estimate of how many there
// are, and to rules that match nothing else.
func TestKnownRefusalsAreReported(t *testing.T) {
	first, second, pass := refusedPage(t, func(c *Config) { c.IdleTimeout = time.Hour })
	rejected := second.rejected("all", "max_series", "drop")
	epoch := second.cfg.IdleTimeout / moment.IdleEpochs
	for n := range int64(5 * moment.IdleEpochs) {
		require.Equal(t, 2, pass(second))
		require.Equal(t, rejected+2*(n+1), second.rejected("all", "max_series", "drop"))
		require.EqualValues(t, 2, second.gauge("rejected_series", "all"))
		require.Zero(t, second.silence("late"), "it matches refused series only")
		pass(first)
		second.epochs(1)
		require.LessOrEqual(t, second.silence("late"), epoch)
	}
}
