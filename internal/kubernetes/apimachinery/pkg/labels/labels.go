// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package labels checks label selectors. The API evaluates them.
package labels

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Selector is a valid selector.
type Selector string

// Parse parses requirements, separated by commas: key, !key, key=value, key==value, key!=value, key>1, key<1, key in
// (a,b) and key notin (a,b).
func Parse(selector string) (Selector, error) {
	p := parser{tokens: scan(selector)}
	for p.next() != "" {
		if err := p.requirement(); err != nil {
			return "", fmt.Errorf("unable to parse requirement: %w", err)
		}
		switch end := p.take(); {
		case end == "":
			return Selector(selector), nil
		case end != ",":
			return "", fmt.Errorf("found '%s', expected: ',' or 'end of string'", end)
		case !isWord(p.next()) && p.next() != "!":
			return "", fmt.Errorf("found '%s', expected: identifier after ','", p.next())
		}
	}
	return Selector(selector), nil
}

const (
	symbols = "=!(),><"
	spaces  = " \t\r\n"
)

// scan splits a selector into words and operators.
func scan(s string) (tokens []string) {
	for {
		if s = strings.TrimLeft(s, spaces); s == "" {
			return tokens
		}
		n := strings.IndexAny(s, symbols+spaces)
		switch {
		case n < 0:
			n = len(s)
		case n > 0:
		case strings.HasPrefix(s, "==") || strings.HasPrefix(s, "!="):
			n = 2
		default:
			n = 1
		}
		tokens, s = append(tokens, s[:n]), s[n:]
	}
}

func isWord(token string) bool {
	return token != "" && !strings.ContainsAny(token, symbols)
}

type parser struct {
	tokens []string
}

// next returns the token that take will return, "" at the end.
func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) take() string {
	token := p.next()
	p.tokens = p.tokens[min(1, len(p.tokens)):]
	return token
}

func (p *parser) requirement() error {
	key, negated := p.take(), false
	if key == "!" {
		key, negated = p.take(), true
	}
	if !isWord(key) {
		return fmt.Errorf("found '%s', expected: identifier", key)
	}
	if !isKey(key) {
		return fmt.Errorf("invalid label key %q", key)
	}
	if end := p.next(); end == "" || end == "," || negated {
		return nil
	}
	var values []string
	var err error
	switch operator := p.take(); operator {
	case "in", "notin":
		values, err = p.values()
	case "=", "==", "!=":
		values, err = p.value()
	case ">", "<":
		values, err = p.value()
		if err == nil {
			_, err = strconv.ParseInt(values[0], 10, 64)
		}
	default:
		return fmt.Errorf("found '%s', expected: in, notin, =, ==, !=, >, <", operator)
	}
	if i := slices.IndexFunc(values, func(v string) bool { return !isValue(v) }); err == nil && i >= 0 {
		err = fmt.Errorf("invalid label value %q of %s", values[i], key)
	}
	return err
}

// value parses one word, or none.
func (p *parser) value() ([]string, error) {
	if end := p.next(); end == "" || end == "," {
		return []string{""}, nil
	}
	word := p.take()
	if !isWord(word) {
		return nil, fmt.Errorf("found '%s', expected: identifier", word)
	}
	return []string{word}, nil
}

// values parses words in parentheses, separated by commas. Some may be missing.
func (p *parser) values() (all []string, err error) {
	if open := p.take(); open != "(" {
		return nil, fmt.Errorf("found '%s' expected: '('", open)
	}
	for word := false; ; {
		switch token := p.take(); {
		case token == ")":
			return all, nil
		case token == ",":
			word = false
		case isWord(token) && !word:
			all, word = append(all, token), true
		default:
			return nil, fmt.Errorf("found '%s', expected: ',' or ')'", token)
		}
	}
}

var patterns = sync.OnceValue(func() (p struct{ name, domain *regexp.Regexp }) {
	p.name = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`)
	p.domain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	return p
})

// isKey reports whether a key is valid: a name, or a domain, a slash and a name.
func isKey(key string) bool {
	name := key
	if domain, rest, ok := strings.Cut(key, "/"); ok {
		if len(domain) > 253 || !patterns().domain.MatchString(domain) {
			return false
		}
		name = rest
	}
	return len(name) <= 63 && patterns().name.MatchString(name)
}

func isValue(value string) bool {
	return value == "" || len(value) <= 63 && patterns().name.MatchString(value)
}
