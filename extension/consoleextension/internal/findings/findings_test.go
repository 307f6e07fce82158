// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/service"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// subject finds problems in a test's world.
type subject struct{ *consoletest.World }

func open(t *testing.T) *subject {
	t.Helper()
	return &subject{consoletest.New(t)}
}

func (s *subject) findings() (titles []string, all []Finding) {
	s.T.Helper()
	facts := Facts{Sources: s.Sources.All(), Span: s.Meter.Look(), Graph: s.Service.Graph(), Statuses: map[string]service.Status{}}
	facts.Process = facts.Span.Process()
	for _, id := range facts.Graph.Order {
		facts.Statuses[id] = s.Service.Status(id)
	}
	for _, of := range facts.Sources {
		if of.Runtime != nil {
			r := of.Runtime()
			facts.Process.Runtime = &r
		}
	}
	all = Of(&facts)
	for _, f := range all {
		titles = append(titles, f.Severity+": "+f.Title)
		require.NotEmpty(s.T, f.Next, "what to do")
		require.NotNil(s.T, f.Query)
	}
	return titles, all
}

func TestNothingIsWrong(t *testing.T) {
	s := open(t)
	s.Configure(consoletest.Pipelines)
	s.Counter(component.KindReceiver, "fastprometheus")
	titles, _ := s.findings()
	require.Empty(t, titles)
}

func TestFailingTargetsAreGroupedByWhatIsWrong(t *testing.T) {
	s := open(t)
	s.Register(consoletest.Scraped(1000))
	titles, all := s.findings()
	require.Equal(t, []string{"error: 10 of 1,000 targets fail: connection refused"}, titles)
	require.Equal(t, map[string]string{"state": "failing", "reason": "connection_refused", "receiver": "fastprometheus"}, all[0].Query)
	require.Equal(t, "targets", all[0].View)
	require.Regexp(t, "^Job node: .*connect: connection refused$", all[0].Detail)
	require.Equal(t, "failing", Health(all))
}

// A receiver without scrapes has a problem, unless it has just started or other members have the targets.
func TestNoTargets(t *testing.T) {
	s := open(t)
	states := map[string]int{inspect.Healthy: 0, inspect.Failing: 0}
	s.Register(inspect.Source{
		Kind: component.KindReceiver, ID: consoletest.ID("fastprometheus"),
		Flow:    func() inspect.Flow { return inspect.Flow{Targets: maps.Clone(states)} },
		Targets: func() inspect.Targets { return inspect.Targets{Jobs: []inspect.Job{{Name: "node"}}} },
	})
	titles, _ := s.findings()
	require.Empty(t, titles, "discovery takes a while")
	s.Clock.Pass(discoveryTime)
	titles, all := s.findings()
	require.Equal(t, []string{"warning: fastprometheus has no targets: nothing is scraped"}, titles)
	require.Equal(t, map[string]string{"receiver": "fastprometheus"}, all[0].Query)
	states[meter.Dropped] = 3
	_, all = s.findings()
	require.Contains(t, all[0].Detail, "found 3 targets, and relabelling drops all")
	require.Equal(t, map[string]string{"receiver": "fastprometheus", "state": "dropped"}, all[0].Query)
	for _, elsewhere := range []string{"elsewhere", inspect.Unknown, inspect.Healthy} {
		states[elsewhere] = 1
		titles, _ = s.findings()
		require.Empty(t, titles, elsewhere)
		states[elsewhere] = 0
	}
}

func TestLosses(t *testing.T) {
	s := open(t)
	s.Configure(consoletest.Pipelines)
	exporter := s.Counter(component.KindExporter, "remotewrite")
	exporter.Flow.Dropped = map[string]int64{"rejected": 10, "queue_full": 5}
	for range 2 {
		s.Pass()
	}
	exporter.Flow.Dropped = map[string]int64{"rejected": 210, "queue_full": 5, "unheard_of": 0}
	s.Clock.Pass(meter.Interval)
	titles, _ := s.findings()
	require.Equal(t, []string{
		"error: remotewrite is losing data: 10/s, rejected",
		"warning: remotewrite has lost 5 since it started: queue full",
	}, titles)
}

