// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestEveryWayHandsOverEverything(t *testing.T) {
	for _, w := range Ways() {
		t.Run(w.Name, func(t *testing.T) {
			for _, producers := range []int{1, 7} {
				if _, err := Flood(w.New(), producers, 3*capacity+5); err != nil {
					t.Errorf("%d producers: %v", producers, err)
				}
			}
		})
	}
}

func TestARingKeepsTheOrderOfEachProducer(t *testing.T) {
	type item struct{ producer, number int }
	const producers, each = 8, 5000
	for _, need := range []int{1, 16} {
		r := NewRing[item](16)
		var putting sync.WaitGroup
		for p := range producers {
			putting.Go(func() {
				for n := range each {
					r.Put(item{p, n})
				}
			})
		}
		var next [producers]int
		buf := make([]item, 5)
		for taken := 0; taken < producers*each; {
			n := r.Take(buf, need, time.NewTimer(time.Millisecond))
			for _, got := range buf[:n] {
				if got.number != next[got.producer] {
					t.Fatalf("producer %d: number %d came, %d was next", got.producer, got.number, next[got.producer])
				}
				next[got.producer]++
			}
			taken += n
		}
		putting.Wait()
	}
}

func TestARingWakesOnceForAllThatIsNeeded(t *testing.T) {
	r := NewRing[int](64)
	woken := make(chan int)
	go func() {
		buf := make([]int, 64)
		woken <- r.Take(buf, 10, time.NewTimer(time.Hour))
	}()
	for r.needed.Load() == 0 {
		time.Sleep(time.Millisecond) // until it sleeps
	}
	for i := range 9 {
		r.Put(i)
	}
	if r.needed.Load() != 10 || len(r.wake) != 0 {
		t.Fatal("it was woken before there was enough")
	}
	r.Put(9)
	if n := <-woken; n != 10 {
		t.Errorf("it took %d", n)
	}
}

func TestARingGivesWhatThereIsWhenPatienceEnds(t *testing.T) {
	r := NewRing[int](8)
	r.Put(1)
	buf := make([]int, 8)
	if n := r.Take(buf, 5, time.NewTimer(time.Hour)); n != 1 {
		t.Errorf("it took %d of 1 that was there", n)
	}
	if n := r.Take(buf, 5, time.NewTimer(time.Millisecond)); n != 0 {
		t.Errorf("it took %d of none", n)
	}
}

func BenchmarkHandoff(b *testing.B) {
	for _, producers := range Producers {
		for _, w := range Ways() {
			b.Run(fmt.Sprintf("producers=%d/way=%s", producers, w.Name), func(b *testing.B) {
				b.ReportAllocs()
				q := w.New()
				b.ResetTimer()
				took, err := Flood(q, producers, b.N)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)/took.Seconds(), "items/s")
			})
		}
	}
}

func BenchmarkSteady(b *testing.B) {
	for _, producers := range Producers {
		for _, w := range Ways() {
			b.Run(fmt.Sprintf("producers=%d/way=%s", producers, w.Name), func(b *testing.B) {
				var consumer, process time.Duration
				for range b.N {
					consumer, process = Steady(w.New(), producers, 100*time.Millisecond)
				}
				b.ReportMetric(float64(consumer.Nanoseconds()), "consumer-ns/item")
				b.ReportMetric(float64(process.Nanoseconds()), "process-ns/item")
			})
		}
	}
}
