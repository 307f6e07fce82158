// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc/metadata"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const (
	// The tenant's key in clients' metadata, and its header in requests to a destination.
	tenantKey    = "x-tenant"
	tenantHeader = "X-Scope-Orgid"
	// mostTenants is the exporter's limit of tenants.
	mostTenants = 50
	// Other tenants delay a tenant's data by less than this, on a busy machine.
	tenantBound = time.Minute
	// tenantLooks is how often that is checked.
	tenantLooks = 5
	// hostileRoom limits the agent's memory while a client invents tenants, in MiB.
	hostileRoom = 200
)

// fromClients is an overlay: clients' metadata name the tenant, and each tenant has its share of a small queue.
var fromClients = fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {include_metadata: true}}}}
exporters:
  remotewrite:
    tenant: {header: %s, from_metadata: %s, max: %d}
    queue: {size: 60000, block_timeout: 1s}
    retry: {max_retry_after: 2s}
    cache: {idle_timeout: 10s}
`, tenantHeader, tenantKey, mostTenants)

// tenantsServer returns a server that answers requests of some tenants with step until serve is called, and passes
// accepted series to their tenants' tallies.
func tenantsServer(t *testing.T, step rwserver.Step, refused func(tenant string) bool, tallies ...*tally) (server *rwserver.Server, serve func()) {
	t.Helper()
	var served atomic.Bool
	server = rwserver.New(t, rwserver.Options{
		CountOnly: true,
		Choose: func(h http.Header) (rwserver.Step, bool) {
			return step, !served.Load() && refused(h.Get(tenantHeader))
		},
		ObserveRequest: func(r rwserver.Request, all []rwserver.Series) {
			for _, y := range tallies {
				if y.tenant != r.Header.Get(tenantHeader) {
					continue
				}
				for _, series := range all {
					y.observe(series)
				}
			}
		},
	})
	return server, func() { served.Store(true) }
}

// staysServed requires, repeatedly, that acknowledged data of a tenant arrive in time.
func (y *tally) staysServed(t *testing.T) {
	t.Helper()
	longest := time.Duration(0)
	for range tenantLooks {
		y.progress(t)
		began := time.Now()
		wait.Until(t, tenantBound, y.arrivedBut(0))
		longest = max(longest, time.Since(began))
	}
	t.Logf("data of %q took %v at most", y.tenant, longest.Round(time.Millisecond))
}

// A destination refuses one tenant, which sends more than its queue holds. Meanwhile the other tenant's data arrive,
// and the first one's acknowledged data arrive once it is served.
func TestATenantThatIsRefusedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	const onDisk = "exporters: {remotewrite: {queue: {directory: data}}}"
	for _, c := range []struct {
		name, config string
		step         rwserver.Step
	}{
		{"401", "", rwserver.Step{Status: 401}},
		{"403", "", rwserver.Step{Status: 403}},
		{"403 on disk", onDisk, rwserver.Step{Status: 403}},
		{"404", "", rwserver.Step{Status: 404}},
		{"429", "", rwserver.Step{Status: 429}},
		{"429 for an hour", "", rwserver.Step{Status: 429, Header: rwserver.RetryAfterSeconds(3600)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			good, bad := newTally(), newTally()
			good.tenant, bad.tenant = "good", "bad"
			server, serve := tenantsServer(t, c.step, func(tenant string) bool { return tenant == bad.tenant }, good, bad)
			addr := freeport.Addr(t)
			agent := startCollector(t, fmt.Sprintf(impatient, server.URL(), addr), patient, fromClients, c.config)
			stopBad, stopGood := bad.flood(t, addr), good.flood(t, addr)
			bad.refusals(t, 10) // its queue is full
			good.staysServed(t)
			assert.Zero(t, bad.sound(t))
			missing, _ := bad.missing(bad.mark())
			assert.Positive(t, missing, "it is not served")
			stopBad()

			serve()
			wait.Until(t, delivery, bad.arrivedBut(0))
			stopGood()
			wait.Until(t, tenantBound, good.arrivedBut(0))
			assert.Zero(t, good.sound(t))
			assert.Zero(t, bad.sound(t))
			assert.Zero(t, agent.metric(t, "otelcol_exporter_send_failed_metric_points"))
			assert.Zero(t, agent.Stop(syscall.SIGTERM, drainTime))
			assert.Empty(t, server.Violations())
			t.Logf("%d samples of one acknowledged, %d of the other", good.acknowledged(), bad.acknowledged())
		})
	}
}

// A client that invents tenants, none of which is served, takes only the room for those: data of tenants known before
// arrive. When the client is gone, others get the room again.
func TestTenantsThatAreMadeUpHoldUpNobody(t *testing.T) {
	t.Parallel()
	const prefix = "made-up-"
	good, late := newTally(), newTally()
	good.tenant, late.tenant = "good", "late"
	server, serve := tenantsServer(t, rwserver.Step{Status: 403}, func(tenant string) bool { return strings.HasPrefix(tenant, prefix) }, good, late)
	addr := freeport.Addr(t)
	agent := startCollector(t, fmt.Sprintf(impatient, server.URL(), addr), patient, fromClients)
	stopGood := good.flood(t, addr)
	good.progress(t)

	made, refused, stopMaking := makeUpTenants(t, addr, prefix)
	wait.Until(t, delivery, func() (bool, string) {
		return refused.Load() > 10*mostTenants && made.Load() > 5*mostTenants, fmt.Sprintf("%d tenants were made up, %d of their requests refused", made.Load(), refused.Load())
	})
	good.staysServed(t)
	assert.Less(t, mib(agent.Usage().Anon), float64(hostileRoom))
	atLeast := int(refused.Load()) * madeUpPoints
	wait.Until(t, telemetryWait, func() (bool, string) { // which limit refuses first, that of the queue or that of tenants, depends on speed
		counted := agent.metric(t, "otelcol_exporter_enqueue_failed_metric_points")
		return int(counted) >= atLeast, fmt.Sprintf("%v points are counted as refused, of %d or more", counted, atLeast)
	})
	stopMaking()
	t.Logf("%d tenants were made up, %d of their requests refused; %.0f MiB", made.Load(), refused.Load(), mib(agent.Usage().Anon))

	serve()
	wait.Until(t, delivery, func() (bool, string) {
		left := agent.metric(t, "otelcol_exporter_remotewrite_oldest_block_age")
		return left < tenantBound.Seconds(), fmt.Sprintf("something has been queued for %v seconds", left)
	})
	stopLate := late.flood(t, addr)
	late.staysServed(t)
	stopLate()
	stopGood()
	for _, y := range []*tally{good, late} {
		wait.Until(t, tenantBound, y.arrivedBut(0))
		assert.Zero(t, y.sound(t))
	}
	assert.Zero(t, agent.Stop(syscall.SIGTERM, drainTime))
	assert.NotContains(t, agent.Output(), "panic:")
	assert.Empty(t, server.Violations())
}

// makeUpTenants sends until it is stopped: half for new tenants, half for a fixed set of tenants, more than these may
// queue. It counts the tenants and the refused requests.
func makeUpTenants(t *testing.T, addr, prefix string) (made, refused *atomic.Int64, stop func()) {
	t.Helper()
	const clients = 16 // most of them wait for room in the queue
	made, refused = new(atomic.Int64), new(atomic.Int64)
	ctx, cancel := context.WithCancel(t.Context())
	client := pmetricotlp.NewGRPCClient(dial(t, addr))
	var running sync.WaitGroup
	for n := range clients {
		running.Go(func() {
			for i := 0; wait.Pause(ctx, tallyPause); i++ {
				name := fmt.Sprintf("%s%d-%d", prefix, n, i%mostTenants)
				if i%2 == 0 {
					name = fmt.Sprintf("%snew-%d-%d", prefix, n, i)
					made.Add(1)
				}
				as := metadata.AppendToOutgoingContext(ctx, tenantKey, name)
				if _, err := client.Export(as, pmetricotlp.NewExportRequestFromMetrics(madeUp(name))); err != nil {
					refused.Add(1)
				}
			}
		})
	}
	return made, refused, func() {
		cancel()
		running.Wait()
	}
}

// madeUpPoints is the number of points in a request of an invented tenant.
const madeUpPoints = 200

func madeUp(tenant string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("made_up")
	points := m.SetEmptyGauge().DataPoints()
	for i := range madeUpPoints {
		point := points.AppendEmpty()
		point.Attributes().PutStr("of", tenant)
		point.Attributes().PutStr("number", strconv.Itoa(i))
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.SetIntValue(int64(i))
	}
	return md
}
