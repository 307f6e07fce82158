// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/history"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// The scrape interval of Prometheus, on the history's clock and on ours.
	dashboardStep, lookEvery = 15 * time.Second, 500 * time.Millisecond
	// Enough for each rate to have data.
	fewestLooks = 10
	// As long as it takes until every problem has shown.
	allIsAnswered = 4 * time.Minute
)

// Alerts that cannot fire within a test. For these, only the metrics that they compare must exist.
var rareAlerts = map[string]string{
	"GodwitLimitRuleSilent":   "it takes a day",
	"GodwitQueueOld":          "it takes five minutes",
	"GodwitQueueDamaged":      "tests of damage see the metric that it is about",
	"GodwitMemoryNearBudget":  "it would take the memory of this machine",
	"GodwitGarbageCollection": "it would take the processors of this machine",
}

// grafana is the part of a dashboard that the test reads.
type grafana struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID      int     `json:"id"`
		Title   string  `json:"title"`
		Type    string  `json:"type"`
		GridPos gridPos `json:"gridPos"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

type gridPos struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

// overlaps reports whether two panels overlap.
func (g gridPos) overlaps(h gridPos) bool {
	return g.X < h.X+h.W && h.X < g.X+g.W && g.Y < h.Y+h.H && h.Y < g.Y+g.H
}

// Grafana's variables in queries.
var grafanaVariables = strings.NewReplacer("$job", ".*", "$instance", ".*", "$__rate_interval", "1m")

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// dashboardQueries returns all queries of all dashboards, by what they are for.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	queries, uids := map[string]string{}, map[string]bool{}
	for _, name := range repository.Files(t) {
		if path.Dir(name)+"/" != dashboards || path.Ext(name) != ".json" {
			continue
		}
		var g grafana
		require.NoError(t, json.Unmarshal([]byte(repository.Read(t, name)), &g), name)
		assert.NotEmpty(t, g.Title)
		assert.False(t, uids[g.UID], "%s has the uid of another", name)
		uids[g.UID] = true
		for _, v := range g.Templating.List {
			if v.Type == "query" {
				match := labelValues.FindStringSubmatch(v.Definition)
				require.NotNil(t, match, "%s: %s", name, v.Definition)
				queries[fmt.Sprintf("%s, variable %s", name, v.Name)] = grafanaVariables.Replace(match[1])
			}
		}
		for i, p := range g.Panels {
			for _, other := range g.Panels[:i] {
				assert.False(t, p.GridPos.overlaps(other.GridPos), "%s: %s lies on %s", name, p.Title, other.Title)
			}
			assert.Equal(t, p.Type == "row", len(p.Targets) == 0, "%s: %s", name, p.Title)
			assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, "%s: %s", name, p.Title)
			for i, target := range p.Targets {
				expr := grafanaVariables.Replace(target.Expr)
				assert.NotContains(t, expr, "$", "%s: %s", name, p.Title)
				queries[fmt.Sprintf("%s, panel %d %q, query %d", name, p.ID, p.Title, i)] = expr
			}
		}
	}
	assert.Len(t, uids, 2)
	return queries
}

// alert is one alternative, an operand of `or`, of an alert's expression.
type alert struct {
	name, expr string
	// labels are those in its annotations.
	labels []string
}

var annotationLabels = regexp.MustCompile(`\$labels\.(\w+)`)

func readAlerts(t *testing.T) (alerts []alert) {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(repository.Read(t, alertsFile)), false, model.UTF8Validation, history.Parser(), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	names := map[string]bool{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			assert.False(t, names[rule.Alert], "%s is there twice", rule.Alert)
			names[rule.Alert] = true
			assert.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"], rule.Alert)
			for _, annotation := range []string{"summary", "description", "runbook"} {
				assert.NotEmpty(t, rule.Annotations[annotation], "%s has no %s", rule.Alert, annotation)
			}
			var labels []string
			for _, text := range rule.Annotations {
				for _, match := range annotationLabels.FindAllStringSubmatch(text, -1) {
					labels = append(labels, match[1])
				}
			}
			expr, err := history.Parser().ParseExpr(rule.Expr)
			require.NoError(t, err, rule.Alert)
			for _, side := range sides(expr) {
				if comparison, ok := side.(*parser.BinaryExpr); ok && rareAlerts[rule.Alert] != "" {
					side = comparison.LHS
				}
				alerts = append(alerts, alert{rule.Alert, side.String(), labels})
			}
		}
	}
	for name := range rareAlerts {
		assert.True(t, names[name], "there is no alert %s", name)
	}
	return alerts
}

func sides(expr parser.Expr) []parser.Expr {
	if or, ok := expr.(*parser.BinaryExpr); ok && or.Op == parser.LOR {
		return append(sides(or.LHS), sides(or.RHS)...)
	}
	return []parser.Expr{expr}
}

// Each query of the dashboards has a result for the running processes. Each alert fires on the ill ones, and none on
// the healthy ones.
func TestDashboardsAndAlertsAreAlive(t *testing.T) {
	queries, alerts := dashboardQueries(t), readAlerts(t)
	well, ill := startWell(t), startIll(t)
	healthy, all := history.New(t), history.New(t)
	unanswered := map[string]alert{}
	for what, expr := range queries {
		unanswered[what] = alert{expr: expr}
	}
	for _, a := range alerts {
		unanswered[a.name+": "+a.expr] = a
	}
	answer := func() {
		for what, a := range unanswered {
			for _, answer := range all.Query(a.expr) {
				for _, label := range a.labels {
					assert.True(t, answer.Metric.Has(label), "%s speaks of a label %s that %v has not", a.name, label, answer.Metric)
				}
				delete(unanswered, what)
			}
		}
	}
	looks := 0
	wait.Until(t, allIsAnswered, func() (bool, string) {
		for wait.Pause(t.Context(), lookEvery) {
			for instance, c := range well {
				text := page(t, c.telemetry)
				healthy.Scraped("godwit", instance, text)
				all.Scraped("godwit", instance, text)
			}
			for instance, c := range ill {
				all.Scraped("godwit", instance, page(t, c.telemetry))
			}
			all.Down("godwit", "nobody:8888")
			all.Down("pods", "nobody:8888", "pod", "godwit-gateway-0")
			answer() // some alerts are about what has just started
			if looks++; looks >= fewestLooks {
				break
			}
			healthy.Pass(dashboardStep)
			all.Pass(dashboardStep)
		}
		for _, a := range alerts {
			if rareAlerts[a.name] == "" {
				assert.Empty(t, healthy.Query(a.expr), "%s fires where all is well", a.name)
			}
		}
		healthy.Pass(dashboardStep)
		all.Pass(dashboardStep)
		return len(unanswered) == 0, "these say nothing:\n" + strings.Join(slices.Sorted(maps.Keys(unanswered)), "\n")
	})
	t.Logf("%d queries and %d sides of alerts, in %d looks", len(queries), len(alerts), looks)
}