func TestRefusals(t *testing.T) {
	s := open(t)
	s.Configure(consoletest.Pipelines)
	receiver := s.Counter(component.KindReceiver, "fastprometheus")
	s.Pass()
	receiver.Flow.Refused = 3
	s.Clock.Pass(meter.Interval)
	titles, all := s.findings()
	require.Equal(t, []string{"error: The pipeline refuses data of fastprometheus"}, titles)
	require.Contains(t, all[0].Next, "memory_limiter refuses")
}

// Before there are two readings it is unknown whether it still refuses: earlier losses are reported nevertheless.
func TestRefusalsOfTheFirstMomentAreSaid(t *testing.T) {
	s := open(t)
	s.Configure(consoletest.Pipelines)
	receiver := s.Counter(component.KindReceiver, "fastprometheus")
	receiver.Flow.Refused, receiver.Flow.Dropped = 3, map[string]int64{inspect.ReasonRefused: 300}
	titles, all := s.findings()
	require.Equal(t, []string{"warning: fastprometheus has lost 300 since it started: refused"}, titles)
	require.Equal(t, "Whether more is lost now is known in a moment.", all[0].Detail)
	s.Pass()
	receiver.Flow.Refused, receiver.Flow.Dropped = 6, map[string]int64{inspect.ReasonRefused: 600}
	s.Clock.Pass(meter.Interval)
	titles, _ = s.findings()
	require.Equal(t, []string{"error: The pipeline refuses data of fastprometheus"}, titles)
}

// A scrape cannot be repeated; a client can send its data again.
func TestRefusalsAreLossesWhereNothingComesAgain(t *testing.T) {
	f := func(s inspect.Source, want, detail string) {
		t.Helper()
		c := open(t)
		var flow inspect.Flow
		s.Kind, s.ID, s.Flow = component.KindReceiver, consoletest.ID("r"), func() inspect.Flow { return flow }
		c.Register(s)
		c.Clock.Pass(meter.Interval)
		c.Meter.Look()
		flow.Refused = 3
		c.Clock.Pass(meter.Interval)
		titles, all := c.findings()
		require.Equal(t, []string{want}, titles)
		require.Contains(t, all[0].Detail, detail)
	}
	f(inspect.Source{Targets: func() inspect.Targets { return inspect.Targets{} }}, "error: Scrapes of r are lost: the pipeline refuses them", "3 in the last 20 s")
	f(inspect.Source{Intake: func() inspect.Intake { return inspect.Intake{} }}, "error: The pipeline refuses data of r", "Clients are told to send again")
}

func TestRequestsThatAreSentInVain(t *testing.T) {
	s := open(t)
	flow := inspect.Flow{Failed: map[string]int64{"400": 5}}
	s.Register(inspect.Source{
		Kind: component.KindReceiver, ID: consoletest.ID("remotewrite"), Flow: func() inspect.Flow { return flow },
		Intake: func() inspect.Intake {
			return inspect.Intake{Last: inspect.Fault{Text: "answered 415 to 10.0.0.7: no such type"}}
		},
	})
	s.Pass()
	s.Clock.Pass(2 * meter.MostAge)
	titles, _ := s.findings()
	require.Empty(t, titles, "long ago")
	s.Meter.Look()
	flow.Failed = map[string]int64{"400": 5, "415": 2, "503": 7}
	s.Clock.Pass(meter.Interval)
	titles, all := s.findings()
	require.Equal(t, []string{"error: remotewrite refuses requests of clients: 2 requests in the last 10 s"}, titles)
	require.Equal(t, "The last one was answered 415 to 10.0.0.7: no such type", all[0].Detail)
	require.Equal(t, viewDelivery, all[0].View)
}

