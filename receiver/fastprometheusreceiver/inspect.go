// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.opentelemetry.io/collector/component"
	"go.yaml.in/yaml/v2"

	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/inspect"
	"github.com/godwit-otel/godwit/internal/redact"
	"github.com/godwit-otel/godwit/receiver/fastprometheusreceiver/internal/fetch"
)

// inspection returns what the receiver shows on request.
func (r *scraper) inspection() inspect.Source {
	return inspect.Source{
		Kind: component.KindReceiver, ID: r.settings.ID, Signal: "metrics",
		Flow: r.flow, Targets: r.inspectTargets, Look: looker{r}, Tap: &r.out.tap,
	}
}

func (r *scraper) flow() inspect.Flow {
	c := &r.counters
	f := inspect.Flow{
		In: c.kept.Load(), Out: r.out.handed.Load(), Limited: c.limited.Load(), Refused: r.out.refusals.scrapes.Load(),
		WireBytes: c.wireBytes.Load(), RawBytes: c.bodyBytes.Load(),
		Failed: map[string]int64{}, Targets: r.census(),
	}
	if n := r.out.lost.Load(); n > 0 {
		f.Dropped = map[string]int64{inspect.ReasonRefused: n}
	}
	for i := range c.failures {
		if n := c.failures[i].Load(); n > 0 {
			f.Failed[reasons[i]] = n
		}
	}
	return f
}

func (t *jobTable) inspectTargets() inspect.Targets {
	var out inspect.Targets
	for _, j := range t.allJobs() {
		if shown, ok := j.inspect(); ok {
			out.Jobs = append(out.Jobs, shown)
		}
	}
	inorder.Sort(out.Jobs, func(a, b inspect.Job) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// inspect shows the job, unless it has ended.
func (j *job) inspect() (inspect.Job, bool) {
	now := j.now()
	cfg := now.cfg
	out := inspect.Job{
		Name: j.name, Drops: now.found.Drops, Elsewhere: now.found.Elsewhere, Limit: int(cfg.TargetLimit),
		Targets: make([]inspect.Target, 0, len(now.targets)),
		Rules:   func() (string, string) { return rulesText(cfg.RelabelConfigs), rulesText(cfg.MetricRelabelConfigs) },
	}
	for _, dropped := range now.found.Dropped {
		out.Dropped = append(out.Dropped, droppedLabels(func() labels.Labels { return dropped.Labels(cfg) }))
	}
	for hash, t := range now.targets {
		out.Targets = append(out.Targets, t.inspect(j.identify(hash)))
	}
	return out, !now.ended
}

// identify makes the ID of a target, unique over all jobs.
func (j *job) identify(hash uint64) string {
	id := strconv.FormatUint(hash^xxhash.Sum64String(j.owner.settings.ID.String()+"\xff"+j.name), 16)
	return "0000000000000000"[len(id):] + id
}

func (t *target) inspect(id string) inspect.Target {
	a := t.assignment.Load()
	t.mu.Lock()
	s := t.status
	t.mu.Unlock()
	out := inspect.Target{
		ID: id, URL: redact.URL(a.URL), Labels: (*assignmentLabels)(a), Interval: a.Interval, Timeout: a.Timeout,
		State: cmp.Or(s.state, stateUnknown), LastScrape: s.at, LastDuration: s.duration,
		Samples: s.samples, Bytes: int64(s.wire), PlanHits: s.hits, PlanMisses: s.misses,
		Refused: t.refused.Load(), Skipped: t.skipped.Load(),
	}
	if s.err != nil {
		out.LastError, out.Reason = s.err.Error(), s.reason
	}
	return out
}

// assignmentLabels are a target's labels, for display.
type assignmentLabels assignment

func (a *assignmentLabels) Labels() []inspect.Label {
	out := make([]inspect.Label, 0, a.Target.Labels.Len())
	a.Target.Labels.Range(func(l labels.Label) {
		if len(l.Name) < 2 || l.Name[:2] != "__" {
			out = append(out, inspect.Label(l))
		}
	})
	return out
}

func (a *assignmentLabels) Discovered() []inspect.Label { return inspectLabels(a.Target.Discovered()) }

// droppedLabels are the labels of a target that relabelling dropped.
type droppedLabels func() labels.Labels

func (droppedLabels) Labels() []inspect.Label       { return nil }
func (d droppedLabels) Discovered() []inspect.Label { return inspectLabels(d()) }

func inspectLabels(from labels.Labels) []inspect.Label {
	out := make([]inspect.Label, 0, from.Len())
	from.Range(func(l labels.Label) { out = append(out, inspect.Label(l)) })
	return out
}

func rulesText(rules []*relabel.Config) string {
	if len(rules) == 0 {
		return ""
	}
	text, err := yaml.Marshal(rules)
	if err != nil { // they came from YAML
		return ""
	}
	return string(text)
}

// looker fetches the pages of targets for display.
type looker struct{ *scraper }

// errEnough ends the reading of a page that is longer than is shown.
var errEnough = errors.New("enough")

// Look implements inspect.Looker. It has a connection of its own, so that it does not delay the target's scrapes.
func (l looker) Look(ctx context.Context, id string, limit int) (inspect.Page, error) {
	a := l.find(id)
	if a == nil {
		return inspect.Page{}, inspect.ErrNoTarget
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.fetching, cancel)()
	t := a.tools.client.NewTarget(a.URL, a.Socket, a.Timeout, a.tools.accept)
	defer t.Close()
	began := time.Now()
	page := inspect.Page{URL: redact.URL(a.URL)}
	var (
		text    bytes.Buffer
		body    fetch.Body
		decoder fetch.Decoder
	)
	defer body.Close()
	take := func(chunk []byte) error {
		if room := limit - text.Len(); len(chunk) > room {
			text.Write(chunk[:room])
			page.Truncated = true
			return errEnough
		}
		text.Write(chunk)
		return nil
	}
	err := t.Show(ctx, func(r fetch.Response, last bool) error {
		page.Status, page.ContentType, page.Encoding = r.Status, r.ContentType, r.Encoding.String()
		page.WireBytes, page.Took = int(r.Before)+len(r.Body), time.Since(began)
		decode := body.Part
		if last {
			decode = body.End
		}
		_, err := decode(&decoder, r, int64(a.tools.cfg.BodySizeLimit), take)
		return err
	})
	if err != nil && !errors.Is(err, errEnough) {
		return inspect.Page{}, fmt.Errorf("cannot fetch the page: %w", redact.Error(err, t.Secrets()...))
	}
	page.Body = []byte(redact.Known(text.String(), t.Secrets()))
	page.Body = page.Body[:min(len(page.Body), limit)]
	return page, nil
}

// find returns the assignment of the target with this ID; nil if there is none.
func (t *jobTable) find(id string) *assignment {
	for _, j := range t.allJobs() {
		j.mu.Lock()
		for hash, one := range j.targets {
			if !j.ended && j.identify(hash) == id {
				j.mu.Unlock()
				return one.assignment.Load()
			}
		}
		j.mu.Unlock()
	}
	return nil
}
