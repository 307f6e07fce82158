// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func encodingSample() *Stream {
	e := func(name string, bytes int64, sender, receiver float64) StreamEncoding {
		return StreamEncoding{Name: name, Targets: 50, Runs: []StreamEncodingRun{
			{Points: 1e6, Bytes: bytes, Sender: sender, Receiver: receiver}, {Points: 1e6, Bytes: bytes, Sender: sender, Receiver: receiver},
		}}
	}
	other := func(e StreamEncoding) StreamEncoding {
		e.Other = true
		return e
	}
	return &Stream{Name: "stream", Encodings: []StreamEncoding{
		e(EncodingNone, 0, 1, 0), e(EncodingOurs, 2e6, 1.2, 0.1),
		other(e(EncodingNoneOfOthers, 0, 1.5, 0)), other(e(EncodingSTEF, 3e6, 1.9, 0.2)),
		{Name: "otelarrow", Other: true, Failed: []string{"cannot start"}},
	}}
}

func TestEncodingsAreComparedLessWhatIsThereInAnyCase(t *testing.T) {
	s := encodingSample()
	got := map[string]string{}
	for _, g := range s.Goals() {
		got[g.What] = number(g.Got.Median) + " " + g.verdict()
	}
	for what, want := range map[string]string{
		"bytes a data point over otlpstream: a request per scrape":                "2 reached",
		"CPU a data point at both ends, otlpstream to STEF: a request per scrape": "0.50 reached",
	} {
		if got[what] != want {
			t.Errorf("%s: %q, want %q", what, got[what], want)
		}
	}
	text := s.Markdown()
	for _, want := range []string{
		"| otlpstream | a request per scrape | 2 | 300 | 200 | 100 | 0.50 |",
		"| stef, zstd | a request per scrape | 3 | 600 | 400 | 200 | 1 |",
		"- Failed: otelarrow, a request per scrape: cannot start\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestPartsOfEarlierRunsAreKeptAndSaySo(t *testing.T) {
	dir := t.TempDir()
	first := streamSample()
	first.Taken, first.Machine.Model = time.Unix(1_700_000_000, 0).UTC(), "an old one"
	if err := WriteStream(dir, first); err != nil {
		t.Fatal(err)
	}
	second := encodingSample()
	second.Command, second.Skipped = "second", []string{"cells: not asked for", "something else"}
	if err := KeepStream(dir, second, []string{"cells", "pipelines", "wire"}); err != nil {
		t.Fatal(err)
	}
	if len(second.Cells) == 0 || len(second.Wire) == 0 || !slices.Equal(second.Skipped, []string{"something else"}) {
		t.Errorf("%d cells, %d of wire, skipped %q", len(second.Cells), len(second.Wire), second.Skipped)
	}
	if want := "- Of an earlier run: cells, pipelines, wire, taken 2023-11-14 22:13 UTC on an old one, by `make bench-stream`\n"; !strings.Contains(second.Markdown(), want) {
		t.Errorf("%q is not in\n%s", want, second.Markdown())
	}
	if err := WriteStream(dir, second); err != nil {
		t.Fatal(err)
	}
	third := &Stream{Name: "stream", Wire: first.Wire}
	if err := KeepStream(dir, third, []string{"cells", "pipelines", "encodings"}); err != nil {
		t.Fatal(err)
	}
	if len(third.Earlier) != 2 || !slices.Equal(third.Earlier[0].Parts, []string{"cells", "pipelines"}) || !slices.Equal(third.Earlier[1].Parts, []string{"encodings"}) {
		t.Errorf("%+v", third.Earlier)
	}
}
