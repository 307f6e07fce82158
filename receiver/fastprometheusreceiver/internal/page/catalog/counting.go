// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

// mostCounted limits the values of a page that are counted: values that many lines have come early.
const mostCounted = 1 << 12

type labelPair struct{ name, value string }

// counted is how many times a page has a label with a value.
type counted struct {
	labelPair

	times int
}

// counting counts the labels of a page. For pages that always have many new lines it is done often, and mostly without
// a result.
type counting struct {
	at   map[labelPair]int
	seen []counted // in the order of the page
}

// fewCounted is the number of labels up to which memory is kept.
const fewCounted = 1 << 10

// count counts the labels of a page's series, and the series.
func (n *counting) count(r *reread, t *Identity, lines []*Line) (series int) {
	if n.at == nil {
		n.at = map[labelPair]int{}
	}
	for _, l := range lines {
		if l.Kind != SeriesLine {
			continue
		}
		series++
		if e, ok := r.line(l, t.Own); ok && e.Labels() <= mostShapedLabels {
			for i := range e.Labels() {
				name, value := e.Label(i)
				if i, ok := n.at[labelPair{string(name), string(value)}]; ok {
					n.seen[i].times++
				} else if len(n.seen) < mostCounted {
					pair := labelPair{string(name), string(value)}
					n.at[pair] = len(n.seen)
					n.seen = append(n.seen, counted{pair, 1})
				}
			}
		}
	}
	return series
}

// clear removes all counts.
func (n *counting) clear() {
	if len(n.seen) > fewCounted {
		*n = counting{}
		return
	}
	clear(n.at)
	clear(n.seen)
	n.seen = n.seen[:0]
}
