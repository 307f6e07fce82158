// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/benchmarks/report"
)

// Cell is one load.
type Cell struct {
	Shape string `json:"shape"`
	Rate  int    `json:"rate"` // points per second, 0 for as fast as possible
}

// ParseCells parses a list such as W1@15k,W2@max.
func ParseCells(text string) (cells []Cell, err error) {
	for part := range strings.SplitSeq(text, ",") {
		shape, rate, ok := strings.Cut(part, "@")
		c := Cell{Shape: shape}
		if ok && rate != "max" {
			thousands, isThousands := strings.CutSuffix(rate, "k")
			if c.Rate, err = strconv.Atoi(thousands); err != nil || c.Rate <= 0 {
				return nil, fmt.Errorf("cannot read rate %q: write 15k, 15000 or max", rate)
			}
			if isThousands {
				c.Rate *= 1000
			}
		}
		if Shapes[shape] == "" || !ok {
			return nil, fmt.Errorf("cannot read load %q: write W1@15k or W6@max", part)
		}
		cells = append(cells, c)
	}
	return cells, nil
}

func (c Cell) String() string {
	if c.Rate == 0 {
		return c.Shape + "@max"
	}
	return fmt.Sprintf("%s@%gk", c.Shape, float64(c.Rate)/1000)
}

// Result is all that one command measured.
type Result struct {
	Name    string         `json:"name"`
	Title   string         `json:"title,omitempty"`
	Taken   time.Time      `json:"taken"`
	Command string         `json:"command"`
	Machine report.Machine `json:"machine"`
	WarmUp  float64        `json:"warm_up"` // seconds
	Window  float64        `json:"window"`
	Rows    []Row          `json:"limit_rows"`
	Skipped []string       `json:"skipped,omitempty"`
}

// Row is one agent under one load.
type Row struct {
	Cell

	Agent   string   `json:"agent"`
	Title   string   `json:"title"`
	Party   string   `json:"party"`
	Version string   `json:"version"`
	Runs    []Run    `json:"runs"`
	Failed  []string `json:"failed,omitempty"`
}

// Run is one measurement: a window, and the totals of the whole run.
type Run struct {
	Seconds float64 `json:"seconds"`
	Points  int64   `json:"points"`  // that arrived in the window
	Offered int64   `json:"offered"` // that were accepted in the window
	CPU     float64 `json:"cpu"`     // of the agent, in seconds
	Load    float64 `json:"load"`    // of the load and of the sink
	Sink    float64 `json:"sink"`
	Yard    float64 `json:"yard"` // CPU seconds per unit of the yardstick
	RSSMean int64   `json:"rss_mean"`
	RSSPeak int64   `json:"rss_peak"`
	Anon    int64   `json:"anon_mean,omitempty"`
	Wire    int64   `json:"wire"`

	// From the first request to the last one.
	Sent             int64 `json:"sent"` // accepted points
	Healthy          int64 `json:"healthy"`
	Delivered        int64 `json:"delivered"`
	HealthyDelivered int64 `json:"healthy_delivered"`
	Series           int64 `json:"series"` // that arrived
	Refused          int64 `json:"refused"`
	Late             int64 `json:"late"`
}

// CPUPerPoint returns CPU microseconds per point that arrived.
func (r *Run) CPUPerPoint() float64 { return r.plain().CPUPerMillion() }

// EvenCPUPerPoint is CPUPerPoint, normalised by the machine's speed.
func (r *Run) EvenCPUPerPoint() float64 { return r.plain().EvenCPUPerMillion() }

// plain converts the run for the package report.
func (r *Run) plain() *report.Run {
	return &report.Run{
		Seconds: r.Seconds, Samples: r.Points, CPU: r.CPU, Farm: r.Load, Sink: r.Sink, Yard: r.Yard,
		RSSMean: r.RSSMean, RSSPeak: r.RSSPeak, Wire: r.Wire,
	}
}

func share(part, whole int64) float64 { return 100 * float64(part) / float64(max(1, whole)) }

