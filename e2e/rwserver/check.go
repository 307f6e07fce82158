// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package rwserver

import (
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// Both versions require labels that are sorted by name, unique and not empty.
func (m *message) checkLabels(lset []labels.Label) {
	last := ""
	named := false
	for i, l := range lset {
		switch {
		case l.Name == "":
			m.violate("empty label name in %v", lset)
		case l.Value == "":
			m.violate("empty value of label %q in %v", l.Name, lset)
		case i > 0 && l.Name == last:
			m.violate("label %q twice in %v", l.Name, lset)
		case i > 0 && l.Name < last:
			m.violate("label %q after %q in %v", l.Name, last, lset)
		}
		if m.version == V1 && !model.LegacyValidation.IsValidLabelName(l.Name) {
			m.violate("label name %q is not of the 1.0 alphabet in %v", l.Name, lset)
		}
		if !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value) {
			m.violate("label %q=%q is not UTF-8", l.Name, l.Value)
		}
		named = named || l.Name == model.MetricNameLabel
		last = l.Name
	}
	if !named {
		m.violate("no metric name in %v", lset)
	}
}

func (m *message) checkLabelsV1(pairs []prompb.Label) {
	lset := make([]labels.Label, 0, len(pairs))
	for _, p := range pairs {
		lset = append(lset, labels.Label{Name: p.Name, Value: p.Value})
	}
	m.checkLabels(lset)
}

// The references were resolved before, so they are in range and their number is even.
func (m *message) checkLabelsV2(refs []uint32, symbols []string) {
	lset := make([]labels.Label, 0, len(refs)/2)
	for i := 0; i < len(refs); i += 2 {
		lset = append(lset, labels.Label{Name: symbols[refs[i]], Value: symbols[refs[i+1]]})
	}
	m.checkLabels(lset)
}

func (m *message) checkSymbols(req writev2.Request) {
	if len(req.Symbols) == 0 || req.Symbols[0] != "" {
		m.violate("the first symbol is not the empty string")
	}
	seen := make(map[string]bool, len(req.Symbols))
	for _, s := range req.Symbols {
		if seen[s] {
			m.violate("symbol %q twice", s)
		}
		seen[s] = true
	}
}

func (m *message) checkSeries(s Series) {
	switch {
	case len(s.Samples) > 0 && len(s.Histograms) > 0:
		m.violate("samples and histograms in one series %s", s.Labels)
	case m.version == V2 && len(s.Samples)+len(s.Histograms) == 0:
		m.violate("neither samples nor histograms in series %s", s.Labels)
	}
	if t, ok := s.firstStepBack(); ok {
		m.violate("timestamp %d of %s is not after the one before", t, s.Labels)
	}
}