func TestAMemoryLimiterThatRefuses(t *testing.T) {
	s := open(t)
	s.Configure(consoletest.Pipelines)
	limiter := componentstatus.NewInstanceID(consoletest.ID("memory_limiter"), component.KindProcessor)
	refuses := componentstatus.NewRecoverableErrorEvent(errors.New("data refused due to high memory usage"))
	s.Service.Changed(limiter, refuses)
	titles, all := s.findings()
	require.Equal(t, []string{"error: memory_limiter refuses all data: memory is short"}, titles)
	require.Equal(t, "Whatever is scraped meanwhile is lost, and clients are told to send again.", all[0].Detail)
	s.Register(inspect.Source{
		Kind: component.KindExtension, ID: consoletest.ID("runtimeprofile"), Runtime: func() inspect.Runtime { return inspect.Runtime{LimiterSoft: 384 << 20} },
	})
	_, all = s.findings()
	require.Contains(t, all[0].Detail, "from 384 MiB of heap on")
	receiver := s.Counter(component.KindReceiver, "fastprometheus")
	s.Clock.Pass(meter.Interval)
	receiver.Flow.Refused = 3
	titles, all = s.findings()
	require.Equal(t, "error: memory_limiter refuses all data: memory is short", titles[0])
	require.Equal(t, "error: The pipeline refuses data of fastprometheus", titles[1])
	require.Equal(t, "It is memory_limiter that refuses: see there.", all[1].Next)
	s.Service.Changed(limiter, componentstatus.NewEvent(componentstatus.StatusOK))
	s.Clock.Pass(2 * meter.MostAge)
	titles, _ = s.findings()
	require.Empty(t, titles)
}

func TestDeliveryThatStops(t *testing.T) {
	f := func(d inspect.Destination, want ...string) {
		t.Helper()
		s := open(t)
		d.Name = "http://mimir"
		if !d.ThrottledUntil.IsZero() {
			d.ThrottledUntil = s.Clock.Now().Add(30 * time.Second)
		}
		s.Register(inspect.Source{
			Kind: component.KindExporter, ID: consoletest.ID("remotewrite"),
			Delivery: func() inspect.Delivery { return inspect.Delivery{Destinations: []inspect.Destination{d}} },
		})
		titles, _ := s.findings()
		require.Equal(t, want, titles)
	}
	f(inspect.Destination{Queue: inspect.Queue{Bytes: 10, Capacity: 100, Unit: "bytes", Age: time.Second}})
	f(inspect.Destination{BreakerOpen: true}, "error: remotewrite sends nothing to http://mimir: the circuit breaker is open")
	f(inspect.Destination{ThrottledUntil: time.Unix(1, 0)}, "warning: http://mimir accepts nothing for another 30 s")
	f(inspect.Destination{Queue: inspect.Queue{Bytes: 85, Capacity: 100, Unit: "bytes"}}, "warning: The queue of remotewrite to http://mimir is 85% full")
	full := inspect.Queue{Items: 100, Capacity: 100, Unit: "requests"}
	f(inspect.Destination{Queue: full}, "error: The queue of remotewrite to http://mimir is full")
	f(inspect.Destination{Queue: full, BreakerOpen: true}, "error: remotewrite sends nothing to http://mimir: the circuit breaker is open")
	f(inspect.Destination{Queue: inspect.Queue{Age: 2 * time.Minute}}, "warning: Data of remotewrite for http://mimir waits for 2m0s")
	f(inspect.Destination{Queue: inspect.Queue{Age: 20 * time.Second}})
	f(inspect.Destination{Queue: inspect.Queue{Age: 20 * time.Second}, LastError: "answered 429 Too Many Requests"},
		"warning: http://mimir does not accept data from remotewrite, for 20s")
}

// An exporter that refuses is named as the cause of what its receiver cannot pass on.
func TestAFullQueueIsFoundFromBothEnds(t *testing.T) {
	s := open(t)
	s.Configure(consoletest.Pipelines)
	var in, out inspect.Flow
	to := inspect.Destination{Name: "http://mimir", LastError: "answered 503", Queue: inspect.Queue{Bytes: 90, Capacity: 100, Unit: "bytes"}}
	s.Register(inspect.Source{
		Kind: component.KindReceiver, ID: consoletest.ID("fastprometheus"), Flow: func() inspect.Flow { return in },
		Targets: func() inspect.Targets { return inspect.Targets{} },
	})
	s.Register(inspect.Source{
		Kind: component.KindExporter, ID: consoletest.ID("remotewrite"), Flow: func() inspect.Flow { return out },
		Delivery: func() inspect.Delivery { return inspect.Delivery{Destinations: []inspect.Destination{to}} },
	})
	s.Pass()
	in.Refused, out.Refused = 3, 3
	s.Clock.Pass(meter.Interval)
	titles, all := s.findings()
	require.Equal(t, []string{
		"error: The queue of remotewrite to http://mimir is full",
		"error: Scrapes of fastprometheus are lost: the pipeline refuses them",
	}, titles)
	require.Equal(t, "answered 503. Its queue is full: new data is refused or dropped.", all[0].Detail)
	require.Contains(t, all[0].Next, "See the destination's own log")
	require.Equal(t, "The queue of remotewrite is full: see there.", all[1].Next)
	to.Queue.Bytes = 0
	titles, _ = s.findings()
	require.Contains(t, titles, "error: remotewrite refuses data", "whatever for")
}