func (r *Run) String() string {
	return fmt.Sprintf("%.2f µs/point, %.0f MB (peak %.0f), %.0f points/s; %.2f %% delivered, %.2f %% of the healthy, %d series, %d refused, %d late; load %.0f %%, sink %.0f %% of a core",
		r.CPUPerPoint(), float64(r.RSSMean)/1e6, float64(r.RSSPeak)/1e6, float64(r.Points)/r.Seconds, share(r.Delivered, r.Sent),
		share(r.HealthyDelivered, r.Healthy), r.Series, r.Refused, r.Late, 100*r.Load/r.Seconds, 100*r.Sink/r.Seconds)
}

// median returns the median of a figure over the runs.
func (w *Row) median(figure func(*Run) float64) float64 {
	var values []float64
	for i := range w.Runs {
		values = append(values, figure(&w.Runs[i]))
	}
	slices.Sort(values)
	if n := len(values); n > 0 {
		return (values[(n-1)/2] + values[n/2]) / 2
	}
	return 0
}

// cell formats a figure for a table: the median, and the range if there were several runs.
func (w *Row) cell(format string, figure func(*Run) float64) string {
	median := fmt.Sprintf(format, w.median(figure))
	lowest, highest := math.Inf(1), math.Inf(-1)
	for i := range w.Runs {
		lowest, highest = min(lowest, figure(&w.Runs[i])), max(highest, figure(&w.Runs[i]))
	}
	from, to := fmt.Sprintf(format, lowest), fmt.Sprintf(format, highest)
	if len(w.Runs) < 2 || from == to {
		return median
	}
	return median + " (" + from + "–" + to + ")"
}

// anonTitle is the title of a figure that older results lack.
const anonTitle = "RSS without files, MB"

// columns are the columns of the table: how to compute and format each figure.
var columns = []struct {
	title, format string
	perPoint      bool // not shown if no point arrived
	of            func(*Run) float64
}{
	{"CPU, µs/point", "%.2f", true, (*Run).CPUPerPoint},
	{"at even speed", "%.2f", true, (*Run).EvenCPUPerPoint},
	{"CPU, µs/point taken", "%.2f", false, func(r *Run) float64 { return 1e6 * r.CPU / float64(max(1, r.Offered)) }},
	{"RSS mean, MB", "%.0f", false, func(r *Run) float64 { return float64(r.RSSMean) / 1e6 }},
	{anonTitle, "%.0f", false, func(r *Run) float64 { return float64(r.Anon) / 1e6 }},
	{"RSS peak, MB", "%.0f", false, func(r *Run) float64 { return float64(r.RSSPeak) / 1e6 }},
	{"points/s taken", "%.0f", false, func(r *Run) float64 { return float64(r.Offered) / r.Seconds }},
	{"points/s delivered", "%.0f", false, delivered},
	{"delivered, %", "%.2f", false, func(r *Run) float64 { return share(r.Delivered, r.Sent) }},
	{"of the healthy, %", "%.2f", false, func(r *Run) float64 { return share(r.HealthyDelivered, r.Healthy) }},
	{"series out", "%.0f", false, func(r *Run) float64 { return float64(r.Series) }},
	{"refused", "%.0f", false, func(r *Run) float64 { return float64(r.Refused) }},
	{"late", "%.0f", false, func(r *Run) float64 { return float64(r.Late) }},
	{"wire, B/point", "%.1f", true, func(r *Run) float64 { return r.plain().PerSample(float64(r.Wire)) }},
	{"load", "%.0f %%", false, func(r *Run) float64 { return 100 * r.Load / r.Seconds }},
	{"sink", "%.0f %%", false, func(r *Run) float64 { return 100 * r.Sink / r.Seconds }},
}

func delivered(r *Run) float64 { return float64(r.Points) / r.Seconds }

