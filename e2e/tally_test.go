// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	tallySenders = 8
	tallySeries  = 25
	// Between the requests of a sender, to leave CPU to the processes under test.
	tallyPause = 4 * time.Millisecond
	tallyName  = "numbers"
	// The number of samples that progress waits for.
	tallyProgress = 2000
)

// tally sends metrics by OTLP and records the samples that arrive by remote write. Each sender has its own series, and
// a sample's value is the number of its request, so that lost, repeated and disordered samples show. It is safe for
// concurrent use.
type tally struct {
	// begin is the timestamp of number 0; each later number is a millisecond later.
	begin time.Time
	// tenant is the tenant of the requests, if set.
	tenant string

	mu      sync.Mutex
	senders [tallySenders]sent
	// repeated counts samples that arrived more than once; refused counts requests.
	repeated, refused int
	// refusal is the error of the last refused request.
	refusal  error
	problems []string
}

// sent is the record of one sender's series.
type sent struct {
	// next is the number of the next request, acked lists the acknowledged ones.
	next  int
	acked []int
	// arrived counts, by series and number, how often a sample arrived.
	arrived [tallySeries][]int
}

func newTally() *tally { return &tally{begin: time.Now().Add(-time.Hour).Truncate(time.Second)} }

// send sends one request with a sample for each series of the sender.
func (y *tally) send(ctx context.Context, conn *grpc.ClientConn, sender int) error {
	y.mu.Lock()
	s := &y.senders[sender]
	number := s.next
	s.next++
	y.mu.Unlock()

	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(tallyName)
	points := m.SetEmptyGauge().DataPoints()
	for series := range tallySeries {
		point := points.AppendEmpty()
		point.Attributes().PutStr("sender", strconv.Itoa(sender))
		point.Attributes().PutStr("series", strconv.Itoa(series))
		point.SetTimestamp(pcommon.NewTimestampFromTime(y.begin.Add(time.Duration(number) * time.Millisecond)))
		point.SetIntValue(int64(number))
	}
	resp, err := pmetricotlp.NewGRPCClient(conn).Export(ctx, pmetricotlp.NewExportRequestFromMetrics(md))
	if err == nil && resp.PartialSuccess().RejectedDataPoints() > 0 {
		err = fmt.Errorf("%d rejected: %s", resp.PartialSuccess().RejectedDataPoints(), resp.PartialSuccess().ErrorMessage())
	}
	if err != nil {
		return err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	s.acked = append(s.acked, number)
	return nil
}

// flood sends until it is stopped; it does not retry.
func (y *tally) flood(t *testing.T, addr string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	if y.tenant != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, tenantKey, y.tenant)
	}
	conn := dial(t, addr)
	var senders sync.WaitGroup
	for sender := range tallySenders {
		senders.Go(func() {
			for wait.Pause(ctx, tallyPause) {
				if err := y.send(ctx, conn, sender); err != nil && wait.Pause(ctx, refusedPause) {
					y.mu.Lock()
					y.refused++
					y.refusal = err
					y.mu.Unlock()
				}
			}
		})
	}
	return func() {
		cancel()
		senders.Wait()
	}
}

// acknowledged returns the number of acknowledged samples.
func (y *tally) acknowledged() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	n := 0
	for i := range y.senders {
		n += len(y.senders[i].acked)
	}
	return n * tallySeries
}

// progress waits until tallyProgress more samples are acknowledged.
func (y *tally) progress(t *testing.T) {
	t.Helper()
	before := y.acknowledged()
	wait.Until(t, delivery, func() (bool, string) {
		more := y.acknowledged() - before
		return more >= tallyProgress, fmt.Sprintf("%d of %d more acknowledged", more, tallyProgress)
	})
}

// refusals waits for n refused requests, and returns the error of the last one.
func (y *tally) refusals(t *testing.T, n int) (why error) {
	t.Helper()
	wait.Until(t, delivery, func() (bool, string) {
		y.mu.Lock()
		defer y.mu.Unlock()
		why = y.refusal
		return y.refused >= n, fmt.Sprintf("%d of %d requests were refused", y.refused, n)
	})
	return why
}

// clearRefusals resets the count of refused requests.
func (y *tally) clearRefusals() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.refused, y.refusal = 0, nil
}

