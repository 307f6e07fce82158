// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package promwrite

// requestV1 decodes
//
//	message WriteRequest {
//	  repeated TimeSeries     timeseries = 1;
//	  repeated MetricMetadata metadata   = 3;
//	}
func (d *Decoder) requestV1(msg string) error {
	var f field
	var err error
	for msg != "" {
		d.rest = msg
		if msg, err = f.next(msg); err != nil {
			return at("after series", d.count, err)
		}
		switch f.number {
		case 1:
			if err = d.oneV1(&f); err != nil {
				return at("series", d.count, err)
			}
			msg = d.skipped(msg)
		case 3:
			if d.unmeasured {
				return errUnusual
			}
			if err = d.metadataV1(&f); err != nil {
				return at("metadata", len(d.Metadata), err)
			}
		}
	}
	return nil
}

// seriesV1 decodes
//
//	message TimeSeries {
//	  repeated Label     labels     = 1;
//	  repeated Sample    samples    = 2;
//	  repeated Exemplar  exemplars  = 3;
//	  repeated Histogram histograms = 4;
//	}
func (d *Decoder) seriesV1(f *field) error {
	msg, err := f.bytes()
	if err != nil {
		return err
	}
	labels, samples, exemplars, histograms := len(d.labels), len(d.samples), len(d.exemplars), len(d.histograms)
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return err
		}
		switch f.number {
		case 1:
			if d.labels, err = appendLabelV1(d.labels, f); err != nil {
				return at("label", len(d.labels)-labels, err)
			}
		case 2:
			if err = d.sample(f, V1); err != nil {
				return at("sample", len(d.samples)-samples, err)
			}
		case 3:
			if err = d.exemplarV1(f); err != nil {
				return at("exemplar", len(d.exemplars)-exemplars, err)
			}
		case 4:
			if err = d.histogram(f, V1); err != nil {
				return at("histogram", len(d.histograms)-histograms, err)
			}
		}
	}
	return d.add(Series{
		Labels:     since(d.labels, labels),
		Samples:    since(d.samples, samples),
		Exemplars:  since(d.exemplars, exemplars),
		Histograms: since(d.histograms, histograms),
	})
}

// appendLabelV1 decodes
//
//	message Label {
//	  string name  = 1;
//	  string value = 2;
//	}
func appendLabelV1(dst []Label, f *field) ([]Label, error) {
	msg, err := f.bytes()
	if err != nil {
		return dst, err
	}
	if len(msg) > 1 && msg[0] == 1<<3|wireBytes && msg[1] < 0x80 { // fast path: a name and a value, both short
		value := 2 + int(msg[1])
		if value+1 < len(msg) && msg[value] == 2<<3|wireBytes && msg[value+1] < 0x80 && value+2+int(msg[value+1]) == len(msg) {
			return append(dst, Label{Name: msg[2:value], Value: msg[value+2:]}), nil
		}
	}
	var l Label
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return dst, err
		}
		switch f.number {
		case 1:
			l.Name, err = f.bytes()
		case 2:
			l.Value, err = f.bytes()
		}
		if err != nil {
			return dst, inField(f.number, err)
		}
	}
	return append(dst, l), nil
}

// exemplarV1 decodes
//
//	message Exemplar {
//	  repeated Label labels = 1;
//	  double value          = 2;
//	  int64 timestamp       = 3;
//	}
func (d *Decoder) exemplarV1(f *field) error {
	msg, err := f.bytes()
	if err != nil {
		return err
	}
	var e Exemplar
	labels := len(d.exemplarLabels)
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return err
		}
		switch f.number {
		case 1:
			if d.exemplarLabels, err = appendLabelV1(d.exemplarLabels, f); err != nil {
				return at("label", len(d.exemplarLabels)-labels, err)
			}
		case 2:
			e.Value, err = f.double()
		case 3:
			e.Timestamp, err = f.int64()
		}
		if err != nil {
			return inField(f.number, err)
		}
	}
	e.Labels = since(d.exemplarLabels, labels)
	d.exemplars = append(d.exemplars, e)
	return nil
}

// metadataV1 decodes
//
//	message MetricMetadata {
//	  MetricType type           = 1;
//	  string metric_family_name = 2;
//	  string help               = 4;
//	  string unit               = 5;
//	}
func (d *Decoder) metadataV1(f *field) error {
	msg, err := f.bytes()
	if err != nil {
		return err
	}
	var m Metadata
	for msg != "" {
		if msg, err = f.next(msg); err != nil {
			return err
		}
		switch f.number {
		case 1:
			var v uint64
			v, err = f.uvarint()
			m.Type = MetricType(v)
		case 2:
			m.Family, err = f.bytes()
		case 4:
			m.Help, err = f.bytes()
		case 5:
			m.Unit, err = f.bytes()
		}
		if err != nil {
			return inField(f.number, err)
		}
	}
	d.Metadata = append(d.Metadata, m)
	return nil
}
