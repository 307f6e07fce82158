// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import "github.com/godwit-otel/godwit/internal/inspect"

// Dropped is the state of targets that relabelling dropped, besides the states of scraped ones.
const Dropped = "dropped"

// Counts are numbers of targets, by state.
type Counts struct {
	Healthy   int `json:"healthy"`
	Failing   int `json:"failing"`
	Unknown   int `json:"unknown"`
	Dropped   int `json:"dropped"`
	Elsewhere int `json:"elsewhere"`
}

// Add adds the counts of a receiver.
func (c *Counts) Add(states map[string]int) {
	c.Healthy += states[inspect.Healthy]
	c.Failing += states[inspect.Failing]
	c.Unknown += states[inspect.Unknown]
	c.Dropped += states[Dropped]
	c.Elsewhere += states["elsewhere"]
}
