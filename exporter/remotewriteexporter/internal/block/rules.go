// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/zeebo/xxh3"

	"github.com/godwit-otel/godwit/internal/inorder"
	"github.com/godwit-otel/godwit/internal/promwrite"
)

// Rules may take long for many labels, in part quadratically: series with more than this are not sent.
const (
	maxRuled       = 1 << 20
	maxRuledLabels = 2000
)

// Rules are the write_relabel_configs of one destination, applied to blocks that are made for all. Results are cached
// by series. Only one goroutine may use them.
type Rules struct {
	configs []*relabel.Config
	scheme  model.ValidationScheme
	sorted  labels.ScratchBuilder
	builder *labels.Builder

	seed uint64
	text []byte // labels of a series, to be hashed
	// known are results by a hash of a series' labels, before older ones. When there are too many, known becomes
	// before.
	known, before map[xxh3.Uint128]verdict
	most          int
}

// verdict is the result for a series: whether it is kept, and its labels if they changed.
type verdict struct {
	labels []promwrite.Label
	fate   fate
}

type fate uint8

const (
	same fate = iota
	changed
	unwanted
	unusable
)

// Left counts the samples and histograms that rules left out.
type Left struct {
	Dropped   int // that rules drop
	Unusable  int // of series without a valid name or label
	Duplicate int // with the series and time of another one, since rules made the series equal
}

// NewRules makes rules of valid configs. They cache the results for about most series.
func NewRules(configs []relabel.Config, scheme model.ValidationScheme, most int) *Rules {
	r := &Rules{scheme: scheme, builder: labels.NewBuilder(labels.EmptyLabels()), seed: rand.Uint64(), most: max(most/2, 1)} //nolint:gosec // it is no secret
	for i := range configs {
		c := configs[i]
		r.configs = append(r.configs, &c)
	}
	r.known = map[xxh3.Uint128]verdict{}
	return r
}

// Relabel returns what rules leave of b: the zero block if that is nothing.
func (r *Rules) Relabel(b Block, level int) (Block, Left, error) {
	made, left, err := r.relabel(b, level)
	if err != nil {
		return Block{}, left, fmt.Errorf("cannot apply rules to a block of %s: %w", b.Version, err)
	}
	return made, left, nil
}

func (r *Rules) relabel(b Block, level int) (made Block, left Left, err error) {
	raw, err := b.Raw()
	if err != nil {
		return Block{}, left, err
	}
	var d promwrite.Decoder
	if err := d.Decode(b.Version, raw); err != nil {
		return Block{}, left, err
	}
	asItWas := true
	list := d.Series[:0]
	for _, s := range d.Series {
		v := r.judge(s.Labels)
		asItWas = asItWas && v.fate == same
		switch v.fate {
		case unwanted:
			left.Dropped += len(s.Samples) + len(s.Histograms)
		case unusable:
			left.Unusable += len(s.Samples) + len(s.Histograms)
		case changed:
			s.Labels = v.labels
			list = append(list, s)
		default:
			list = append(list, s)
		}
	}
	switch {
	case asItWas:
		return b, left, nil
	case len(list) == 0:
		return Block{}, left, nil
	}
	list, left.Duplicate = r.join(list)
	made, err = write(b.Header, Format{Version: b.Version, Compression: b.Compression, Level: level}, list, d.Metadata)
	return made, left, err
}

// judge applies the rules to a series.
func (r *Rules) judge(list []promwrite.Label) verdict {
	key := r.keyOf(list)
	if v, ok := r.known[key]; ok {
		return v
	}
	v, ok := r.before[key]
	if !ok {
		v = r.apply(list)
	}
	if len(r.known) >= r.most {
		r.known, r.before = map[xxh3.Uint128]verdict{}, r.known
	}
	r.known[key] = v
	return v
}

// keyOf returns a hash of labels.
func (r *Rules) keyOf(list []promwrite.Label) xxh3.Uint128 {
	r.text = r.text[:0]
	for _, l := range list {
		r.text = append(append(r.text, l.Name...), 0xff) // a byte that no text has
		r.text = append(append(r.text, l.Value...), 0xff)
	}
	return xxh3.Hash128Seed(r.text, r.seed)
}

func (r *Rules) apply(list []promwrite.Label) verdict {
	if len(r.text) > maxRuled || len(list) > maxRuledLabels {
		return verdict{fate: unusable}
	}
	r.sorted.Reset()
	for _, l := range list {
		r.sorted.Add(strings.Clone(l.Name), strings.Clone(l.Value))
	}
	r.sorted.Sort()
	before := r.sorted.Labels()
	r.builder.Reset(before)
	if !relabel.ProcessBuilder(r.builder, r.configs...) {
		return verdict{fate: unwanted}
	}
	after := r.builder.Labels()
	switch {
	case labels.Equal(before, after):
		return verdict{}
	case after.Get(nameLabel) == "" || !after.IsValid(r.scheme):
		return verdict{fate: unusable}
	}
	v := verdict{fate: changed}
	after.Range(func(l labels.Label) { v.labels = append(v.labels, promwrite.Label{Name: l.Name, Value: l.Value}) })
	return v
}

// join merges series that became equal, with their samples in order, and drops samples with the time of an earlier one.
func (r *Rules) join(list []promwrite.Series) (joined []promwrite.Series, duplicate int) {
	places := make(map[xxh3.Uint128]int, len(list))
	joined = list[:0]
	for _, s := range list {
		key := r.keyOf(s.Labels)
		if len(s.Histograms) > 0 {
			key.Lo++ // a message has numbers or histograms, never both
		}
		at, ok := places[key]
		if !ok {
			places[key] = len(joined)
			joined = append(joined, s)
			continue
		}
		duplicate += add(&joined[at], &s)
	}
	return joined, duplicate
}

// add adds the samples of s to another series, and returns how many it drops: a series has one sample at a time.
func add(to, s *promwrite.Series) (duplicate int) {
	taken := make(map[int64]bool, len(to.Samples)+len(to.Histograms))
	for i := range to.Samples {
		taken[to.Samples[i].Timestamp] = true
	}
	for i := range to.Histograms {
		taken[to.Histograms[i].Timestamp] = true
	}
	to.Samples, to.Histograms = slices.Clone(to.Samples), slices.Clone(to.Histograms) // others may share this memory
	for _, p := range s.Samples {
		if taken[p.Timestamp] {
			duplicate++
			continue
		}
		to.Samples = append(to.Samples, p)
	}
	for _, h := range s.Histograms {
		if taken[h.Timestamp] {
			duplicate++
			continue
		}
		to.Histograms = append(to.Histograms, h)
	}
	inorder.Sort(to.Samples, func(a, b promwrite.Sample) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	inorder.Sort(to.Histograms, func(a, b promwrite.Histogram) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	to.Exemplars = append(slices.Clone(to.Exemplars), s.Exemplars...)
	return duplicate
}
