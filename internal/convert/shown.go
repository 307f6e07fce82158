// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/redact"
)

// Shown returns a writer for what a collector prints when it is run with these arguments. It removes from the output of
// `print-config` the secrets that the collector does not know of: in URLs, and under names that suggest one.
func Shown(w io.Writer, args []string) io.Writer {
	if !slices.Contains(args, "print-config") || slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, "--mode=unredacted") }) {
		return w
	}
	if i := slices.Index(args, "--mode"); i >= 0 && i+1 < len(args) && strings.EqualFold(args[i+1], "unredacted") {
		return w
	}
	return shown{w}
}

type shown struct{ io.Writer }

// Write is called once, with the whole configuration. Anything else is text.
func (s shown) Write(said []byte) (int, error) {
	if _, err := s.Writer.Write(withoutSecrets(said)); err != nil {
		return 0, err
	}
	return len(said), nil
}

func withoutSecrets(said []byte) []byte {
	var tree map[string]any
	if err := yaml.Unmarshal(said, &tree); err != nil || tree == nil {
		return []byte(redact.Text(string(said)))
	}
	clean, hidden := redact.Tree(tree)
	if hidden == 0 {
		return said
	}
	var out bytes.Buffer
	var err error
	if bytes.HasPrefix(said, []byte("{")) {
		encoder := json.NewEncoder(&out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(clean)
	} else {
		var text []byte
		text, err = yaml.Marshal(clean)
		out.Write(append(text, '\n'))
	}
	if err != nil { // it came from YAML
		return []byte(redact.Text(string(said)))
	}
	return out.Bytes()
}