func TestLimitsThatAreReached(t *testing.T) {
	worst := inspect.Top{Rows: []inspect.Row{
		{Name: "user_id", Values: inspect.Estimate{Value: 120000}}, {Name: "page", Values: inspect.Estimate{Value: 40}},
	}}
	f := func(o inspect.CardinalityOverview, want ...string) {
		t.Helper()
		s := open(t)
		s.Register(inspect.Source{Kind: component.KindProcessor, ID: consoletest.ID("cardinality"), Cardinality: consoletest.Cardinality{Now: o, Rows: worst}})
		titles, _ := s.findings()
		require.Equal(t, want, titles)
	}
	full := []inspect.Limit{{Rule: "r", What: "series", Max: 10, Used: 10, Rejected: inspect.Estimate{Value: 5}}, {Rule: "free", Max: 10, Used: 9}}
	f(inspect.CardinalityOverview{Mode: "enforce", Limits: full, Rejects: []inspect.Reject{{Rule: "r", Metric: "sales"}}},
		"warning: Rule r is at its limit: 10 of 10 series: label user_id of sales has about 120k values")
	f(inspect.CardinalityOverview{Mode: "enforce", Limits: full}, "warning: Rule r is at its limit: 10 of 10 series")
	f(inspect.CardinalityOverview{Mode: "dry_run", Limits: full}, "info: Rule r is at its limit: 10 of 10 series")
	values := []inspect.Limit{{Rule: "r", What: "values of a label", Label: "page", Max: 10, Used: 10}}
	f(inspect.CardinalityOverview{Limits: values}, "warning: Rule r is at its limit: 10 of 10 values of a label: label page")
	f(inspect.CardinalityOverview{Limits: values, Rejects: []inspect.Reject{{Rule: "r", Metric: "sales"}}},
		"warning: Rule r is at its limit: 10 of 10 values of a label: label page of sales has about 40 values")
	f(inspect.CardinalityOverview{Series: 7, MaxSeries: 7}, "error: cardinality is full: 7 series of 7")
	f(inspect.CardinalityOverview{Mode: "dry_run", Series: 7, MaxSeries: 7}, "info: cardinality is full: 7 series of 7")
	f(inspect.CardinalityOverview{RulesFault: "line 3"}, "error: The rules file of cardinality cannot be used: earlier rules are in force")
}

// For a metric whose series are rejected, the number of values of a label is hardly known: labels that differ in the
// examples are named.
func TestCulpritsAreSeenAndNotGuessed(t *testing.T) {
	reject := func(ring string) inspect.Reject {
		return inspect.Reject{Rule: "r", Metric: "goose", Labels: []inspect.Label{{Name: "instance", Value: ring}, {Name: "ring", Value: ring}, {Name: "sex", Value: "f"}}}
	}
	o := inspect.CardinalityOverview{
		Limits:  []inspect.Limit{{Rule: "r", What: "series", Max: 10, Used: 10}},
		Rejects: []inspect.Reject{reject("1"), reject("2"), reject("3")},
	}
	for text, values := range map[string]inspect.Estimate{
		"label ring of goose":                      {Value: 3, Error: 3.74},
		"label ring of goose has about 12k values": {Value: 12_000, Error: 200},
	} {
		s := open(t)
		s.Register(inspect.Source{Kind: component.KindProcessor, ID: consoletest.ID("cardinality"), Cardinality: consoletest.Cardinality{
			Now: o, Rows: inspect.Top{Rows: []inspect.Row{{Name: "sex", Values: inspect.Estimate{Value: 20_000}}, {Name: "ring", Values: values}}},
		}})
		titles, _ := s.findings()
		require.Equal(t, []string{"warning: Rule r is at its limit: 10 of 10 series: " + text}, titles)
	}
}

