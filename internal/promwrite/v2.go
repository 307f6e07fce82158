// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

import (
	"errors"
	"fmt"
)

var (
	errFirstSymbol = errors.New("symbol 0 is not the empty string")
	errOddRefs     = errors.New("odd number of label references: names and values must alternate")
	errNoSymbol    = errors.New("reference to a symbol that is not there")
)

// requestV2 decodes
//
//	message Request {
//	  repeated string     symbols    = 4;
//	  repeated TimeSeries timeseries = 5;
//	}
//
// in two passes, because protobuf lets symbols follow the series that refer to them.
func (d *Decoder) requestV2(msg string) error {
	if d.unmeasured {
		return d.usualRequestV2(msg)
	}
	var f field
	var err error
	for rest := msg; rest != ""; {
		if rest, err = f.next(rest); err != nil {
			return at("after symbol", len(d.symbols), err)
		}
		if f.number == 4 {
			if err = d.addSymbol(&f); err != nil {
				return err
			}
		}
	}
	if err = d.checkSymbols(); err != nil {
		return err
	}
	for msg != "" {
		d.rest = msg
		msg, _ = f.next(msg) // the first pass found no error
		if f.number == 5 {
			if err = d.oneV2(&f); err != nil {
				return at("series", d.count, err)
			}
			msg = d.skipped(msg)
		}
	}
	return nil
}

// usualRequestV2 is requestV2 in one pass, since all senders put symbols first.
func (d *Decoder) usualRequestV2(msg string) error {
	var f field
	var err error
	begun := false
	for msg != "" {
		d.rest = msg
		if msg, err = f.next(msg); err != nil {
			return err
		}
		switch f.number {
		case 4:
			if begun || len(d.symbols) == maxUsualSymbols {
				return errUnusual
			}
			if err = d.addSymbol(&f); err != nil {
				return err
			}
		case 5:
			if !begun {
				if err = d.checkSymbols(); err != nil {
					return err
				}
				begun = true
			}
			if err = d.oneV2(&f); err != nil {
				return err
			}
			msg = d.skipped(msg)
		}
	}
	return d.checkSymbols()
}

func (d *Decoder) addSymbol(f *field) error {
	symbol, err := f.bytes()
	if err != nil {
		return at("symbol", len(d.symbols), err)
	}
	d.symbols = append(d.symbols, symbol)
	return nil
}

// checkSymbols checks the first symbol: reference 0 means none in metadata, so a table that starts with another text
// would be misread.
func (d *Decoder) checkSymbols() error {
	if len(d.symbols) > 0 && d.symbols[0] != "" {
		return errFirstSymbol
	}
	return nil
}

// seriesV2 decodes
//
//	message TimeSeries {
//	  repeated uint32    labels_refs = 1;
//	  repeated Sample    samples     = 2;
//	  repeated Histogram histograms  = 3;
//	  repeated Exemplar  exemplars   = 4;
//	  Metadata           metadata    = 5;
//	}
func (d *Decoder) seriesV2(f *field) error {
	msg, err := f.bytes()
	if err != nil {
		return err
	}
	var s Series
	labels, samples, exemplars, histograms := len(d.labels), len(d.samples), len(d.exemplars), len(d.histograms)
	d.refs = d.refs[:0]
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return err
		}
		switch f.number {
		case 1:
			if d.refs, err = f.appendUvarints(d.refs); err != nil {
				return inRefs(err)
			}
		case 2:
			if err = d.sample(f, V2); err != nil {
				return at("sample", len(d.samples)-samples, err)
			}
		case 3:
			if err = d.histogram(f, V2); err != nil {
				return at("histogram", len(d.histograms)-histograms, err)
			}
		case 4:
			// The series' own references may still be in the memory: those of an exemplar are appended, and removed
			// again.
			if err = d.exemplarV2(f); err != nil {
				return at("exemplar", len(d.exemplars)-exemplars, err)
			}
		case 5:
			if err = d.metadataV2(f, &s); err != nil {
				return fmt.Errorf("metadata: %w", err)
			}
		}
	}
	if d.labels, err = d.appendLabels(d.labels, d.refs); err != nil {
		return inRefs(err)
	}
	s.Labels = since(d.labels, labels)
	s.Samples = since(d.samples, samples)
	s.Exemplars = since(d.exemplars, exemplars)
	s.Histograms = since(d.histograms, histograms)
	return d.add(s)
}

