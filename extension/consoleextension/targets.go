// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/internal/inspect"
)

const (
	stateDropped = "dropped"
	maxPage      = 1000
)

type (
	targetJSON struct {
		ID           string          `json:"id"`
		Receiver     string          `json:"receiver"`
		Job          string          `json:"job"`
		URL          string          `json:"url"`
		State        string          `json:"state"`
		Labels       []inspect.Label `json:"labels"`
		Interval     float64         `json:"interval_seconds"`
		Timeout      float64         `json:"timeout_seconds"`
		LastScrape   *time.Time      `json:"last_scrape"`
		LastDuration float64         `json:"last_duration_seconds"`
		Samples      int             `json:"samples"`
		Bytes        int64           `json:"bytes"`
		PlanHits     int             `json:"plan_hits"`
		PlanMisses   int             `json:"plan_misses"`
		Refused      int64           `json:"refused"` // scrapes whose metrics the pipeline did not take
		Skipped      int64           `json:"skipped"` // scrapes that were due and not made
		LastError    string          `json:"last_error"`
		Reason       string          `json:"reason"`
		ReasonText   string          `json:"reason_text"`
	}

	targetDetailJSON struct {
		targetJSON

		Discovered    []inspect.Label `json:"discovered"`
		Relabel       string          `json:"relabel_configs"`
		MetricRelabel string          `json:"metric_relabel_configs"`
		CanLook       bool            `json:"can_look"`
		Next          string          `json:"next"`
	}

	targetListJSON struct {
		Total   int          `json:"total"`
		Matched int          `json:"matched"`
		Offset  int          `json:"offset"`
		Limit   int          `json:"limit"`
		Counts  counts       `json:"counts"`
		Jobs    []jobJSON    `json:"jobs"`
		Errors  []errorJSON  `json:"errors"`
		Targets []targetJSON `json:"targets"`
	}

	jobJSON struct {
		counts

		Receiver string `json:"receiver"`
		Job      string `json:"job"`
		Targets  int    `json:"targets"`
		Limit    int    `json:"limit"`
	}
)

// An entry is a target in the list.
type entry struct {
	source *source
	job    *inspect.Job
	target *inspect.Target
}

func (c *console) targets(r *http.Request) (any, error) {
	query := r.URL.Query()
	limit, err := whole(r, "limit", 100, 0, maxPage)
	if err != nil {
		return nil, err
	}
	offset, err := whole(r, "offset", 0, 0, 1<<31-1)
	if err != nil {
		return nil, err
	}
	state, err := oneOf(r, paramState, "", inspect.Healthy, inspect.Failing, inspect.Unknown, stateDropped)
	if err != nil {
		return nil, err
	}
	format, err := oneOf(r, "format", formatJSON, formatCSV)
	if err != nil {
		return nil, err
	}
	less, err := order(r)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(strings.ToLower(query.Get("q")))
	if len(query.Get("q")) > 1000 || len(words) > 20 {
		return nil, badRequest("`q` must not have more than 1000 bytes and 20 words")
	}

	out := targetListJSON{Limit: limit, Offset: offset, Jobs: []jobJSON{}, Targets: []targetJSON{}}
	var found []entry
	var jobs []inspect.Job // of all receivers
	for _, s := range c.all() {
		if s.Targets == nil {
			continue
		}
		all := s.Targets()
		jobs = append(jobs, all.Jobs...)
		for i := range all.Jobs {
			j := &all.Jobs[i]
			out.Jobs = append(out.Jobs, newJob(s, j))
			out.Total += len(j.Targets)
			if given := query.Get(wordReceiver); given != "" && given != s.name() {
				continue
			}
			if given := query.Get(paramJob); given != "" && given != j.Name {
				continue
			}
			targets := shown(j, state)
			for k := range targets {
				e := entry{s, j, &targets[k]}
				if e.is(state, query.Get(paramReason)) && e.has(words) {
					found = append(found, e)
				}
			}
		}
	}
	for _, j := range out.Jobs {
		out.Counts.Healthy += j.Healthy
		out.Counts.Failing += j.Failing
		out.Counts.Unknown += j.Unknown
		out.Counts.Dropped += j.Dropped
		out.Counts.Elsewhere += j.Elsewhere
	}
	out.Errors = errorsOf(jobs...)
	out.Matched = len(found)
	if format == formatCSV {
		slices.SortStableFunc(found, less)
		return targetTable(found)
	}
	found = least(found, offset+limit, less)
	for _, e := range found[min(offset, len(found)):] {
		out.Targets = append(out.Targets, e.json())
	}
	return out, nil
}

