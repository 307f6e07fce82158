// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenario reads and writes scenarios: text archives with the input of a collector, what arrives behind it, and
// its own metrics. See testdata/scenarios.
package scenario

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// Scenario is one archive.
type Scenario struct {
	// Config is merged into the configuration that all tests of a collector share. $TARGET, $OTLP and $SINK are
	// addresses, and $OWN is a free one for what the collector sends to itself.
	Config string
	// Pages are what the target serves, one per scrape; the last one is repeated. Files "page", or "page <status>".
	Pages []Page
	// Sends are OTLP requests with metrics, in order. Files "send".
	Sends []string
	// Answers are the destination's responses to its first requests. File "answers": one status per line.
	Answers []int
	// Arrived is what the destination has in the end, and Telemetry the collector's metrics. Files "arrived", or
	// "arrived last" if only the last value of each series is certain, and "telemetry".
	Arrived, Telemetry string
	OnlyLast           bool
	// Metrics are the names of the metrics in Telemetry.
	Metrics []string

	archive *txtar.Archive
}

// Page is a response to a scrape.
type Page struct {
	Status int
	Body   string
}

// Read reads a scenario's file.
func Read(t testing.TB, file string) *Scenario {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	s := &Scenario{archive: archive}
	for _, f := range archive.Files {
		name, argument, _ := strings.Cut(f.Name, " ")
		switch text := string(f.Data); name {
		case "config.yaml":
			s.Config = text
		case "page":
			p := Page{Body: text}
			if argument != "" {
				p.Status, err = strconv.Atoi(argument)
				require.NoError(t, err, f.Name)
			}
			s.Pages = append(s.Pages, p)
		case "send":
			s.Sends = append(s.Sends, text)
		case "answers":
			for line := range strings.FieldsSeq(text) {
				status, err := strconv.Atoi(line)
				require.NoError(t, err, "an answer is a status")
				s.Answers = append(s.Answers, status)
			}
		case arrived:
			s.Arrived, s.OnlyLast = text, argument == "last"
		case telemetry:
			s.Telemetry, s.Metrics = text, namesOf(text)
		default:
			t.Fatalf("%s: nothing reads the file %q of it", file, f.Name)
		}
	}
	return s
}

const (
	arrived   = "arrived"
	telemetry = "telemetry"
)

// Write writes the file with the actual results.
func (s *Scenario) Write(t testing.TB, file string) {
	t.Helper()
	for name, text := range map[string]string{arrived: s.Arrived, telemetry: s.Telemetry} {
		i := slices.IndexFunc(s.archive.Files, func(f txtar.File) bool {
			first, _, _ := strings.Cut(f.Name, " ")
			return first == name
		})
		require.GreaterOrEqual(t, i, 0, "%s has no file %q", file, name)
		s.archive.Files[i].Data = []byte(text)
	}
	require.NoError(t, os.WriteFile(file, bytes.TrimLeft(txtar.Format(s.archive), "\n"), 0o600))
}

func namesOf(text string) (names []string) {
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ = strings.Cut(name, "{")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Lines sorts lines and joins them.
func Lines(lines []string) string {
	slices.Sort(lines)
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}
