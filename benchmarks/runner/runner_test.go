// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/benchmarks/farm"
	"github.com/godwit-otel/godwit/benchmarks/sink"
)

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func eventually(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("it does not come about")
		}
	}
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	p, err := start("shell", t.TempDir(), "/bin/sh", []string{"-c", "sleep 600 & sleep 600"}, false)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(tree(p.cmd.Process.Pid)) == 3 })
	all := tree(p.cmd.Process.Pid)
	p.stop(time.Minute)
	for _, pid := range all {
		eventually(t, func() bool { return !running(pid) })
	}
	if err := p.alive(); err == nil {
		t.Error("a stopped process is told to live")
	}
}

func TestCPUAndMemoryOfAProcessAreSeen(t *testing.T) {
	p, err := start("shell", t.TempDir(), "/bin/sh", []string{"-c", "while :; do :; done"}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop(time.Minute)
	eventually(t, func() bool {
		seconds, err := p.cpu()
		return err == nil && seconds >= 0.05
	})
	p.forgetPeak()
	if rss, anon, peak := p.memory(); rss <= 0 || anon <= 0 || anon > rss || peak < rss/2 {
		t.Errorf("rss %d, anonymous %d, peak %d", rss, anon, peak)
	}
}

func scrapeOf(number int, at int64, values ...float64) farm.Scrape {
	s := farm.Scrape{Number: number, At: at}
	for _, v := range values {
		s.Page.Add(v)
	}
	return s
}

func group(number int, at int64, values ...float64) sink.Group {
	return sink.Group{Time: at, Number: number, Page: scrapeOf(number, at, values...).Page}
}

func TestCompareTellsWhatBecameOfEachScrape(t *testing.T) {
	served := [][]farm.Scrape{{scrapeOf(1, 100, 5, 6, 1), scrapeOf(2, 200, 5, 7, 2), scrapeOf(3, 900, 5, 8, 3)}}
	for name, c := range map[string]struct {
		arrived []sink.Group
		want    Account
	}{
		"everything arrived":             {[]sink.Group{group(1, 90, 5, 6, 1), group(2, 190, 5, 7, 2)}, Account{}},
		"later scrapes may be under way": {[]sink.Group{group(1, 90, 5, 6, 1), group(2, 190, 5, 7, 2), group(0, 480, 5)}, Account{}},
		"a sample is lost":               {[]sink.Group{group(1, 90, 5, 1), group(2, 190, 5, 7, 2)}, Account{Lost: 1}},
		"a scrape is lost":               {[]sink.Group{group(2, 190, 5, 7, 2)}, Account{Lost: 3}},
		"a scrape arrives twice":         {[]sink.Group{group(1, 90, 5, 6, 1), group(1, 91, 5, 6, 1), group(2, 190, 5, 7, 2)}, Account{Duplicated: 3}},
		"a value is another":             {[]sink.Group{group(1, 90, 5, 6.5, 1), group(2, 190, 5, 7, 2)}, Account{Altered: 1}},
		"one lost, another sent twice":   {[]sink.Group{group(1, 90, 5, 5, 1), group(2, 190, 5, 7, 2)}, Account{Altered: 1}},
		"samples of no scrape":           {[]sink.Group{group(1, 90, 5, 6, 1), group(2, 190, 5, 7, 2), group(0, 150, 5)}, Account{Unknown: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Scrapes, c.want.Served = 2, 6
			got := compare(served, map[int][]sink.Group{0: c.arrived}, 500, 50)
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got.Complete() != (got.Lost+got.Duplicated+got.Altered+got.Unknown == 0) {
				t.Errorf("complete: %v of %+v", got.Complete(), got)
			}
		})
	}
}

func TestEveryAgentOfTheRepositoryCanBeRendered(t *testing.T) {
	agents, err := LoadAgents("../agents")
	if err != nil {
		t.Fatal(err)
	}
	parties := map[string]int{}
	for i := range agents {
		a := &agents[i]
		dir := t.TempDir()
		args, err := a.render(agentView{
			Config: filepath.Join(dir, "config.yaml"), Dir: dir, Targets: "/somewhere/targets.json",
			Interval: 10 * time.Second, SinkHTTP: "127.0.0.1:1", SinkGRPC: "127.0.0.1:2",
		})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(args, " "), dir) {
			t.Errorf("%s: its arguments %q do not name its configuration", a.Name, args)
		}
		body, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(body, &map[string]any{}); err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
		text := string(body) + strings.Join(args, " ")
		for _, want := range []string{"/somewhere/targets.json", "scrape_interval: 10s", "127.0.0.1:"} {
			if !strings.Contains(text, want) && (want != "127.0.0.1:" || !a.Silent) {
				t.Errorf("%s: %q is nowhere in its configuration", a.Name, want)
			}
		}
		if a.Headline {
			parties[a.Party]++
		} else {
			parties[a.Party] += 0
		}
	}
	for party, headlines := range parties {
		if headlines == 0 {
			t.Errorf("no agent stands for %s", party)
		}
	}
}