// least are the first n entries in an order; of equal ones those that stand first. It looks at each entry once, and sorts few:
// of ten thousand targets a page shows fifty.
func least(all []entry, n int, less func(a, b entry) int) []entry {
	if n >= len(all)/2 {
		slices.SortStableFunc(all, less)
		return all[:min(n, len(all))]
	}
	first := make([]entry, 0, 2*n+1)
	for _, e := range all {
		if len(first) >= n && (n == 0 || less(first[n-1], e) <= 0) {
			continue
		}
		// What comes is behind what is there, so a stable sort keeps the order of equal ones. After the first n nothing is sorted
		// until as many are there again.
		if first = append(first, e); len(first) == n || len(first) == 2*n {
			slices.SortStableFunc(first, less)
			first = first[:n]
		}
	}
	slices.SortStableFunc(first, less)
	return first[:min(n, len(first))]
}

// shown is what a list for a state is made from.
func shown(j *inspect.Job, state string) []inspect.Target {
	if state != stateDropped {
		return j.Targets
	}
	targets := make([]inspect.Target, 0, len(j.Dropped))
	for _, dropped := range j.Dropped {
		t := inspect.Target{State: stateDropped, Labels: dropped}
		for _, l := range dropped.Discovered() {
			if l.Name == labelAddress {
				t.URL = l.Value
			}
		}
		targets = append(targets, t)
	}
	return targets
}

