// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

type scrapePools struct {
	ScrapePools []string `json:"scrapePools"`
}

func (s *Server) scrapePools(*http.Request) (any, *fault) {
	out := scrapePools{ScrapePools: []string{}}
	for _, pool := range s.view.Pools() {
		out.ScrapePools = append(out.ScrapePools, pool.Job.JobName)
	}
	return out, nil
}

type targets struct {
	Active  []activeTarget  `json:"activeTargets"`
	Dropped []droppedTarget `json:"droppedTargets"`
	Drops   map[string]int  `json:"droppedTargetCounts"`
}

type activeTarget struct {
	Discovered labels.Labels `json:"discoveredLabels"`
	Labels     labels.Labels `json:"labels"`
	Pool       string        `json:"scrapePool"`
	URL        string        `json:"scrapeUrl"`
	GlobalURL  string        `json:"globalUrl"`
	LastError  string        `json:"lastError"`
	LastScrape time.Time     `json:"lastScrape"`
	Duration   float64       `json:"lastScrapeDuration"`
	Health     Health        `json:"health"`
	Interval   string        `json:"scrapeInterval"`
	Timeout    string        `json:"scrapeTimeout"`
}

type droppedTarget struct {
	Discovered labels.Labels `json:"discoveredLabels"`
	Pool       string        `json:"scrapePool"`
}

func (s *Server) targets(r *http.Request) (any, *fault) {
	query := r.URL.Query()
	only, state := query.Get("scrapePool"), cmp.Or(strings.ToLower(query.Get("state")), "any")
	out := targets{Active: []activeTarget{}, Dropped: []droppedTarget{}}
	if state == "any" || state == "dropped" {
		out.Drops = map[string]int{}
	}
	for _, pool := range s.view.Pools() {
		name := pool.Job.JobName
		if out.Drops != nil {
			out.Drops[name] = pool.Drops
		}
		if only != "" && only != name {
			continue
		}
		if state == "any" || state == "active" {
			for i := range pool.Targets {
				out.Active = append(out.Active, s.active(name, &pool.Targets[i]))
			}
		}
		if out.Drops != nil {
			for _, discovered := range pool.Dropped {
				out.Dropped = append(out.Dropped, droppedTarget{discovered, name})
			}
		}
	}
	return out, nil
}

func (s *Server) active(pool string, t *Target) activeTarget {
	return activeTarget{
		Discovered: t.Discovered,
		Labels:     public(t.Labels),
		Pool:       pool,
		URL:        t.URL,
		GlobalURL:  globalURL(t.URL, s.cfg.Server.NetAddr.Endpoint),
		LastError:  t.LastError,
		LastScrape: t.LastScrape,
		Duration:   t.Duration.Seconds(),
		Health:     t.Health,
		Interval:   t.Labels.Get(model.ScrapeIntervalLabel),
		Timeout:    t.Labels.Get(model.ScrapeTimeoutLabel),
	}
}

// public returns the labels that are not reserved.
func public(all labels.Labels) labels.Labels {
	builder := labels.NewBuilder(all)
	all.Range(func(l labels.Label) {
		if strings.HasPrefix(l.Name, model.ReservedLabelPrefix) {
			builder.Del(l.Name)
		}
	})
	return builder.Labels()
}

type relabelSteps struct {
	Steps []relabelStep `json:"steps"`
}

type relabelStep struct {
	Rule   *relabel.Config `json:"rule"`
	Output labels.Labels   `json:"output"`
	Keep   bool            `json:"keep"`
}

// relabelSteps shows what each rule of a job makes of labels.
func (s *Server) relabelSteps(r *http.Request) (any, *fault) {
	name := r.FormValue("scrapePool")
	var given labels.Labels
	if err := json.Unmarshal([]byte(r.FormValue("labels")), &given); err != nil {
		return nil, &fault{badData, fmt.Errorf("cannot read the parameter labels: %w", err)}
	}
	pools := s.view.Pools()
	i := slices.IndexFunc(pools, func(p Pool) bool { return p.Job.JobName == name })
	if i < 0 {
		return nil, &fault{badData, errors.New("the parameter scrapePool must name a job")}
	}
	rules := pools[i].Job.RelabelConfigs
	out := relabelSteps{Steps: make([]relabelStep, 0, len(rules))}
	builder, keep := labels.NewBuilder(given), true
	for _, rule := range rules {
		step := relabelStep{Rule: rule, Output: labels.EmptyLabels()}
		if keep = keep && relabel.ProcessBuilder(builder, rule); keep {
			step.Output, step.Keep = builder.Labels(), true
		}
		out.Steps = append(out.Steps, step)
	}
	return out, nil
}
