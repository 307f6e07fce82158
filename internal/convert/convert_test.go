// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/convert/detect"
)

var update = flag.Bool("update", false, "write what comes out as what is expected")

// An archive is a scenario: a description, then files, each after a line with its name.
type archive struct {
	about string
	names []string
	files map[string]string
}

func readArchive(t *testing.T, file string) archive {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	a := archive{files: map[string]string{}}
	name := ""
	for line := range strings.Lines(string(text)) {
		if inner, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(inner, " --") {
			name = strings.TrimSuffix(inner, " --")
			a.names = append(a.names, name)
			continue
		}
		if name == "" {
			a.about += line
		}
		a.files[name] += line
	}
	return a
}

func (a archive) write(t *testing.T, file string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(a.about)
	for _, name := range a.names {
		fmt.Fprintf(&b, "-- %s --\n%s", name, a.files[name])
	}
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
}

const (
	wantConfig = "want.yaml"
	wantReport = "want.report"
)

// source returns the files of an archive as the source of a conversion, as if they were in /etc/in. The first line of
// the description may set arguments, or what is picked.
func (a archive) source() Source {
	s := Source{Dir: "/etc/in", Distribution: "godwit-agent", Read: a.read, Glob: a.glob}
	first, _, _ := strings.Cut(a.about, "\n")
	if args, ok := strings.CutPrefix(first, "-- args: "); ok {
		s.Args = strings.Fields(args)
	}
	if pick, ok := strings.CutPrefix(first, "-- pick: "); ok {
		s.Pick = pick
	}
	for _, name := range a.names {
		if !strings.HasPrefix(name, "want.") && !strings.Contains(name, "/") && len(s.Args) == 0 {
			s.Files = append(s.Files, name)
		}
	}
	return s
}

func (a archive) read(name string) ([]byte, error) {
	text, ok := a.files[strings.TrimPrefix(name, "/etc/in/")]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (a archive) glob(pattern string) (names []string, err error) {
	for _, name := range a.names {
		if ok, err := path.Match(pattern, "/etc/in/"+name); err != nil {
			return nil, err
		} else if ok {
			names = append(names, "/etc/in/"+name)
		}
	}
	return names, nil
}

// Each scenario of testdata: input files, and the expected configuration and report.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.Greater(t, len(files), 10)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := readArchive(t, file)
			var report strings.Builder
			result, err := Run(a.source())
			if err != nil {
				fmt.Fprintln(&report, "Error:", err)
			} else {
				_, err := result.Report.WriteTo(&report)
				require.NoError(t, err)
			}
			if *update {
				a.names = slices.DeleteFunc(a.names, func(name string) bool { return strings.HasPrefix(name, "want.") })
				a.names = append(a.names, wantConfig, wantReport)
				a.files[wantConfig], a.files[wantReport] = string(result.Config), report.String()
				a.write(t, file)
				return
			}
			assert.Equal(t, a.files[wantConfig], string(result.Config))
			assert.Equal(t, a.files[wantReport], report.String())
		})
	}
}

var errGone = errors.New("gone")

func convertText(t *testing.T, from detect.Kind, text string) (Result, error) {
	t.Helper()
	return Run(Source{
		From: from, Files: []string{"input.yaml"}, Dir: "/etc/in", Distribution: "godwit",
		Read: func(name string) ([]byte, error) {
			if name != "input.yaml" {
				return nil, errGone
			}
			return []byte(text), nil
		},
		Glob: func(string) ([]string, error) { return nil, nil },
	})
}
