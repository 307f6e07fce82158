// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"net/url"
	"strings"

	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// URL returns a URL or an address without its user and the values of its query. It does not have to be a valid one: what
// cannot be read as a URL may be one with a password that is not escaped.
func URL(text string) string {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		scheme, rest = "", text
	} else {
		scheme += "://"
	}
	before, fragment, named := strings.Cut(withoutUser(rest, text), "#")
	before, query, asked := strings.Cut(before, "?")
	if asked {
		before += "?" + withoutValues(query)
	}
	if named {
		before += "#" + fragment
	}
	return scheme + before
}

// withoutUser hides what is before the host. rest is the URL without its scheme.
func withoutUser(rest, whole string) string {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@')
	if at < 0 {
		if _, err := url.Parse(whole); err != nil || len(whole) == len(rest) && strings.ContainsRune(rest[:end], ':') {
			at = strings.LastIndexByte(rest, '@')
		}
	}
	if at < 0 {
		return rest
	}
	return Mark + rest[at:]
}

// withoutValues keeps the names of parameters.
func withoutValues(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, _, valued := strings.Cut(pair, "=")
		switch {
		case valued:
			pairs[i] = name + "=" + Mark
		case name != "":
			pairs[i] = Mark
		}
	}
	return strings.Join(pairs, "&")
}

// link matches a URL in a text: up to the closing quote, or else up to a space.
var link = lazyregexp.New(`"[A-Za-z][A-Za-z0-9+.-]*://(?:[^"\\]|\\.)*"|'[A-Za-z][A-Za-z0-9+.-]*://[^'\s]*'|[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]*`)

// URLs returns a text whose URLs are without their users and the values of their queries.
func URLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return link().ReplaceAllStringFunc(text, func(found string) string {
		if quote := found[:1]; quote == `"` || quote == `'` {
			return quote + URL(found[1:len(found)-1]) + quote
		}
		address := strings.TrimRight(found, ".,:;") // which belong to the sentence
		return URL(address) + found[len(address):]
	})
}
