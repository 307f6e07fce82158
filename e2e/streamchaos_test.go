// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/otlpserver"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/e2e/wire"
)

// chaos is an agent with a queue on disk, its gateway, the network between them and the destination, all of which can
// fail.
type chaos struct {
	t           *testing.T
	random      *rand.Rand
	destination *otlpserver.Server
	server      *receiving
	wires       map[string]*wire.Wire // by transport
	sender      *sending
	guard       *guard
	settings    string // the file with the exporter's settings
	bin         string // the directory of links to the binaries that run, each to one of builds
	builds      []string
	ledger      *ledger
	stop        func() // stops the flood
}

// chaosRounds is the number of rounds with one destination, which records all that arrives.
const chaosRounds = 12

// Failures of all kinds happen to a stream in random order, for as long as `make soak` says: what the agent has
// acknowledged arrives. With GODWIT_OLD_BIN, either end sometimes runs an earlier version.
func TestStreamOutlivesWhateverHappens(t *testing.T) {
	t.Parallel()
	if os.Getenv(soakVariable) == "" {
		t.Skip("it goes on for a while: make soak")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	rounds, acknowledged, again := map[string]int{}, 0, 0
	for begun := time.Now(); time.Since(begun) < soakDuration(t); {
		t.Run("part", func(t *testing.T) {
			c := startChaos(t, random)
			troubles := c.troubles()
			for range chaosRounds {
				one := troubles[random.IntN(len(troubles))]
				t.Logf("%v: %s", time.Since(begun).Round(time.Second), one.name)
				one.happens()
				flows(t, c.ledger, streamProgress)
				rounds[one.name]++
			}
			c.stop()
			wait.Until(t, delivery, c.ledger.arrived(c.destination))
			c.sender.settles(t)
			acknowledged += c.ledger.acknowledged()
			again += c.ledger.repeated(t, c.destination)
			assert.Zero(t, c.sender.Stop(syscall.SIGTERM, drainTime))
			assert.Zero(t, c.server.Stop(syscall.SIGTERM, drainTime))
		})
		if t.Failed() {
			return // the subtest has reported why
		}
	}
	t.Logf("%d items acknowledged, none missing, %d arrived again; rounds: %v", acknowledged, again, rounds)
}

func startChaos(t *testing.T, random *rand.Rand) *chaos {
	t.Helper()
	c := &chaos{
		t: t, random: random, destination: otlpserver.New(t, otlpserver.Options{}), guard: newGuard(t), wires: map[string]*wire.Wire{},
		settings: filepath.Join(t.TempDir(), "exporter.yaml"), bin: t.TempDir(), ledger: &ledger{padding: 100, withMetrics: true},
		builds: []string{filepath.Dir(process.Binary(t, "godwit-agent"))},
	}
	if old := os.Getenv(oldBuilds); old != "" {
		c.builds = append(c.builds, old)
	}
	c.server = &receiving{grpc: freeport.Addr(t), http: freeport.Addr(t)}
	c.server.collector = startBinary(t, c.build("godwit-gateway"), fmt.Sprintf(streamServer, c.server.grpc, c.server.http, c.destination.GRPCAddr()), c.guard.gateway())
	for _, transport := range []string{overGRPC, overWebSocket} {
		c.wires[transport] = wire.New(t, c.server.addr(transport))
	}
	c.set()
	c.sender = &sending{grpc: freeport.Addr(t)}
	c.sender.collector = startBinary(t, c.build("godwit-agent"), fmt.Sprintf(changing, c.sender.grpc, c.settings), fmt.Sprintf(
		"extensions: {bearertokenauth: {filename: %s}}\nservice: {extensions: [health_check, file_storage, bearertokenauth]}\n", c.guard.file("agent")))
	c.stop = c.ledger.flood(t, c.sender.grpc)
	return c
}

// build picks one of the builds for a distribution's next start.
func (c *chaos) build(name string) string {
	c.t.Helper()
	link := filepath.Join(c.bin, name)
	if err := os.Remove(link); err != nil {
		require.ErrorIs(c.t, err, os.ErrNotExist)
	}
	require.NoError(c.t, os.Symlink(filepath.Join(c.builds[c.random.IntN(len(c.builds))], name), link))
	return link
}

// set writes random settings of the exporter.
func (c *chaos) set() {
	c.t.Helper()
	pick := func(of ...string) string { return of[c.random.IntN(len(of))] }
	transport := pick(overGRPC, overWebSocket)
	const queue = "sending_queue: {queue_size: 200, storage: file_storage"
	queues := []string{queue + "}", queue + "}\nordered: true"}
	if len(c.builds) == 1 { // an earlier version may not know batches
		queues = append(queues, queue+", batch: {flush_timeout: 50ms, min_size: 100, max_size: 200}}")
	}
	text := fmt.Sprintf(`
endpoint: %s
transport: %s
tls: %s
auth: {authenticator: bearertokenauth}
ack_timeout: 1s
rebalance: {timeout: 500ms}
retry_on_failure: {initial_interval: 50ms, max_interval: 500ms, max_elapsed_time: 0}
mode: %s
compression: %s
%s
`, c.wires[transport].Addr(), transport, c.guard.tls(transport), pick("auto", "auto", "stream", "unary"), pick("zstd", "gzip", "none"), pick(queues...))
	require.NoError(c.t, os.WriteFile(c.settings, []byte(text), 0o600))
}

// again starts a process that has ended, and whatever lost its connection by that.
func (c *chaos) again(p *collector) {
	c.t.Helper()
	p.Restart()
	p.ready()
	if p == c.sender.collector {
		c.stop() // its connections do not recover: see dial
		c.stop = c.ledger.flood(c.t, c.sender.grpc)
	}
}

func (c *chaos) end(p *collector, name string, s syscall.Signal) {
	c.t.Helper()
	if s == syscall.SIGKILL {
		p.Kill()
	} else {
		assert.Zero(c.t, p.Stop(s, drainTime))
	}
	c.build(name)
}

// lasts lets a fault last for several times the acknowledgement timeout.
func (c *chaos) lasts() { wait.Pause(c.t.Context(), time.Duration(1+c.random.IntN(4))*time.Second) }

type trouble struct {
	name    string
	happens func()
}

func (c *chaos) troubles() []trouble {
	always := func(step otlpserver.Step) func() {
		return func() {
			c.destination.Always(step)
			c.lasts()
			c.destination.Always(otlpserver.Step{})
		}
	}
	wires := func(on, off func(*wire.Wire)) func() {
		return func() {
			for _, w := range c.wires {
				on(w)
			}
			c.lasts()
			for _, w := range c.wires {
				off(w)
			}
		}
	}
	ends := func(s syscall.Signal, who func() (*collector, string), meanwhile func()) func() {
		return func() {
			p, name := who()
			c.end(p, name, s)
			meanwhile()
			c.again(p)
		}
	}
	gateway := func() (*collector, string) { return c.server.collector, "godwit-gateway" }
	agent := func() (*collector, string) { return c.sender.collector, "godwit-agent" }
	return []trouble{
		{"blocked", always(otlpserver.Step{Delay: 20 * time.Second})},
		{"refused for now", always(otlpserver.Step{Code: codes.Unavailable})},
		{"slow", wires(func(w *wire.Wire) { w.Slow(slowRate) }, func(w *wire.Wire) { w.Slow(0) })},
		{"a black hole", wires(func(w *wire.Wire) { w.Swallow(true) }, func(w *wire.Wire) { w.Swallow(false) })},
		{"cut at random bytes", wires(func(w *wire.Wire) { w.CutAfter(func() int { return 1 + rand.IntN(longestCut) }); w.Cut() }, func(w *wire.Wire) { w.CutAfter(nil) })},
		{"half open", wires((*wire.Wire).Forget, func(*wire.Wire) {})},
		{"the gateway stands still", func() {
			c.server.Signal(syscall.SIGSTOP)
			c.lasts()
			c.server.Signal(syscall.SIGCONT)
		}},
		{"the token expires", func() {
			c.guard.expire(c.t)
			c.lasts()
			c.guard.renew(c.t)
		}},
		{"the gateway is killed", ends(syscall.SIGKILL, gateway, func() {})},
		{"the gateway ends", ends(syscall.SIGTERM, gateway, func() {})},
		{"the gateway is killed, and the queue is full", ends(syscall.SIGKILL, gateway, func() {
			c.ledger.fill(c.t, dial(c.t, c.sender.grpc), 3, "queue is full")
		})},
		{"the agent is killed", ends(syscall.SIGKILL, agent, func() {})},
		{"the agent ends", ends(syscall.SIGTERM, agent, func() {})},
		{"the agent is killed, and comes back with other settings", ends(syscall.SIGKILL, agent, c.set)},
		{"the agent ends with a full queue, and comes back with other settings", func() {
			c.end(c.server.collector, "godwit-gateway", syscall.SIGKILL)
			c.ledger.fill(c.t, dial(c.t, c.sender.grpc), 3, "queue is full")
			c.end(c.sender.collector, "godwit-agent", cmp.Or(syscall.Signal(c.random.IntN(2)*int(syscall.SIGKILL)), syscall.SIGTERM))
			c.set()
			c.again(c.sender.collector)
			c.again(c.server.collector)
		}},
	}
}
