// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADrawingIsXMLAndShowsEverything(t *testing.T) {
	svg := Chart{
		Title: "a < b", XLabel: "seconds", YLabel: "items/s",
		Lines: []Line{{"one", []Point{{0, 90}, {10, 0}}}, {"two", []Point{{5, 45}}}},
		Marks: []Mark{{5, "now"}},
	}.SVG()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	for _, want := range []string{"a &lt; b", "seconds", "items/s", ">one<", ">two<", ">now<", `points="70.0,56.0 600.0,270.0"`, `points="335.0,163.0"`} {
		assert.Contains(t, svg, want)
	}
	assert.Contains(t, Chart{}.SVG(), "</svg>", "nothing to draw is no reason to fail")
}

func TestTicksAreRound(t *testing.T) {
	f := func(high float64, want ...float64) {
		t.Helper()
		assert.InDeltaSlice(t, want, scale{high: high}.ticks(), 1e-9)
	}
	f(1, 0, 0.2, 0.4, 0.6, 0.8, 1)
	f(6.4, 0, 1, 2, 3, 4, 5, 6)
	f(3700, 0, 500, 1000, 1500, 2000, 2500, 3000, 3500)
}
