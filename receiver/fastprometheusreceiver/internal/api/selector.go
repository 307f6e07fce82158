// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// parseSelector reads a selector of series, such as {job="node",instance=~"a.*"}. Prometheus's own parser would bring
// the whole of its query language.
func parseSelector(text string) ([]*labels.Matcher, error) {
	s := scanner{strings.TrimSpace(text)}
	var out []*labels.Matcher
	if name := s.word(); name != "" {
		out = append(out, labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, name))
		if s.space(); s.rest == "" {
			return out, nil
		}
	}
	if !s.take("{") {
		return nil, fmt.Errorf("expected a brace at %q", s.rest)
	}
	for !s.take("}") {
		m, err := s.matcher()
		if err != nil {
			return nil, err
		}
		out = append(out, m)
		if !s.take(",") {
			if s.take("}") {
				break
			}
			return nil, fmt.Errorf("expected a comma or a brace at %q", s.rest)
		}
	}
	if s.space(); s.rest != "" {
		return nil, fmt.Errorf("expected nothing more, found %q", s.rest)
	}
	return out, nil
}

// A scanner has what is still to be read.
type scanner struct{ rest string }

func (s *scanner) space() { s.rest = strings.TrimLeft(s.rest, " \t\r\n") }

func (s *scanner) take(token string) bool {
	s.space()
	rest, found := strings.CutPrefix(s.rest, token)
	s.rest = rest
	return found
}

// word reads a name that needs no quotes, which may be of a metric.
func (s *scanner) word() string {
	s.space()
	n := 0
	for n < len(s.rest) && isWord(s.rest[n], n == 0) {
		n++
	}
	word := s.rest[:n]
	s.rest = s.rest[n:]
	return word
}

func isWord(c byte, first bool) bool {
	return c == '_' || c == ':' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || !first && '0' <= c && c <= '9'
}

func (s *scanner) matcher() (*labels.Matcher, error) {
	name := s.word()
	quoted := name == ""
	if quoted {
		var err error
		if name, err = s.quoted(); err != nil {
			return nil, err
		}
	}
	var kind labels.MatchType
	switch {
	case s.take("=~"):
		kind = labels.MatchRegexp
	case s.take("!~"):
		kind = labels.MatchNotRegexp
	case s.take("!="):
		kind = labels.MatchNotEqual
	case s.take("="):
		kind = labels.MatchEqual
	case quoted: // a metric's name may be given like this
		return labels.NewMatcher(labels.MatchEqual, model.MetricNameLabel, name)
	default:
		return nil, fmt.Errorf("expected an operator at %q", s.rest)
	}
	if !quoted && strings.Contains(name, ":") {
		return nil, fmt.Errorf("the name of label %q needs quotes", name)
	}
	value, err := s.quoted()
	if err != nil {
		return nil, err
	}
	return labels.NewMatcher(kind, name, value)
}

// quoted reads a string in quotes of any kind.
func (s *scanner) quoted() (string, error) {
	s.space()
	if s.rest == "" || !strings.ContainsRune("\"'`", rune(s.rest[0])) {
		return "", fmt.Errorf("expected a quoted string at %q", s.rest)
	}
	quote := s.rest[0]
	s.rest = s.rest[1:]
	if quote == '`' {
		raw, rest, closed := strings.Cut(s.rest, "`")
		if !closed {
			return "", errors.New("a quoted string has no end")
		}
		s.rest = rest
		return raw, nil
	}
	var out strings.Builder
	for s.rest != "" && s.rest[0] != quote {
		if s.rest[0] == '\n' {
			break
		}
		c, wide, tail, err := strconv.UnquoteChar(s.rest, quote)
		if err != nil {
			return "", fmt.Errorf("cannot read a quoted string at %q: %w", s.rest, err)
		}
		if s.rest = tail; wide {
			out.WriteRune(c)
		} else {
			out.WriteByte(byte(c))
		}
	}
	if s.rest == "" || s.rest[0] != quote {
		return "", errors.New("a quoted string has no end")
	}
	s.rest = s.rest[1:]
	return out.String(), nil
}
