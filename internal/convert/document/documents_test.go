// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each document has its position in the stream, also after its marker. A line that only begins with dashes is no
// marker.
func TestDocuments(t *testing.T) {
	type at struct {
		text string
		line int
	}
	var found []at
	for document := range Documents([]byte("a\n--- {b: c}\n---\r\n# none\n---\td\n---- |\ne\n--- # Source\nf")) {
		root, err := ParseLoosely(document)
		require.NoError(t, err)
		if IsNull(root) {
			continue
		}
		if b := Find(root, "b"); b != nil {
			root = b
		}
		found = append(found, at{root.Value, root.Line})
	}
	assert.Equal(t, []at{{"a", 1}, {"c", 2}, {"d ---- | e", 5}, {"f", 9}}, found)
	assert.Equal(t, 2, FurtherDocument([]byte("a\n--- {b: c}\n")))
}