func newJob(s *source, j *inspect.Job) jobJSON {
	out := jobJSON{Receiver: s.name(), Job: j.Name, Targets: len(j.Targets), Limit: j.Limit, counts: counts{Dropped: j.Drops, Elsewhere: j.Elsewhere}}
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

func (e entry) is(state, reason string) bool {
	return (state == "" || e.target.State == state) && (reason == "" || e.target.Reason == reason)
}

// has tells whether all words are found in what is shown of the target.
func (e entry) has(words []string) bool {
	if len(words) == 0 {
		return true
	}
	url, fault := redactor.Text(e.target.URL), redactor.Text(e.target.LastError)
	var labels []inspect.Label // computed for the first word that needs them
	for _, word := range words {
		if contains(e.job.Name, word) || contains(url, word) || contains(fault, word) {
			continue
		}
		if labels == nil {
			labels = e.labels()
		}
		if !slices.ContainsFunc(labels, func(l inspect.Label) bool {
			name, value, exact := strings.Cut(word, "=")
			return contains(l.Value, word) || contains(l.Name, word) ||
				exact && strings.EqualFold(l.Name, name) && contains(l.Value, strings.Trim(value, `"`))
		}) {
			return false
		}
	}
	return true
}

// contains does not tell upper from lower case; word is in lower case.
func contains(s, word string) bool {
	return strings.Contains(s, word) || strings.Contains(strings.ToLower(s), word)
}

func (e entry) labels() []inspect.Label {
	if e.target.State == stateDropped {
		return hidden(e.target.Labels.Discovered())
	}
	return hidden(e.target.Labels.Labels())
}

// hidden takes secrets out of labels. Never nil.
func hidden(labels []inspect.Label) []inspect.Label {
	if labels == nil {
		return []inspect.Label{}
	}
	for i := range labels {
		labels[i].Value = redactor.Label(labels[i].Name, labels[i].Value)
	}
	return labels
}

// urgency is the order of states: what fails comes first.
var urgency = map[string]int{inspect.Failing: 0, inspect.Unknown: 1, inspect.Healthy: 2, stateDropped: 3}

var orders = map[string]func(a, b *inspect.Target) int{
	paramURL:      func(a, b *inspect.Target) int { return cmp.Compare(a.URL, b.URL) },
	paramState:    func(a, b *inspect.Target) int { return cmp.Compare(urgency[a.State], urgency[b.State]) },
	"last_scrape": func(a, b *inspect.Target) int { return a.LastScrape.Compare(b.LastScrape) },
	"duration":    func(a, b *inspect.Target) int { return cmp.Compare(a.LastDuration, b.LastDuration) },
	wordSamples:   func(a, b *inspect.Target) int { return cmp.Compare(a.Samples, b.Samples) },
	wordBytes:     func(a, b *inspect.Target) int { return cmp.Compare(a.Bytes, b.Bytes) },
	"plan":        func(a, b *inspect.Target) int { return cmp.Compare(a.PlanMisses, b.PlanMisses) },
	"error":       func(a, b *inspect.Target) int { return cmp.Compare(a.LastError, b.LastError) },
}

func order(r *http.Request) (func(a, b entry) int, error) {
	by, err := oneOf(r, "sort", paramURL, paramJob, paramState, "last_scrape", "duration", wordSamples, wordBytes, "plan", "error")
	if err != nil {
		return nil, err
	}
	direction, err := oneOf(r, "order", "asc", "desc")
	if err != nil {
		return nil, err
	}
	sign := 1
	if direction == "desc" {
		sign = -1
	}
	return func(a, b entry) int {
		var first int
		if by == paramJob {
			first = cmp.Compare(a.job.Name, b.job.Name)
		} else {
			first = orders[by](a.target, b.target)
		}
		return sign * cmp.Or(first, cmp.Compare(a.target.URL, b.target.URL), cmp.Compare(a.target.ID, b.target.ID))
	}, nil
}

func (e entry) json() targetJSON {
	t := e.target
	out := targetJSON{
		ID: t.ID, Receiver: e.source.name(), Job: e.job.Name, URL: redactor.Text(t.URL), State: t.State, Labels: e.labels(),
		Interval: t.Interval.Seconds(), Timeout: t.Timeout.Seconds(), LastDuration: t.LastDuration.Seconds(),
		Samples: t.Samples, Bytes: t.Bytes, PlanHits: t.PlanHits, PlanMisses: t.PlanMisses,
		Refused: t.Refused, Skipped: t.Skipped, LastError: redactor.Text(cut(t.LastError, 10_000)), Reason: t.Reason,
	}
	if t.State == inspect.Failing {
		out.ReasonText = failure(t.Reason)
	}
	if !t.LastScrape.IsZero() {
		out.LastScrape = &t.LastScrape
	}
	return out
}

func targetTable(found []entry) (*file, error) {
	rows := [][]string{strings.Fields("receiver job url state labels interval_seconds timeout_seconds last_scrape last_duration_seconds " +
		"samples bytes plan_hits plan_misses reason last_error")}
	for _, e := range found {
		t := e.json()
		last := ""
		if t.LastScrape != nil {
			last = t.LastScrape.UTC().Format(time.RFC3339Nano)
		}
		rows = append(rows, []string{
			t.Receiver, t.Job, t.URL, t.State, text(t.Labels), decimal(t.Interval), decimal(t.Timeout), last, decimal(t.LastDuration),
			strconv.Itoa(t.Samples), strconv.FormatInt(t.Bytes, 10), strconv.Itoa(t.PlanHits), strconv.Itoa(t.PlanMisses), t.Reason, t.LastError,
		})
	}
	return table(viewTargets, rows)
}

// text is labels as Prometheus writes them.
func text(labels []inspect.Label) string {
	parts := make([]string, len(labels))
	for i, l := range labels {
		parts[i] = l.Name + "=" + strconv.Quote(l.Value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// find returns the target with the ID of the request's path.
func (c *console) find(r *http.Request) (entry, error) {
	id := r.PathValue("id")
	for _, s := range c.all() {
		if s.Targets == nil {
			continue
		}
		all := s.Targets()
		for i := range all.Jobs {
			j := &all.Jobs[i]
			for k := range j.Targets {
				if j.Targets[k].ID == id {
					return entry{s, j, &j.Targets[k]}, nil
				}
			}
		}
	}
	return entry{}, notFound("%v", inspect.ErrNoTarget)
}

func (c *console) target(r *http.Request) (any, error) {
	e, err := c.find(r)
	if err != nil {
		return nil, err
	}
	out := targetDetailJSON{targetJSON: e.json(), Discovered: hidden(e.target.Labels.Discovered()), CanLook: e.source.Look != nil}
	if e.target.State == inspect.Failing {
		out.Next = nextForReason(e.target.Reason)
		if code := statusOf(e.target); code != "" {
			out.Next = nextForStatus(code)
		}
	}
	if e.job.Rules != nil {
		out.Relabel, out.MetricRelabel = e.job.Rules()
	}
	return out, nil
}
