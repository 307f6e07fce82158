// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package repository

import "strings"

// Block is a fenced code block of a document.
type Block struct {
	// Line is the number of the block's first line, counted from 1.
	Line int
	// Language is what follows the opening fence.
	Language string
	// Comment is the text of an HTML comment that stands alone on the last non-empty line before the fence.
	Comment string
	// Text is the block without the indentation of its fence.
	Text string
}

const fence = "```"

// Blocks returns the fenced code blocks of a Markdown document.
func Blocks(markdown string) []Block {
	var blocks []Block
	var inside *Block
	var indent, comment string
	number := 0
	for line := range strings.Lines(markdown) {
		number++
		trimmed := strings.TrimSpace(line)
		switch {
		case inside != nil && trimmed == fence:
			blocks = append(blocks, *inside)
			inside, comment = nil, ""
		case inside != nil:
			inside.Text += strings.TrimPrefix(line, indent)
		case strings.HasPrefix(trimmed, fence):
			indent, _, _ = strings.Cut(line, fence)
			inside = &Block{Line: number + 1, Language: strings.TrimSpace(trimmed[len(fence):]), Comment: comment}
		case strings.HasPrefix(trimmed, "<!--") && strings.HasSuffix(trimmed, "-->"):
			comment = strings.TrimSpace(trimmed[len("<!--") : len(trimmed)-len("-->")])
		case trimmed != "":
			comment = ""
		}
	}
	return blocks
}