// Markdown renders the result, with a table for each load.
func (r *Result) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nGenerated by `make report` from %s.json; do not edit. How to read it: docs/performance.md.\n\n![chart](%s.svg)\n", cmp.Or(r.Title, "Limits on and off"), r.Name, r.Name)
	var cell Cell
	for i := range r.Rows {
		w := &r.Rows[i]
		if w.Cell != cell {
			cell = w.Cell
			fmt.Fprintf(&b, "\n## %s: %s\n\n| |", cell, Shapes[cell.Shape])
			for _, c := range columns {
				b.WriteString(" " + c.title + " |")
			}
			b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
		}
		b.WriteString("| " + w.Title + " |")
		for _, c := range columns {
			if v := w.median(c.of); len(w.Runs) == 0 || w.median(delivered) == 0 && c.perPoint || c.title == anonTitle && v == 0 {
				b.WriteString(" - |")
			} else {
				b.WriteString(" " + w.cell(c.format, c.of) + " |")
			}
		}
		b.WriteString("\n")
	}
	m := r.Machine
	how := fmt.Sprintf("Requests of %d points, encoded beforehand, over OTLP/HTTP without compression", PerRequest)
	if ofPages(cell.Shape) {
		how = "Requests encoded beforehand; a thousand targets"
	}
	fmt.Fprintf(&b, "\n- %s; %v s of warm-up, a window of %v s\n", how, r.WarmUp, r.Window)
	if len(r.Rows) > 0 && len(r.Rows[0].Runs) > 1 {
		fmt.Fprintf(&b, "- Medians of %d runs, agents in turn, with (least–greatest)\n", len(r.Rows[0].Runs))
	}
	fmt.Fprintf(&b, "- Machine: %d cores, %s, %.0f GB, %s; load, sink and runner on it too, built with %s\n", m.Cores, m.Model, float64(m.Memory)/1e9, m.Kernel, m.Go)
	fmt.Fprintf(&b, "- Taken: %s, by `%s`\n", r.Taken.Format("2006-01-02 15:04 MST"), r.Command)
	told := map[string]bool{}
	for _, w := range r.Rows {
		if !told[w.Party] {
			told[w.Party] = true
			fmt.Fprintf(&b, "- %s: %s\n", w.Party, w.Version)
		}
		for _, f := range w.Failed {
			first, _, _ := strings.Cut(f, "\n")
			fmt.Fprintf(&b, "- Failed: %s under %s: %s\n", w.Agent, w.Cell, first)
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "- Skipped: %s\n", s)
	}
	return b.String()
}

// SVG draws the cost over the rate, for the shape with the most rates.
func (r *Result) SVG() string {
	rates := map[string]map[int]bool{}
	for _, w := range r.Rows {
		if rates[w.Shape] == nil {
			rates[w.Shape] = map[int]bool{}
		}
		if w.Rate > 0 {
			rates[w.Shape][w.Rate] = true
		}
	}
	shapes := slices.SortedFunc(maps.Keys(rates), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(rates[y]), len(rates[x])), cmp.Compare(x, y))
	})
	if len(shapes) == 0 {
		return (&report.Result{}).SVG()
	}
	chart := report.Result{Title: shapes[0] + ": " + Shapes[shapes[0]], Axis: "data points per second"}
	for _, w := range r.Rows {
		if w.Shape != shapes[0] || w.Rate == 0 && len(rates[w.Shape]) > 0 {
			continue
		}
		row := report.Row{Agent: w.Agent, Title: w.Title, Party: w.Party, At: float64(w.Rate)}
		for i := range w.Runs {
			row.Runs = append(row.Runs, *w.Runs[i].plain())
		}
		chart.Rows = append(chart.Rows, row)
	}
	return chart.SVG()
}

// Load reads a result from a file.
func Load(file string) (*Result, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read result: %w", err)
	}
	var r Result
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("cannot read result %s: %w", file, err)
	}
	return &r, nil
}

// Save writes the result and its reports to a directory.
func (r *Result) Save(dir string) error {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write result: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot write result: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, r.Name+".json"), append(body, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write result: %w", err)
	}
	return r.Render(dir)
}

// Render writes the reports.
func (r *Result) Render(dir string) error {
	for suffix, text := range map[string]string{".md": r.Markdown(), ".svg": r.SVG()} {
		if err := os.WriteFile(filepath.Join(dir, r.Name+suffix), []byte(text), 0o644); err != nil {
			return fmt.Errorf("cannot write report: %w", err)
		}
	}
	return nil
}
