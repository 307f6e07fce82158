// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package redact removes what is secret, or may be, from text and configurations.
//
// It goes by names, since it does not know types, and in text by what secrets look like. Of a URL it removes
// the user and all values of the query. It removes too much rather than too little: a removed value can be looked up in
// the configuration.
package redact

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// Mark replaces what was removed.
const Mark = "[REDACTED]"

// Names are in lower case and without separators between words.
var (
	// Parts of names with secret values.
	secretParts = strings.Fields("password passwd passphrase secret token credential apikey accesskey privatekey sharedkey signingkey " +
		"encryptionkey accountkey masterkey licensekey keypem authorization cookie bearer connectionstring dsn datasource sessionid " +
		"signature jwt saslscram htpasswd webhookurl webhook")

	// Whole names with secret values.
	secretNames = set("auth pass pwd sig code sas xapikey appkey integrationkey routingkey servicekey clientassertion inline")

	// Ends of names with values that say where a secret is or how it is handled, not what it is.
	harmlessEnds = strings.Fields("file path url ref refreshinterval interval timeout ttl expiry expiration enabled type name scheme " +
		"header headers length size limit source sources audience lifetime extension")

	// Names of maps and lists in which all values may be secret.
	secretMaps = set("headers responseheaders httpheaders extraheaders requestheaders proxyconnectheader environment env params " +
		"endpointparams queryparams")

	// Names of maps that contain both settings and secrets, with names that tell them apart.
	settings = set("auth authorization")

	// Keys of names and values in lists of pairs.
	pairNames, pairValues = set("name key header"), set("value values default")
)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		out[word] = true
	}
	return out
}

// simple returns a name in lower case and without separators between words.
func simple(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case r == '_', r == '-', r == '.', r == ' ', r == ':', r == '/':
			return -1
		}
		return r
	}, name)
}

// Secret reports whether a value with this name may be secret.
func Secret(name string) bool {
	s := simple(name)
	if secretNames[s] {
		return true
	}
	for _, part := range secretParts {
		if !strings.Contains(s, part) {
			continue
		}
		for _, end := range harmlessEnds {
			if strings.HasSuffix(s, end) && !strings.HasSuffix(part, end) {
				return false
			}
		}
		return true
	}
	return false
}

// Tree returns a Collector's configuration without its secrets, and the number of secrets.
func Tree(tree map[string]any) (clean map[string]any, hidden int) {
	clean = make(map[string]any, len(tree))
	for section, below := range tree {
		components, ok := below.(map[string]any)
		if !ok {
			components, ok = map[string]any{section: below}, false
		}
		cleaned := make(map[string]any, len(components))
		for id, below := range components { // a component's name, such as bearertokenauth, makes nothing secret
			c, n := cleanValue(below, !ok && Secret(section))
			cleaned[id] = c
			hidden += n
		}
		clean[section] = cleaned
		if !ok {
			clean[section] = cleaned[section]
		}
	}
	return clean, hidden
}

// cleanValue removes secrets from the value of a name, or all of it if all is set.
func cleanValue(value any, all bool) (any, int) {
	switch v := value.(type) {
	case map[string]any:
		return cleanObject(v, all)
	case map[any]any:
		object := make(map[string]any, len(v))
		for name, below := range v {
			object[fmt.Sprint(name)] = below
		}
		return cleanObject(object, all)
	case []any:
		out, hidden := make([]any, len(v)), 0
		for i, below := range v {
			clean, n := cleanValue(below, all)
			out[i] = clean
			hidden += n
		}
		return out, hidden
	case nil, bool:
		return v, 0 // these contain no secrets
	case string:
		if v == "" {
			return v, 0
		}
		if all {
			return Mark, 1
		}
		clean := Text(v)
		if clean != v {
			return clean, 1
		}
		return v, strings.Count(v, Mark)
	}
	if all {
		return Mark, 1
	}
	switch value.(type) {
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return value, 0
	}
	return cleanValue(fmt.Sprint(value), all) // values with a String method are formatted here, so that the text is checked
}

func cleanObject(object map[string]any, all bool) (any, int) {
	out, hidden := make(map[string]any, len(object)), 0
	// A list of names and values, such as headers, is treated like a map.
	paired := false
	for key := range pairNames {
		if name, ok := object[key].(string); ok && Secret(name) {
			paired = true
		}
	}
	for name, below := range object {
		s := simple(name)
		secret := Secret(name) || secretMaps[s] && isMany(below) || paired && pairValues[s]
		if settings[s] && isMap(below) {
			secret = false
		}
		if all {
			secret = !pairNames[s]
		}
		clean, n := cleanValue(below, secret)
		out[name] = clean
		hidden += n
	}
	return out, hidden
}

func isMap(value any) bool {
	switch value.(type) {
	case map[string]any, map[any]any:
		return true
	}
	return false
}

func isMany(value any) bool {
	_, list := value.([]any)
	return list || isMap(value)
}

// Label returns the value of a label without its secrets. Labels of discovery may contain parameters of URLs and
// annotations.
func Label(name, value string) string {
	if value != "" && (strings.HasPrefix(name, "__param_") || strings.HasPrefix(name, "__") && Secret(name)) {
		return Mark
	}
	return Text(value)
}