// observe records the samples that arrive.
func (y *tally) observe(series rwserver.Series) {
	if series.Labels.Get(model.MetricNameLabel) != tallyName {
		return
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	sender, err1 := strconv.Atoi(series.Labels.Get("sender"))
	index, err2 := strconv.Atoi(series.Labels.Get("series"))
	if err1 != nil || err2 != nil || sender >= tallySenders || index >= tallySeries || series.Labels.Len() != 3 {
		y.problem("nobody sent %v", series.Labels)
		return
	}
	s := &y.senders[sender]
	arrived := &s.arrived[index]
	for _, sample := range series.Samples {
		number := int(sample.V)
		switch {
		case number < 0 || number >= s.next || sample.T != y.begin.UnixMilli()+int64(number):
			y.problem("nobody sent %v of %v", sample, series.Labels)
		case number >= len(*arrived):
			*arrived = append(*arrived, make([]int, number+1-len(*arrived))...)
			(*arrived)[number] = 1
		case (*arrived)[number] == 0:
			y.problem("number %d of %v comes after %d", number, series.Labels, len(*arrived)-1)
			(*arrived)[number] = 1
		default:
			y.repeated++
			(*arrived)[number]++
		}
	}
}

func (y *tally) problem(format string, args ...any) {
	if len(y.problems) < maxProblems {
		y.problems = append(y.problems, fmt.Sprintf(format, args...))
	}
}

// mark returns how many requests of each sender are acknowledged now.
func (y *tally) mark() (mark [tallySenders]int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i := range y.senders {
		mark[i] = len(y.senders[i].acked)
	}
	return mark
}

// missing counts the samples acknowledged before mark that have not arrived, and describes one.
func (y *tally) missing(mark [tallySenders]int) (n int, example string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for sender := range y.senders {
		s := &y.senders[sender]
		for series, arrived := range s.arrived {
			for _, number := range s.acked[:mark[sender]] {
				if number < len(arrived) && arrived[number] > 0 {
					continue
				}
				n++
				if example == "" {
					example = fmt.Sprintf("number %d of series %d of sender %d", number, series, sender)
				}
			}
		}
	}
	return n, example
}

// arrivedBut returns a condition: everything acknowledged by now has arrived, except this many samples.
func (y *tally) arrivedBut(lost int) func() (bool, string) {
	mark := y.mark()
	return func() (bool, string) {
		n, example := y.missing(mark)
		return n == lost, fmt.Sprintf("%d acknowledged samples have not arrived, %d may: %s", n, lost, example)
	}
}

// sound checks that only samples that were sent arrived, and in order. It returns how many arrived more than once.
func (y *tally) sound(t *testing.T) (repeated int) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	assert.Empty(t, y.problems)
	return y.repeated
}

func TestTallySeesWhatIsWrong(t *testing.T) {
	y := newTally()
	y.senders[1].next, y.senders[1].acked = 4, []int{0, 1, 3}
	arrive := func(numbers ...int) {
		for series := range tallySeries {
			s := rwserver.Series{Labels: labels.FromStrings("__name__", tallyName, "sender", "1", "series", strconv.Itoa(series))}
			for _, number := range numbers {
				s.Samples = append(s.Samples, rwserver.Sample{T: y.begin.UnixMilli() + int64(number), V: float64(number)})
			}
			y.observe(s)
		}
	}
	arrive(0, 2)
	ok, why := y.arrivedBut(0)()
	assert.False(t, ok)
	assert.Contains(t, why, "50 acknowledged samples have not arrived, 0 may: number 1 of series 0 of sender 1")
	arrive(3, 3)
	ok, _ = y.arrivedBut(tallySeries)()
	assert.True(t, ok)
	assert.Equal(t, tallySeries, y.sound(t))
	arrive(1)
	ok, _ = y.arrivedBut(0)()
	assert.True(t, ok)
	require.Len(t, y.problems, maxProblems)
	assert.True(t, slices.ContainsFunc(y.problems, func(p string) bool {
		return p == `number 1 of {__name__="numbers", sender="1", series="0"} comes after 3`
	}), y.problems)
	y.problems = nil
	arrive(4)
	assert.Contains(t, y.problems[0], "nobody sent")
}