func TestOfManyLimitsOnlySomeAreExplained(t *testing.T) {
	var o inspect.CardinalityOverview
	for i := range 1000 {
		rule := fmt.Sprintf("r%03d", i)
		o.Limits = append(o.Limits, inspect.Limit{Rule: rule, What: "series", Max: 10, Used: 10})
		o.Rejects = append(o.Rejects, inspect.Reject{Rule: rule, Metric: "m"})
	}
	asked := 0
	s := open(t)
	s.Register(inspect.Source{
		Kind: component.KindProcessor, ID: consoletest.ID("cardinality"), Cardinality: consoletest.Cardinality{Now: o, Slow: func() { asked++ }},
	})
	titles, _ := s.findings()
	require.Len(t, titles, maxFindings)
	require.Equal(t, "warning: Rule r049 is at its limit: 10 of 10 series", titles[maxFindings-1])
	require.LessOrEqual(t, asked, maxFindings+1)
}

func TestLabelsThatLookLikeIDs(t *testing.T) {
	s := open(t)
	rows := []inspect.Row{
		{Name: "session", IDLike: true, Values: inspect.Estimate{Value: 5000}, Series: inspect.Estimate{Value: 5100}},
		{Name: "instance", Values: inspect.Estimate{Value: 4000}},
		{Name: "service.instance.id", IDLike: true, Values: inspect.Estimate{Value: 9000}}, // needed for joins
		{Name: "small", IDLike: true, Values: inspect.Estimate{Value: 60}},
	}
	s.Register(inspect.Source{
		Kind: component.KindProcessor, ID: consoletest.ID("cardinality"), Cardinality: consoletest.Cardinality{Rows: inspect.Top{Total: 6000, Rows: rows}},
	})
	titles, all := s.findings()
	require.Equal(t, []string{"warning: Label session looks like an ID: about 5k values, nearly one for each series that has it"}, titles)
	require.Equal(t, "It is on about 5.1k of 6k series.", all[0].Detail)
	require.Equal(t, "session", all[0].Query["label"])
}

// TestIdentityIsNobodysCulprit: a limit is reached because of targets, and a label that identifies them.
func TestIdentityIsNobodysCulprit(t *testing.T) {
	for name, c := range map[string]struct {
		label, title, next string
	}{
		"of series": {"", "warning: Rule r is at its limit: 10 of 10 series: label path of m has about 30 values", "Drop or collapse label path,"},
		"of identity": {
			"instance", "warning: Rule r is at its limit: 10 of 10 series: label instance of m has about 4k values", "Find the label that explodes,",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.Register(inspect.Source{
				Kind: component.KindProcessor, ID: consoletest.ID("cardinality"), Cardinality: consoletest.Cardinality{
					Now: inspect.CardinalityOverview{
						Limits:  []inspect.Limit{{Rule: "r", What: "series", Label: c.label, Max: 10, Used: 10}},
						Rejects: []inspect.Reject{{Rule: "r", Metric: "m"}},
					},
					Rows: inspect.Top{Rows: []inspect.Row{
						{Name: "instance", Values: inspect.Estimate{Value: 4000}}, {Name: "path", Values: inspect.Estimate{Value: 30}},
					}},
				},
			})
			titles, all := s.findings()
			require.Equal(t, []string{c.title}, titles)
			require.Contains(t, all[0].Next, c.next)
		})
	}
}

func TestMemoryThatRunsShort(t *testing.T) {
	s := open(t)
	s.Register(inspect.Source{
		Kind: component.KindExtension, ID: consoletest.ID("runtimeprofile"),
		Runtime: func() inspect.Runtime {
			return inspect.Runtime{Complaint: "GOMEMLIMIT is above the limiter", MemoryBudget: 1}
		},
	})
	titles, _ := s.findings()
	require.Contains(t, titles, "warning: Memory settings disagree")
	if s.Meter.Look().Process().RSS != nil {
		require.Len(t, titles, 2, "and all of it is used")
	}
}

func TestFindingsAreBounded(t *testing.T) {
	s := open(t)
	exporter := s.Counter(component.KindExporter, "remotewrite")
	exporter.Flow.Dropped = map[string]int64{}
	for i := range 1000 {
		exporter.Flow.Dropped[time.Duration(i).String()] = 1
	}
	titles, _ := s.findings()
	require.Len(t, titles, maxFindings)
}