// A pattern is tried only if the text contains one of the words: most texts contain no secrets, and should cost little.
var patterns = []struct {
	words []string
	like  func() *regexp.Regexp
	with  string
}{
	{[]string{"@"}, lazyregexp.New(`\b((?:address|lookup) )[^\s"]*@`), "${1}" + Mark + "@"}, // of an address that has more colons or slashes
	{[]string{"@"}, lazyregexp.New(`([A-Za-z0-9._%+-]+:)[^\s@/:"'<>]+@`), "${1}" + Mark + "@"},
	{[]string{"invalid port"}, lazyregexp.New(`invalid port "[^"]*" after host`), "invalid port after host"}, // part of a password, if that has a slash
	{[]string{" ", "\t", "\n"}, lazyregexp.New(`(?i)\b(bearer)(\s+)[A-Za-z0-9._~+/=-]{6,}`), "${1}${2}" + Mark},
	// These are also words of sentences: "token expired", "basic authentication".
	{[]string{" ", "\t", "\n"}, lazyregexp.New(`\b((?i:basic|digest|negotiate|token))(\s+)[a-z.-]*[A-Z0-9_~+/=][A-Za-z0-9._~+/=-]{2,}`), "${1}${2}" + Mark},
	{[]string{"eyJ"}, lazyregexp.New(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*(\.[A-Za-z0-9_-]*)?`), Mark},
	{[]string{"-----BEGIN"}, lazyregexp.New(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*-----|$)`), Mark},
	{[]string{"AKIA", "ASIA"}, lazyregexp.New(`\b(AKIA|ASIA)[A-Z0-9]{12,}`), Mark},
	{[]string{"gh", "glpat", "xox", "sk", "pk", "rk"}, lazyregexp.New(`\b(gh[pousr]|glpat|xox[abprs]|sk|pk|rk)[_-][A-Za-z0-9_-]{16,}`), Mark},
	{[]string{"glc_", "glsa_", "github_pat_", "dt0c01.", "NRAK-"}, lazyregexp.New(`\b(glc_|glsa_|github_pat_|dt0c01\.|NRAK-)[A-Za-z0-9_.=-]{10,}`), Mark},
}

var (
	// parameter matches name=value, as in queries and in connection strings.
	parameter = lazyregexp.New(`([A-Za-z0-9_.%\[\]-]+)(\s*=\s*)("[^"]*"|'[^']*'|[^&;\s"'#]+)`)
	// member matches a member of an object in JSON, also within a quoted text.
	member = lazyregexp.New(`([A-Za-z0-9_.-]+)(\\*"\s*:\s*\\*")([^"\\]+)`)
	// header matches a header of several words, or one that says who asks. What follows a single word and a colon is
	// more often the cause of an error.
	header = lazyregexp.New(`(?i)\b([a-z0-9]+(?:-[a-z0-9]+)+|authorization|cookie)(:[ \t]*(?:(?:bearer|basic|digest|negotiate|token)[ \t]+)?)([^\r\n"\\]+)`)
)

// Text returns a text without the secrets that it recognises.
func Text(text string) string {
	text = URLs(text)
	if strings.ContainsRune(text, '=') {
		text = named(text, parameter, func(name string) bool {
			if strings.ContainsRune(name, '%') {
				name = unescape(name)
			}
			return Secret(name) || simple(name) == "key"
		})
	}
	if strings.ContainsRune(text, ':') {
		text = named(named(text, member, Secret), header, Secret)
	}
	for _, p := range patterns {
		if slices.ContainsFunc(p.words, func(word string) bool { return strings.Contains(text, word) }) {
			text = p.like().ReplaceAllString(text, p.with)
		}
	}
	return text
}

// named hides the values of secret names. A match has a name, what is between, and the value.
func named(text string, pattern func() *regexp.Regexp, secret func(name string) bool) string {
	like := pattern()
	return like.ReplaceAllStringFunc(text, func(pair string) string {
		if parts := like.FindStringSubmatch(pair); secret(parts[1]) && !strings.HasPrefix(parts[3], Mark) {
			return parts[1] + parts[2] + Mark
		}
		return pair
	})
}

// Known returns a text without secrets that are known, whatever they look like.
func Known(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, Mark)
		}
	}
	return text
}

// Error returns an error whose text is without known secrets, and without those that Text recognises. It still is what
// err is.
func Error(err error, known ...string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := Text(Known(text, known)); clean != text {
		return &cleaned{clean, err}
	}
	return err
}

type cleaned struct {
	text string
	err  error
}

func (e *cleaned) Error() string { return e.text }
func (e *cleaned) Unwrap() error { return e.err }

var escaped = lazyregexp.New(`%[0-9A-Fa-f]{2}`)

func unescape(name string) string {
	return escaped().ReplaceAllStringFunc(name, func(code string) string {
		var b byte
		if _, err := fmt.Sscanf(code, "%%%02x", &b); err != nil {
			return code
		}
		return string(rune(b))
	})
}
