// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/repository"
)

var (
	linked  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// The characters that GitHub omits from a heading's anchor.
	unanchored = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// links returns the files of the repository that a document links to, with their anchors.
func links(name, text string) (files, anchors []string) {
	for _, match := range linked.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		target, anchor, _ := strings.Cut(match[1], "#")
		if strings.Contains(target, ":") {
			continue // outside of the repository
		}
		file := name
		if target != "" {
			file = path.Join(path.Dir(name), target)
		}
		files, anchors = append(files, file), append(anchors, anchor)
	}
	return files, anchors
}

func anchorsOf(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		title := strings.ToLower(linkText.ReplaceAllString(match[1], "$1"))
		found[strings.ReplaceAll(unanchored.ReplaceAllString(title, ""), " ", "-")] = true
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	root := repository.Root(t)
	for _, name := range repository.Files(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		files, anchors := links(name, repository.Read(t, name))
		for i, file := range files {
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(file)))
			if assert.NoError(t, err, "%s links to %s", name, file) && anchors[i] != "" && path.Ext(file) == ".md" {
				assert.Contains(t, anchorsOf(repository.Read(t, file)), anchors[i], "%s links to a heading of %s", name, file)
			}
		}
	}
}

// Every document, including decisions and components' READMEs, is at most two clicks from the index.
func TestDocumentsAreTwoClicksFromTheIndex(t *testing.T) {
	t.Parallel()
	const index = "docs/README.md"
	near := map[string]bool{index: true}
	for range 2 {
		for name := range maps.Clone(near) {
			if path.Ext(name) != ".md" {
				continue
			}
			files, _ := links(name, repository.Read(t, name))
			for _, file := range files {
				near[file] = true
			}
		}
	}
	require.Greater(t, len(near), 30)
	for _, name := range repository.Files(t) {
		elsewhere := strings.HasPrefix(name, "benchmarks/") || strings.HasPrefix(name, ".github/") || strings.Contains(name, "/internal/") || path.Base(name) == "documentation.md"
		if path.Ext(name) != ".md" || elsewhere || near[name] || near[path.Dir(name)] {
			continue
		}
		t.Errorf("%s is not found from %s in two clicks", name, index)
	}
}

func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	t.Parallel()
	got := anchorsOf("# Every key\n## `wal`, and [more](a.md)!\n```\n# no heading\n```\n### prometheus_remote_write exporter\n")
	assert.Equal(t, map[string]bool{"every-key": true, "wal-and-more": true, "prometheus_remote_write-exporter": true}, got)
}
