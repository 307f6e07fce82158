// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import "github.com/godwit-otel/godwit/benchmarks/report"

// proposal has the values of the proposal's appendix: CPU seconds and batches per second of wall time, in the order of
// Points. 0 stands for a row that it lacks.
var proposal = map[string][6][2]float64{
	"unary":           {{15.3, 840.0}, {10.7, 83.2}, {11.5, 68.1}, {6.2, 29.6}, {0.6, 4.0}, {}},
	"unary-async":     {{14.1, 1986.3}, {11.9, 141.8}, {11.3, 150.4}, {5.9, 132.9}, {0.6, 11.1}, {5.8, 33.3}},
	"stream-sync":     {{13.6, 848.7}, {10.7, 81.8}, {11.1, 69.2}, {5.9, 30.0}, {0.6, 4.2}, {}},
	"stream-lbalways": {{16.1, 798.8}, {11.5, 78.2}, {11.5, 68.9}, {5.9, 30.2}, {0.6, 4.2}, {}},
	"stream-lbtimed":  {{13.7, 845.1}, {11.1, 78.4}, {11.3, 68.2}, {5.8, 30.1}, {0.6, 4.2}, {}},
	"stream-1":        {{12.4, 1510.0}, {11.4, 113.1}, {11.1, 114.9}, {6.2, 96.7}, {0.5, 12.7}, {5.3, 41.9}},
	"stream-10":       {{12.3, 2058.4}, {12.2, 138.4}, {11.4, 148.0}, {6.2, 132.9}, {0.7, 12.8}, {6.4, 44.7}},
	"stream-lbsrv":    {{12.7, 639.8}, {11.3, 113.6}, {11.1, 115.1}, {5.5, 107.3}, {0.5, 12.0}, {}},
	"websocket-sync":  {{8.4, 965.3}, {10.3, 79.4}, {10.8, 66.5}, {5.8, 27.4}, {0.6, 3.0}, {}},
	"websocket":       {{9.4, 1492.0}, {10.5, 111.2}, {10.6, 111.8}, {5.5, 102.1}, {0.5, 6.5}, {5.3, 35.7}},
	"websocket-zstd":  {{23.3, 484.0}, {29.0, 36.1}, {28.6, 36.6}, {14.7, 35.7}, {1.5, 19.8}, {15.1, 33.4}},
}

// then returns the proposal's measurement of a variant at a point, nil if it has none.
func then(variant string, p report.StreamPoint) *report.StreamRun {
	for i, known := range Points() {
		if figures := proposal[variant][i]; known == p && figures[1] > 0 {
			return &report.StreamRun{Batches: p.Batches, CPU: figures[0], Wall: float64(p.Batches) / figures[1]}
		}
	}
	return nil
}