// appendLabels resolves pairs of references.
func (d *Decoder) appendLabels(dst []Label, refs []uint64) ([]Label, error) {
	if len(refs)%2 != 0 {
		return dst, errOddRefs
	}
	for i := 0; i+1 < len(refs); i += 2 {
		name, value := refs[i], refs[i+1]
		if top := max(name, value); top >= uint64(len(d.symbols)) {
			return dst, d.noSymbol(top)
		}
		l := Label{Name: d.symbols[name], Value: d.symbols[value]}
		if err := d.Spell(len(l.Name) + len(l.Value)); err != nil {
			return dst, err
		}
		dst = append(dst, l)
	}
	return dst, nil
}

// Spell counts bytes of text that references stand for. It returns an error if they are too many.
func (d *Decoder) Spell(n int) error {
	if d.text += n; d.text > d.MaxText && d.MaxText > 0 {
		return fmt.Errorf("references to symbols stand for more than %d bytes: %w", d.MaxText, ErrTooLarge)
	}
	return nil
}

// inRefs returns an error for invalid references to labels.
func inRefs(err error) error { return fmt.Errorf("labels_refs: %w", err) }

// symbol resolves a single reference. Reference 0 means none, so it needs no table.
func (d *Decoder) symbol(f *field) (string, error) {
	ref, err := f.uvarint()
	if err != nil || ref == 0 {
		return "", err
	}
	if ref >= uint64(len(d.symbols)) {
		return "", d.noSymbol(ref)
	}
	symbol := d.symbols[ref]
	return symbol, d.Spell(len(symbol))
}

func (d *Decoder) noSymbol(ref uint64) error {
	return fmt.Errorf("symbol %d of %d: %w", ref, len(d.symbols), errNoSymbol)
}

// exemplarV2 decodes
//
//	message Exemplar {
//	  repeated uint32 labels_refs = 1;
//	  double value                = 2;
//	  int64 timestamp             = 3;
//	}
func (d *Decoder) exemplarV2(f *field) error {
	msg, err := f.bytes()
	if err != nil {
		return err
	}
	var e Exemplar
	labels, refs := len(d.exemplarLabels), len(d.refs)
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return err
		}
		switch f.number {
		case 1:
			d.refs, err = f.appendUvarints(d.refs)
		case 2:
			e.Value, err = f.double()
		case 3:
			e.Timestamp, err = f.int64()
		}
		if err != nil {
			return inField(f.number, err)
		}
	}
	if d.exemplarLabels, err = d.appendLabels(d.exemplarLabels, d.refs[refs:]); err != nil {
		return inRefs(err)
	}
	d.refs = d.refs[:refs]
	e.Labels = since(d.exemplarLabels, labels)
	d.exemplars = append(d.exemplars, e)
	return nil
}

// metadataV2 decodes
//
//	message Metadata {
//	  MetricType type = 1;
//	  uint32 help_ref = 3;
//	  uint32 unit_ref = 4;
//	}
func (d *Decoder) metadataV2(f *field, s *Series) error {
	msg, err := f.bytes()
	if err != nil {
		return err
	}
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return err
		}
		switch f.number {
		case 1:
			var v uint64
			v, err = f.uvarint()
			s.Type = MetricType(v)
		case 3:
			s.Help, err = d.symbol(f)
		case 4:
			s.Unit, err = d.symbol(f)
		}
		if err != nil {
			return inField(f.number, err)
		}
	}
	return nil
}
