// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-otel/godwit/internal/redact"
	"github.com/godwit-otel/godwit/internal/typo"
)

// Plain returns a writer that rewrites a collector's errors as `validate` does: in plain words, with file and line.
func Plain(w io.Writer) io.Writer { return plain{w} }

type plain struct{ io.Writer }

func (p plain) Write(said []byte) (int, error) {
	text := string(said)
	if os.Getenv(inner) == "" { // otherwise the process that started this one rewrites it
		text = plainly(text)
	}
	if _, err := io.WriteString(p.Writer, text); err != nil {
		return 0, err
	}
	return len(said), nil
}

var (
	decoding = regexp.MustCompile(`decoding failed due to the following error\(s\):\s+`)
	reading  = regexp.MustCompile(`'([a-z]+)' error reading configuration for "([^"]+)": `)
	// failed matches the error of a component that cannot be made or started.
	failed = regexp.MustCompile(`(?:failed to build pipelines: |cannot start pipelines: )?failed to (create|start) "([^"]+)" ` +
		`(receiver|processor|exporter|connector)(?: for data type "[^"]+"|, in pipeline "[^"]+")?: `)
	failedExtension = regexp.MustCompile(`(?:failed to build extensions: )?failed to create extension "([^"]+)": `)
	nameless        = regexp.MustCompile(`scrape_configs\[(\d+)\]: job_name is empty`)
	// served matches an error of the service, with its path; system one of the operating system about an address or a
	// file.
	served = regexp.MustCompile(`^(?:Error: )?(service(?:::[^:\s]+)+): `)
	system = regexp.MustCompile(`: (?:listen \w+|open|mkdir|stat|read|readlink) `)
	// judged matches a component's error about its own configuration, keyed a key that it names, placed a line number
	// that it has already.
	judged = regexp.MustCompile(`\b(receivers|processors|exporters|extensions|connectors)::([^:\s]+): `)
	keyed  = regexp.MustCompile("`([a-z0-9_]+(?:\\[[0-9]+\\])?(?:(?:::|\\.)[a-z0-9_]+(?:\\[[0-9]+\\])?)*)`")
	placed = regexp.MustCompile(`\([^()]*:[0-9]+\)`)
)

// inUse is the system's error for a port in use.
const inUse = "bind: address already in use"

// plainly rewrites the collector's errors without what does not help to understand them, and without secrets.
func plainly(text string) string {
	text = strings.ReplaceAll(text, "failed to get config: cannot unmarshal the configuration: ", "")
	text = decoding.ReplaceAllString(text, "")
	text = reading.ReplaceAllString(text, "$1::$2: ")
	text = strings.ReplaceAll(text, "Error: invalid configuration: ", "Error: ")
	text = failed.ReplaceAllString(text, "${3}s::$2: cannot $1: ")
	text = failedExtension.ReplaceAllString(text, "extensions::$1: cannot create: ")
	text = nameless.ReplaceAllString(text, "`scrape_configs[$1]` must have a `job_name`")
	text = strings.ReplaceAll(text, inUse, inUse+": something listens there already; stop it, or choose another port")
	text = strings.ReplaceAll(text, ": '' ", ": ")
	text = strings.ReplaceAll(text, "'config' cannot read `config`: ", "cannot read `config`: ")
	return redact.Text(located(typo.Plainly(text)))
}

// located adds the file and line of the key, or else of the component, to a component's errors about its configuration.
func located(text string) string {
	lines := strings.Split(text, "\n")
	var component []string
	for i, line := range lines {
		if match := judged.FindStringSubmatch(line); match != nil {
			component = match[1:]
		} else if !strings.HasPrefix(line, "`") { // otherwise it is another error of the same component
			component = nil
		}
		if placed.MatchString(line) || component == nil && !strings.HasPrefix(line, "Error: ") {
			continue
		}
		if match := served.FindStringSubmatch(line); match != nil {
			lines[i] += typo.PlaceOf(strings.Split(match[1], "::")...)
			continue
		}
		lines[i] += placeOf(component, line)
	}
	return strings.Join(lines, "\n")
}

// placeOf returns the place of the first key that a line names, or of a second one within it. If the key is not
// present, it returns the place of its parent, or of a value that the line mentions, or else of the component.
func placeOf(component []string, line string) string {
	if system.MatchString(line) {
		if where := typo.PlaceOfMentioned(line, component...); where != "" {
			return where
		}
	}
	path := component
	keys := keyed.FindAllStringSubmatch(line, 2)
	if len(keys) > 0 {
		path = slices.Concat(component, steps(keys[0][1]))
	}
	if len(keys) > 1 {
		if where := typo.PlaceOf(slices.Concat(path, steps(keys[1][1]))...); where != "" {
			return where
		}
	}
	for ; len(path) > len(component); path = path[:len(path)-1] {
		if where := typo.PlaceOf(path...); where != "" {
			return where
		}
	}
	if where := typo.PlaceOfMentioned(line, component...); where != "" || component == nil {
		return where
	}
	return typo.PlaceOf(component...)
}

// steps splits the path of a key in the forms that components use: a.b[0], a::b::0.
func steps(path string) []string {
	parts := typo.Steps(strings.ReplaceAll(path, "::", "."))
	for i, part := range parts {
		if _, err := strconv.Atoi(part); err == nil {
			parts[i] = "[" + part + "]"
		}
	}
	return parts
}
