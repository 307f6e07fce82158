// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package targets shows what receivers scrape, and which targets fail.
package targets

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/meter"
	"github.com/godwit-otel/godwit/extension/consoleextension/internal/sources"
	"github.com/godwit-otel/godwit/internal/inspect"
)

type (
	targetListJSON struct {
		Total   int          `json:"total"`
		Matched int          `json:"matched"`
		Offset  int          `json:"offset"`
		Limit   int          `json:"limit"`
		Counts  meter.Counts `json:"counts"`
		Jobs    []jobJSON    `json:"jobs"`
		Errors  []Errors     `json:"errors"`
		Targets []targetJSON `json:"targets"`
	}

	jobJSON struct {
		meter.Counts

		Receiver string `json:"receiver"`
		Job      string `json:"job"`
		Targets  int    `json:"targets"`
		Limit    int    `json:"limit"`
	}
)

// View shows the targets of all receivers.
type View struct {
	sources *sources.Registry
	looking chan struct{} // one slot for each look at a target
}

// New returns a view of these sources.
func New(of *sources.Registry) *View { return &View{sources: of, looking: make(chan struct{}, 1)} }

// asked holds the parameters of a request for a list.
type asked struct {
	limit, offset                int
	receiver, job, state, reason string
	words                        []string
	format                       string
	order                        func(a, b entry) int
}

func ask(r *http.Request) (a asked, err error) {
	query := r.URL.Query()
	a.receiver, a.job, a.reason = query.Get(sources.Receiver), query.Get("job"), query.Get("reason")
	if a.limit, err = answer.Whole(r, "limit", 100, 0, answer.MaxRows); err != nil {
		return a, err
	}
	if a.offset, err = answer.Whole(r, "offset", 0, 0, 1<<31-1); err != nil {
		return a, err
	}
	if a.state, err = answer.OneOf(r, "state", "", inspect.Healthy, inspect.Failing, inspect.Unknown, meter.Dropped); err != nil {
		return a, err
	}
	if a.format, err = answer.Format(r, answer.FormatJSON, answer.FormatCSV); err != nil {
		return a, err
	}
	if a.order, err = order(r); err != nil {
		return a, err
	}
	a.words = strings.Fields(strings.ToLower(query.Get("q")))
	if len(query.Get("q")) > 1000 || len(a.words) > 20 {
		return a, answer.BadRequest("`q` must not have more than 1000 bytes and 20 words")
	}
	return a, nil
}

// about reports whether the request is about a job of a receiver.
func (a *asked) about(s *sources.Source, j *inspect.Job) bool {
	return (a.receiver == "" || a.receiver == s.Name()) && (a.job == "" || a.job == j.Name)
}

// has reports whether the request is about a target of such a job.
func (a *asked) has(e entry) bool {
	return (a.state == "" || a.state == e.target.State) && (a.reason == "" || a.reason == e.target.Reason) && e.has(a.words)
}

// List answers with the requested targets, and with the counts and errors of all.
func (v *View) List(r *http.Request) (any, error) {
	a, err := ask(r)
	if err != nil {
		return nil, err
	}
	out := targetListJSON{Limit: a.limit, Offset: a.offset, Jobs: []jobJSON{}, Targets: []targetJSON{}}
	var found []entry
	var jobs []inspect.Job // of all receivers
	for _, s := range v.sources.All() {
		if s.Targets == nil {
			continue
		}
		all := s.Targets()
		jobs = append(jobs, all.Jobs...)
		for i := range all.Jobs {
			j := &all.Jobs[i]
			one := newJob(s, j)
			out.Jobs = append(out.Jobs, one)
			out.Total += len(j.Targets)
			out.Counts.Healthy += one.Healthy
			out.Counts.Failing += one.Failing
			out.Counts.Unknown += one.Unknown
			out.Counts.Dropped += one.Dropped
			out.Counts.Elsewhere += one.Elsewhere
			if !a.about(s, j) {
				continue
			}
			targets := shown(j, a.state)
			for k := range targets {
				if e := (entry{s, j, &targets[k]}); a.has(e) {
					found = append(found, e)
				}
			}
		}
	}
	out.Errors = ErrorsOf(jobs...)
	out.Matched = len(found)
	if a.format == answer.FormatCSV {
		slices.SortStableFunc(found, a.order)
		return table(found)
	}
	found = least(found, a.offset+a.limit, a.order)
	for _, e := range found[min(a.offset, len(found)):] {
		out.Targets = append(out.Targets, e.json())
	}
	return out, nil
}

// labelAddress is the label of discovery that the URL is made from.
const labelAddress = "__address__"

// shown returns the targets of a job that a list for a state may contain.
func shown(j *inspect.Job, state string) []inspect.Target {
	if state != meter.Dropped {
		return j.Targets
	}
	targets := make([]inspect.Target, 0, len(j.Dropped))
	for _, dropped := range j.Dropped {
		t := inspect.Target{State: meter.Dropped, Labels: dropped}
		for _, l := range dropped.Discovered() {
			if l.Name == labelAddress {
				t.URL = l.Value
			}
		}
		targets = append(targets, t)
	}
	return targets
}

func newJob(s *sources.Source, j *inspect.Job) jobJSON {
	out := jobJSON{Receiver: s.Name(), Job: j.Name, Targets: len(j.Targets), Limit: j.Limit, Counts: meter.Counts{Dropped: j.Drops, Elsewhere: j.Elsewhere}}
	for i := range j.Targets {
		switch j.Targets[i].State {
		case inspect.Healthy:
			out.Healthy++
		case inspect.Failing:
			out.Failing++
		default:
			out.Unknown++
		}
	}
	return out
}

func table(found []entry) (*answer.File, error) {
	rows := [][]string{strings.Fields("receiver job url state labels interval_seconds timeout_seconds last_scrape last_duration_seconds " +
		"samples bytes plan_hits plan_misses reason last_error")}
	for _, e := range found {
		t := e.json()
		last := ""
		if t.LastScrape != nil {
			last = t.LastScrape.UTC().Format(time.RFC3339Nano)
		}
		rows = append(rows, []string{
			t.Receiver, t.Job, t.URL, t.State, text(t.Labels), answer.Decimal(t.Interval), answer.Decimal(t.Timeout), last, answer.Decimal(t.LastDuration),
			strconv.Itoa(t.Samples), strconv.FormatInt(t.Bytes, 10), strconv.Itoa(t.PlanHits), strconv.Itoa(t.PlanMisses), t.Reason, t.LastError,
		})
	}
	return answer.Table("targets", rows)
}

// text formats labels as Prometheus does.
func text(labels []inspect.Label) string {
	parts := make([]string, len(labels))
	for i, l := range labels {
		parts[i] = l.Name + "=" + strconv.Quote(l.Value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
