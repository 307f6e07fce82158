// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

// histogram decodes either version's Histogram, which number their fields alike except for the start timestamp:
//
//	message Histogram {
//	  oneof count      { uint64 count_int = 1;      double count_float = 2; }
//	  double sum                         = 3;
//	  sint32 schema                      = 4;
//	  double zero_threshold              = 5;
//	  oneof zero_count { uint64 zero_count_int = 6; double zero_count_float = 7; }
//	  repeated BucketSpan negative_spans = 8;
//	  repeated sint64 negative_deltas    = 9;
//	  repeated double negative_counts    = 10;
//	  repeated BucketSpan positive_spans = 11;
//	  repeated sint64 positive_deltas    = 12;
//	  repeated double positive_counts    = 13;
//	  ResetHint reset_hint               = 14;
//	  int64 timestamp                    = 15;
//	  repeated double custom_values      = 16;
//	  int64 start_timestamp              = 17; // 2.0 only
//	}
func (d *Decoder) histogram(f *field, version Version) error {
	msg, err := f.bytes()
	if err != nil {
		return err
	}
	if d.dense == d.most {
		return errDense
	}
	d.dense++
	var h Histogram
	positive, negative, custom := d.positive.mark(), d.negative.mark(), len(d.customValues)
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return err
		}
		var v uint64
		switch f.number {
		case 1:
			v, err = f.uvarint()
			h.Count = Number{Int: v}
		case 2:
			h.Count = Number{IsFloat: true}
			h.Count.Float, err = f.double()
		case 3:
			h.Sum, err = f.double()
		case 4:
			v, err = f.uvarint()
			h.Schema = zigzag32(v)
		case 5:
			h.ZeroThreshold, err = f.double()
		case 6:
			v, err = f.uvarint()
			h.ZeroCount = Number{Int: v}
		case 7:
			h.ZeroCount = Number{IsFloat: true}
			h.ZeroCount.Float, err = f.double()
		case 8, 9, 10:
			err = d.negative.append(f, f.number-8)
		case 11, 12, 13:
			err = d.positive.append(f, f.number-11)
		case 14:
			v, err = f.uvarint()
			h.ResetHint = ResetHint(v)
		case 15:
			h.Timestamp, err = f.int64()
		case 16:
			d.customValues, err = f.appendDoubles(d.customValues)
		case 17:
			if version == V2 {
				h.StartTimestamp, err = f.int64()
			}
		}
		if err != nil {
			return inField(f.number, err)
		}
	}
	h.PositiveSpans, h.PositiveDeltas, h.PositiveCounts = d.positive.since(positive)
	h.NegativeSpans, h.NegativeDeltas, h.NegativeCounts = d.negative.since(negative)
	h.CustomValues = since(d.customValues, custom)
	d.histograms = append(d.histograms, h)
	return nil
}

// append decodes one of the three fields that one side of a histogram has: spans, deltas, counts.
func (b *buckets) append(f *field, which uint32) (err error) {
	switch which {
	case 0:
		var s Span
		if s, err = decodeSpan(f); err == nil {
			b.spans = append(b.spans, s)
		}
	case 1:
		b.deltas, err = f.appendZigzags(b.deltas)
	case 2:
		b.counts, err = f.appendDoubles(b.counts)
	}
	return err
}

type bucketsMark struct{ spans, deltas, counts int }

func (b *buckets) mark() bucketsMark {
	return bucketsMark{len(b.spans), len(b.deltas), len(b.counts)}
}

func (b *buckets) since(m bucketsMark) ([]Span, []int64, []float64) {
	return since(b.spans, m.spans), since(b.deltas, m.deltas), since(b.counts, m.counts)
}

// decodeSpan decodes
//
//	message BucketSpan {
//	  sint32 offset = 1;
//	  uint32 length = 2;
//	}
func decodeSpan(f *field) (Span, error) {
	var s Span
	msg, err := f.bytes()
	if err != nil {
		return s, err
	}
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return s, err
		}
		var v uint64
		switch f.number {
		case 1:
			v, err = f.uvarint()
			s.Offset = zigzag32(v)
		case 2:
			v, err = f.uvarint()
			s.Length = uint32(v)
		}
		if err != nil {
			return s, inField(f.number, err)
		}
	}
	return s, nil
}

// zigzag32 drops the upper half first, as protobuf wants of a number that is too long for its field.
func zigzag32(v uint64) int32 { return int32(uint32(v)>>1) ^ -int32(uint32(v)&1) }
