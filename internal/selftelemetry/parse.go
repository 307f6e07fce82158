// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package selftelemetry

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// maxLine limits the length of a line. The longest ones are descriptions.
const maxLine = 1 << 20

var (
	errLabels = errors.New("malformed labels")
	errName   = errors.New("no name")
	errValue  = errors.New("no number")
)

// Parse parses a page in the Prometheus text format, including quoted names. It handles each line by itself: comments,
// which contain the types, and timestamps are ignored. The format's own library is not used because it panics on some
// pages.
func Parse(page io.Reader, at time.Time) (*Snapshot, error) {
	s := &Snapshot{Time: at, samples: make(map[string][]sample)}
	lines := bufio.NewScanner(page)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		line := strings.Trim(lines.Text(), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		name, parsed, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("cannot parse line %d of the metrics: %w", n, err)
		}
		s.samples[name] = append(s.samples[name], parsed)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read line %d of the metrics: %w", n+1, err)
	}
	return s, nil
}

// parseLine reads `name{label="value",…} number` or `{"name",label="value",…} number`.
func parseLine(line string) (_ string, s sample, err error) {
	name, rest := line, ""
	if end := strings.IndexAny(line, "{ \t"); end >= 0 {
		name, rest = line[:end], trim(line[end:])
	}
	if labels, ok := strings.CutPrefix(rest, "{"); ok {
		if name, rest, err = s.parseLabels(name, labels); err != nil {
			return "", s, err
		}
	}
	if name == "" {
		return "", s, errName
	}
	number, _, _ := strings.Cut(strings.ReplaceAll(trim(rest), "\t", " "), " ")
	if s.value, err = strconv.ParseFloat(number, 64); err != nil {
		return "", s, errValue
	}
	return name, s, nil
}

// parseLabels parses the content of braces. A quoted string without a value is the metric's name.
func (s *sample) parseLabels(name, in string) (_, rest string, err error) {
	for in = trim(in); !strings.HasPrefix(in, "}"); in = trim(in) {
		var key string
		quoted := strings.HasPrefix(in, `"`)
		if quoted {
			if key, in, err = unquote(in); err != nil {
				return "", "", err
			}
		} else if end := strings.IndexAny(in, "=,} \t"); end > 0 {
			key, in = in[:end], in[end:]
		} else {
			return "", "", errLabels
		}
		in = trim(in)
		switch {
		case strings.HasPrefix(in, "="):
			l := label{name: key}
			if l.value, in, err = unquote(trim(in[1:])); err != nil {
				return "", "", err
			}
			s.labels = append(s.labels, l)
		case quoted && name == "":
			name = key
		default:
			return "", "", errLabels
		}
		in = trim(in)
		if !strings.HasPrefix(in, "}") {
			if !strings.HasPrefix(in, ",") {
				return "", "", errLabels
			}
			in = in[1:]
		}
	}
	return name, in[1:], nil
}

// unquote removes a quoted string from the front of in.
func unquote(in string) (value, rest string, err error) {
	if !strings.HasPrefix(in, `"`) {
		return "", "", errLabels
	}
	for i := 1; i < len(in); i++ {
		switch in[i] {
		case '\\':
			i++ // an escaped character does not end the string
		case '"':
			return unescape.Replace(in[1:i]), in[i+1:], nil
		}
	}
	return "", "", errLabels
}

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

func trim(s string) string { return strings.TrimLeft(s, " \t") }
