// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"

	"github.com/zeebo/xxh3"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/godwit-otel/godwit/benchmarks/tally"
)

var errSymbol = errors.New("reference to no symbol")

// remoteWrite1 accounts for a prometheus.WriteRequest.
func remoteWrite1(message []byte, e *entry) error {
	return each(message, 1, func(f *field) error { return e.series1(f.bytes) })
}

func (e *entry) series1(series []byte) error {
	target, c, hash := -1, onPage, uint64(0)
	if err := each(series, 1, func(f *field) error {
		name, value, err := pair(f.bytes)
		switch string(name) {
		case "__name__":
			c = classify(value)
		case "instance":
			target = tally.Target(value)
		}
		hash += xxh3.HashSeed(value, xxh3.Hash(name))
		return err
	}); err != nil {
		return err
	}
	return e.points(series, target, c, hash, 3)
}

// pair parses a message of two strings.
func pair(message []byte) (first, second []byte, err error) {
	err = walk(message, func(f *field) error {
		switch f.id {
		case 1:
			first = f.bytes
		case 2:
			second = f.bytes
		}
		return nil
	})
	return first, second, err
}

// points accounts for the samples and exemplars of a series.
func (e *entry) points(series []byte, target int, c class, hash uint64, exemplars protowire.Number) error {
	samples := 0
	return walk(series, func(f *field) error {
		switch f.id {
		case 2:
			if samples++; samples == 1 {
				e.series = append(e.series, hash)
			}
			return e.sampleMessage(f.bytes, target, c)
		case exemplars:
			e.stats.Exemplars++
		}
		return nil
	})
}

// sampleMessage accounts for a Sample, which is the same in both versions.
func (e *entry) sampleMessage(message []byte, target int, c class) error {
	var value float64
	var time int64
	err := walk(message, func(f *field) error {
		switch f.id {
		case 1:
			value = f.float()
		case 2:
			time = int64(f.number)
		}
		return nil
	})
	if err == nil {
		e.sample(target, c, time, value)
	}
	return err
}

// symbol is a symbol of a request with what the account needs of it.
type symbol struct {
	bytes  []byte
	hash   uint64
	class  class
	target int
}

// remoteWrite2 accounts for an io.prometheus.write.v2.Request.
func remoteWrite2(message []byte, e *entry) error {
	var symbols []symbol
	if err := each(message, 4, func(f *field) error {
		symbols = append(symbols, symbol{
			bytes: f.bytes, hash: xxh3.Hash(f.bytes), class: classify(f.bytes), target: tally.Target(f.bytes),
		})
		return nil
	}); err != nil {
		return err
	}
	return each(message, 5, func(f *field) error { return e.series2(f.bytes, symbols) })
}

func (e *entry) series2(series []byte, symbols []symbol) error {
	target, c, hash := -1, onPage, uint64(0)
	if err := each(series, 1, func(f *field) error {
		for refs := f.bytes; len(refs) > 0; {
			var ref [2]uint64
			for i := range ref {
				v, n := protowire.ConsumeVarint(refs)
				if n < 0 {
					return protowire.ParseError(n)
				}
				if v >= uint64(len(symbols)) {
					return errSymbol
				}
				ref[i], refs = v, refs[n:]
			}
			name, value := &symbols[ref[0]], &symbols[ref[1]]
			switch string(name.bytes) {
			case "__name__":
				c = value.class
			case "instance":
				target = value.target
			}
			hash += name.hash ^ value.hash*0x9e3779b97f4a7c15
		}
		return nil
	}); err != nil {
		return err
	}
	return e.points(series, target, c, hash, 4)
}
