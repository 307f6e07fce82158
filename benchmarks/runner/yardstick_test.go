// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"compress/flate"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const nodePage = "../../testdata/pages/node.txt"

func TestYardstickDoesAllOfItsWork(t *testing.T) {
	y, err := newYardstick(filepath.FromSlash(nodePage))
	if err != nil {
		t.Fatal(err)
	}
	defer y.hangUp()
	want, err := os.ReadFile(nodePage)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(flate.NewReader(bytes.NewReader(y.packed)))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the page has %d bytes of %d: %v", len(got), len(want), err)
	}
	for range 2 * yardPeers {
		if got := y.exchange(); !bytes.Equal(got, y.packed) {
			t.Fatalf("a peer sent %d bytes of %d", len(got), len(y.packed))
		}
	}
	w, _ := flate.NewWriter(io.Discard, flate.BestSpeed)
	if at := y.unit(w, 0); at == 0 || len(y.known) < 400 {
		t.Errorf("a unit ended at %d with %d series", at, len(y.known))
	}
	seen := make([]bool, yardChain)
	at := uint32(0)
	for i := range yardChain {
		if seen[at] {
			t.Fatalf("the walk is back after %d of %d steps", i, yardChain)
		}
		seen[at], at = true, y.chain[at]
	}
}

func TestYardstickCountsWhileItRuns(t *testing.T) {
	y, err := newYardstick(filepath.FromSlash(nodePage))
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		y.run(stop)
		close(stopped)
	}()
	deadline := time.Now().Add(30 * time.Second)
	for {
		cost, units := y.reading()
		if units >= 3 {
			if cost <= 0 {
				t.Errorf("%d units cost %v s", units, cost)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no units within 30 s")
		}
		time.Sleep(yardEvery)
	}
	close(stop)
	<-stopped
}
