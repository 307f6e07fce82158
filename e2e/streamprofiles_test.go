// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// profileSink receives profiles and counts how often each one came.
type profileSink struct {
	pprofileotlp.UnimplementedGRPCServer

	mu  sync.Mutex
	got map[pprofile.ProfileID]int
}

func (s *profileSink) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.Profiles().ResourceProfiles().All() {
		for _, scope := range resource.ScopeProfiles().All() {
			for _, profile := range scope.Profiles().All() {
				s.got[profile.ProfileID()]++
			}
		}
	}
	return pprofileotlp.NewExportResponse(), nil
}

// missing counts those of the first n profiles that have not come.
func (s *profileSink) missing(n uint64) (missing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range n {
		if s.got[profileID(i)] == 0 {
			missing++
		}
	}
	return missing
}

func profileID(number uint64) (id pprofile.ProfileID) {
	binary.BigEndian.PutUint64(id[8:], number+1)
	return id
}

func serveProfiles(t *testing.T) (*profileSink, string) {
	t.Helper()
	s, l := &profileSink{got: map[pprofile.ProfileID]int{}}, serve.Listen(t, "127.0.0.1:0")
	server := grpc.NewServer()
	pprofileotlp.RegisterGRPCServer(server, s)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return s, l.Addr().String()
}

// aProfile returns a profile with a sample of one function, whose name is in the dictionary.
func aProfile(number uint64) pprofileotlp.ExportRequest {
	all := pprofile.NewProfiles()
	dictionary := all.Dictionary()
	dictionary.StringTable().Append("", "cpu", "nanoseconds", "main.work")
	dictionary.FunctionTable().AppendEmpty()
	dictionary.FunctionTable().AppendEmpty().SetNameStrindex(3)
	dictionary.LocationTable().AppendEmpty()
	dictionary.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(1)
	dictionary.StackTable().AppendEmpty()
	dictionary.StackTable().AppendEmpty().LocationIndices().Append(1)
	profile := all.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	profile.SetProfileID(profileID(number))
	profile.SampleType().SetTypeStrindex(1)
	profile.SampleType().SetUnitStrindex(2)
	sample := profile.Samples().AppendEmpty()
	sample.SetStackIndex(1)
	sample.Values().Append(10)
	return pprofileotlp.NewExportRequestFromProfiles(all)
}

// startProfiling starts a distribution with a pipeline of profiles, for which the Collector needs a feature gate.
func startProfiling(t *testing.T, name, from, to string, configs ...string) *collector {
	t.Helper()
	pipeline := fmt.Sprintf("service: {pipelines: {profiles: {receivers: [%s], exporters: [%s]}}}\n", from, to)
	return startCommand(t, []string{process.Binary(t, name), "--feature-gates=+service.profilesSupport"}, append(configs, pipeline)...)
}

// Profiles pass through agent and gateway unchanged, and no acknowledged one is lost when either is killed.
func TestStreamCarriesProfiles(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, transport string) {
		sink, addr := serveProfiles(t)
		server := &receiving{grpc: freeport.Addr(t), http: freeport.Addr(t)}
		server.collector = startProfiling(t, "godwit-gateway", "otlpstream", "otlp_grpc", fmt.Sprintf(streamServer, server.grpc, server.http, addr))
		sender := &sending{grpc: freeport.Addr(t)}
		sender.collector = startProfiling(t, "godwit-agent", "otlp", "otlpstream", fmt.Sprintf(streamSender, sender.grpc, server.addr(transport), transport), streamQueueOnDisk)

		var acknowledged atomic.Uint64
		flood := func() (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			conn, done := dial(t, sender.grpc), make(chan struct{})
			go func() {
				defer close(done)
				for ctx.Err() == nil {
					if _, err := pprofileotlp.NewGRPCClient(conn).Export(ctx, aProfile(acknowledged.Load())); err == nil {
						acknowledged.Add(1)
					} else {
						wait.Pause(ctx, refusedPause)
					}
				}
			}()
			return func() { cancel(); <-done }
		}
		flows := func() {
			before := acknowledged.Load()
			wait.Until(t, delivery, func() (bool, string) { return acknowledged.Load() > before+100, "nothing is acknowledged" })
		}
		stop := flood()
		flows()
		server.Kill()
		flows() // into the queue
		sender.Kill()
		stop()
		sender.Restart()
		sender.ready()
		server.Restart()
		server.ready()
		stop = flood()
		flows()
		stop()
		wait.Until(t, delivery, func() (bool, string) {
			n := acknowledged.Load()
			missing := sink.missing(n)
			return missing == 0, fmt.Sprintf("%d of %d profiles have not come", missing, n)
		})
		sender.settles(t)
		assert.Positive(t, sender.counter(t, streamOpened), "they go over streams")
		assert.Zero(t, sender.Stop(syscall.SIGTERM, drainTime))
		assert.Zero(t, server.Stop(syscall.SIGTERM, drainTime))
	})
}
