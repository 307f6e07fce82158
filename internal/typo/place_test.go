// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package typo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnknownKeysComeWithTheirPlace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	LookIn(name, name+".missing", t.TempDir())
	defer LookIn()
	write("# a comment\na:\n  - {b: 1, endpont: http://a}\n")
	require.Equal(t, " ("+name+":3)", Place("endpont"))
	write("a: {endpont: }\nb: {endpont: }\n")
	require.Equal(t, " ("+name+":1 or "+name+":2)", Place("endpont"))
	write("a: endpont\n")
	require.Empty(t, Place("endpont"), "a value is no key")
	write(strings.Repeat("- {endpont: }\n", maxPlaces+1))
	require.Empty(t, Place("endpont"), "too many to be of use")
	write("a: {\n")
	require.Empty(t, Place("endpont"))
}

// An error of the system about an address or a file names the key that contains it, as the user wrote it.
func TestWhatIsMentionedComesWithItsKey(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(name, []byte(`extensions:
  a: {endpoint: localhost:4317, user: root, ratio: "1:2"}
  b:
    tls:
      ca_file: /etc/ca.pem
      cert_file: /etc/ca.pem.crt
      hint: see /etc/ca.pem or ask
    also: [localhost:4317]
`), 0o600))
	LookIn(name)
	defer LookIn()
	require.Equal(t, " (`extensions::a::endpoint`, "+name+":2)", PlaceOfMentioned("listen tcp localhost:4317: in use", "extensions", "a"))
	require.Equal(t, " (`extensions::a::endpoint`, "+name+":2)", PlaceOfMentioned("listen tcp 127.0.0.1:4317: in use", "extensions", "a"))
	require.Equal(t, " ("+name+":2 or "+name+":8)", PlaceOfMentioned("listen tcp 127.0.0.1:4317: in use"), "either may be it")
	require.Equal(t, " (`extensions::b::tls::ca_file`, "+name+":5)", PlaceOfMentioned("open /etc/ca.pem: no such file", "extensions", "b"))
	require.Equal(t, " (`extensions::b::tls::cert_file`, "+name+":6)", PlaceOfMentioned("open /etc/ca.pem.crt: no such file"), "the longest is it")
	require.Empty(t, PlaceOfMentioned("listen tcp 127.0.0.1:14317: in use, user is root"), "another port, and words")
	require.Empty(t, PlaceOfMentioned("open /etc/ca.pem: no such file", "extensions", "a"))
}

func TestValuesComeWithTheirPlace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(name, []byte(`exporters:
  a:
    size: 1
    queue: {size: many}
    rules:
      - max: 1
      - max: many
jobs:
  - job_name: one
    interval: 1s
  - job_name: two
    interval: 2s
    rules:
      - {regex: a}
`), 0o600))
	LookIn(name)
	defer LookIn()
	require.Equal(t, " ("+name+":4)", PlaceOf("queue", "size"))
	require.Equal(t, " ("+name+":7)", PlaceOf("rules", "[1]", "max"))
	require.Empty(t, PlaceOf("queue", "max"))
	require.Equal(t, " ("+name+":12)", PlaceIn("job_name", "two", "interval"))
	require.Equal(t, " ("+name+":14)", PlaceIn("job_name", "two", "rules", "[0]", "regex"))
	require.Empty(t, PlaceIn("job_name", "three", "interval"))

	for said, want := range map[string]string{
		"'queue.size' expected type 'int64', got unconvertible type 'string'":              "`queue::size` must be a whole number, not a text (" + name + ":4)",
		"'rules[1].max' expected type 'int', got unconvertible type 'string'":              "`rules::[1]::max` must be a whole number, not a text (" + name + ":7)",
		"'queue' expected a map or struct, got \"string\"":                                 "`queue` must be a mapping, not a text (" + name + ":4)",
		"'p[a].in' source data must be an array or slice, got string":                      "`p::a::in` must be a list, not a text",
		"'wait' time: unknown unit":                                                        "`wait` must be a duration such as 30s or 1m30s",
		"'on' expected type 'bool', got unconvertible type 'map[string]interface {}'":      "`on` must be true or false, not a mapping",
		"'all' expected type 'string', got unconvertible type '[]interface {}'\n'b' other": "`all` must be a text, not a list\n'b' other",
	} {
		require.Equal(t, want, Plainly(said))
	}
}

// The value of the wrong type is found, even if other values of the same key have the right one.
func TestPlacesAreThoseOfTheWrongType(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	LookIn(name)
	defer LookIn()
	const said = "'endpoint' expected type 'string', got unconvertible type 'int'"
	write("a: {endpoint: http://a}\nb: {endpoint: 13155}\n")
	require.Equal(t, "`endpoint` must be a text, not a whole number ("+name+":2)", Plainly(said))
	write("a: {endpoint: \"${env:PORT}\"}\nb: {endpoint: 13155}\n")
	require.Equal(t, "`endpoint` must be a text, not a whole number ("+name+":1 or "+name+":2)", Plainly(said))
	write("a: {endpoint: http://a}\nb: {endpoint: http://b}\n")
	require.Equal(t, "`endpoint` must be a text, not a whole number ("+name+":1 or "+name+":2)", Plainly(said), "it is not known which")
	write("a: {on: {b: 1}}\nb: {on: true}\n")
	require.Equal(t, "`on` must be true or false, not a mapping ("+name+":1)", Plainly("'on' expected type 'bool', got unconvertible type 'map[string]interface {}'"))
}