func TestSelect(t *testing.T) {
	all := []Agent{{Name: "a", Headline: true}, {Name: "b"}, {Name: "apart", Apart: true}}
	f := func(which string, want int, fails bool) {
		t.Helper()
		got, err := Select(all, which)
		if len(got) != want || (err != nil) != fails {
			t.Errorf("%q: %v, %v", which, got, err)
		}
	}
	f("all", 2, false)
	f("headline", 1, false)
	f("b", 1, false)
	f("b,a", 2, false)
	f("b,apart", 2, false)
	f("c", 0, true)
}

func TestAMissingBinarySaysHowToGetIt(t *testing.T) {
	t.Setenv("SOME_AGENT", "")
	a := Agent{Env: "SOME_AGENT"}
	if _, missing := a.binary("/"); !strings.Contains(missing, "SOME_AGENT") {
		t.Errorf("told %q", missing)
	}
	a = Agent{Path: "no/such/binary"}
	if _, missing := a.binary("/"); !strings.Contains(missing, "/no/such/binary") {
		t.Errorf("told %q", missing)
	}
}

func TestWorkloadsNameAgentsThatExist(t *testing.T) {
	agents, err := LoadAgents("../agents")
	if err != nil {
		t.Fatal(err)
	}
	for name := range presets("node.txt") {
		p, err := Workload(name, "../..")
		if err != nil {
			t.Fatal(err)
		}
		picked, err := Select(agents, p.Agents)
		if err != nil || len(picked) < 2 {
			t.Errorf("%s: %d agents, %v", name, len(picked), err)
		}
		if window := p.Interval * time.Duration(p.Intervals); window < 20*time.Second {
			t.Errorf("%s: its window is %v", name, window)
		}
	}
	if _, err := Workload("none", "."); err == nil || !strings.Contains(err.Error(), "node-fast") {
		t.Errorf("an unknown workload: %v", err)
	}
}

// The lines of each workload are in the scrape configurations of the agents that run on it.
func TestScrapeConfigurationsTakeTheLinesOfAWorkload(t *testing.T) {
	all, err := LoadAgents("../agents")
	if err != nil {
		t.Fatal(err)
	}
	for name, preset := range presets(nodePage) {
		agents, err := Select(all, preset.Agents)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range agents {
			view := agentView{
				Config: filepath.Join(t.TempDir(), "config.yaml"), Dir: t.TempDir(), Targets: "/targets.json", Interval: time.Second,
				SinkHTTP: "127.0.0.1:1", SinkGRPC: "127.0.0.1:2", Scrape: preset.Scrape,
			}
			if _, err := a.render(view); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(view.Config)
			if err != nil {
				t.Fatal(err)
			}
			var config any
			if err := yaml.Unmarshal(text, &config); err != nil {
				t.Fatalf("%s on %s: %v\n%s", a.Name, name, err, text)
			}
			scrape := section(config)
			for _, line := range preset.Scrape {
				key, _, _ := strings.Cut(line, ":")
				if _, ok := scrape[key]; !ok {
					t.Errorf("%s on %s has no %s where its targets are:\n%s", a.Name, name, key, text)
				}
			}
		}
	}
	if _, err := withScrape("receivers: {}", []string{"scheme: https"}); err == nil {
		t.Error("lines were put where no targets are")
	}
}

// section returns the map with file_sd_configs.
func section(config any) map[string]any {
	var inside []any
	switch c := config.(type) {
	case map[string]any:
		if _, ok := c["file_sd_configs"]; ok {
			return c
		}
		for _, v := range c {
			inside = append(inside, v)
		}
	case []any:
		inside = c
	}
	for _, v := range inside {
		if found := section(v); found != nil {
			return found
		}
	}
	return nil
}
