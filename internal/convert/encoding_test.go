// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/internal/convert/detect"
	"github.com/godwit-otel/godwit/internal/convert/document"
)

// Files in the encodings of editors and shells on Windows are converted like others, including units and manifests.
func TestFilesOfWindows(t *testing.T) {
	utf16Of := func(mark string, order binary.AppendByteOrder) func(string) string {
		return func(text string) string {
			made := []byte(mark)
			for _, unit := range utf16.Encode([]rune(text)) {
				made = order.AppendUint16(made, unit)
			}
			return string(made)
		}
	}
	for name, text := range map[string]string{
		"a.yml":     aPrometheus,
		"a.yaml":    aManifest,
		"a.service": "[Service]\nExecStart=/usr/bin/vmagent \\\n  -remoteWrite.url=http://a\n",
	} {
		want, err := convertText(t, detect.Auto, text)
		require.NoError(t, err)
		for how, written := range map[string]func(string) string{
			"CRLF": func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") },
			"mark": func(text string) string { return "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n") },
			"LE":   utf16Of("\xff\xfe", binary.LittleEndian),
			"BE":   utf16Of("\xfe\xff", binary.BigEndian),
		} {
			got, err := convertText(t, detect.Auto, written(text))
			require.NoError(t, err, "%s %s", name, how)
			assert.Equal(t, string(want.Config), string(got.Config), "%s %s", name, how)
			assert.Equal(t, want.Report, got.Report, "%s %s", name, how)
		}
	}
	assert.Equal(t, "\xff\xfea", string(document.Readable([]byte("\xff\xfea"))), "half a sign")
}
