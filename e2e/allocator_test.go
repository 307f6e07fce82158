// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/cluster"
	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/serve"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/internal/certtest"
)

const (
	// allocatorVariable names the environment variable with the path of the operator's target allocator.
	allocatorVariable = "TARGET_ALLOCATOR"

	// allocatedInterval is the scrape interval of allocated targets. The allocator checks its collectors every 5
	// seconds, and they poll it every second: at most one scrape falls into that time.
	allocatedInterval = 10 * time.Second

	// orphaned is how long the targets of a dead collector may go unscraped: 5 seconds until the allocator notices, 2.5
	// until the others have asked it, one over which they spread the new targets' scrapes, up to a quarter of the interval
	// if the usual time of a scrape is as close as that, which makes an interval at most, and some for a busy machine.
	orphaned = 11 * time.Second

	// allocated is the number of targets to divide.
	allocated = 30
)

// realAllocator is the target allocator of the OpenTelemetry operator. It serves TLS and trusts a single certificate.
type realAllocator struct {
	*process.Process

	endpoint  string
	plain     string // the same API without TLS
	authority string // the certificate's file
	key       string
}

func allocatorBinary(t *testing.T) string {
	t.Helper()
	path := os.Getenv(allocatorVariable)
	if path == "" {
		path = filepath.Join(repository.Root(t), "bin", "rivals", "target-allocator")
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no target allocator to test with: run `make e2e-kubernetes`, or set %s to its binary", allocatorVariable)
		}
	}
	return path
}

func startAllocator(t *testing.T, k *cluster.Cluster, config string) *realAllocator {
	t.Helper()
	path, dir := allocatorBinary(t), t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	certificate, key := certtest.SelfSigned(t)
	a := &realAllocator{authority: file("tls.crt", certificate), key: file("tls.key", key)}
	plain, secure := freeport.Addr(t), freeport.Addr(t)
	a.endpoint, a.plain = "https://"+secure, "http://"+plain
	a.Process = process.Start(t, process.Settings{Path: path, Args: []string{
		"--config-file", configFile(t, config+"\ncollector_namespace: default\ncollector_selector: {matchlabels: {app: collector}}\n"),
		"--kubeconfig-path", k.Kubeconfig(t), "--listen-addr", plain,
		"--enable-https-server", "--listen-addr-https", secure,
		"--https-ca-file", a.authority, "--https-tls-cert-file", a.authority, "--https-tls-key-file", a.key,
	}})
	a.WaitHTTP(firstWords, a.plain+"/livez", nil)
	return a
}

// member starts a collector that the allocator knows by name and that sends to server.
func (a *realAllocator) member(t *testing.T, name string, server *rwserver.Server) *collector {
	t.Helper()
	return startMember(t, name, server, a.endpoint, fmt.Sprintf("{ca_file: %[1]s, cert_file: %[1]s, key_file: %[2]s}", a.authority, a.key), time.Second)
}

// knowsMembers waits until the allocator divides targets among this many collectors, and returns when it did first.
func (a *realAllocator) knowsMembers(t *testing.T, n int) time.Time {
	t.Helper()
	wait.Until(t, firstSeries, func() (bool, string) {
		var all map[string]any
		text := page(t, a.plain+"/jobs/nobodys/targets")
		err := json.Unmarshal([]byte(text), &all)
		return err == nil && len(all) == n, fmt.Sprintf("the allocator divides among %d: %v", len(all), err)
	})
	return time.Now()
}

func startMember(t *testing.T, name string, server *rwserver.Server, endpoint, tls string, refresh time.Duration) *collector {
	t.Helper()
	return startCollector(t, fmt.Sprintf(`
exporters:
  remotewrite:
    endpoint: %s
    target_info: {enabled: false}
    batch: {timeout: 100ms}
receivers:
  fastprometheus:
    target_allocator:
      endpoint: %s
      interval: 1s
      collector_id: %s
      tls: %s
      http_sd_config: {refresh_interval: %s}
service:
  pipelines: {metrics: {receivers: [fastprometheus], exporters: [remotewrite]}}
`, server.URL(), endpoint, name, tls, refresh))
}

// memberPod returns the pod by which the allocator finds a collector.
func memberPod(name string) string {
	return strings.ReplaceAll(pod(name, "node-1", "10.9.0.1"), "app: web", "app: collector")
}

// A glimpse is a sample of a target and the collector that scraped it.
type glimpse struct {
	rwserver.Sample

	by int
}

// glimpses returns the samples of `up` for each target, from all collectors, sorted by time.
func glimpses(servers []*rwserver.Server) map[string][]glimpse {
	all := map[string][]glimpse{}
	for i, server := range servers {
		for _, s := range server.Series("up") {
			for _, sample := range s.Samples {
				instance := s.Labels.Get("instance")
				all[instance] = append(all[instance], glimpse{sample, i})
			}
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b glimpse) int { return cmp.Compare(a.T, b.T) })
	}
	return all
}

// waitScraped waits until each target was scraped twice after since, by one collector, and all of them by this many.
func waitScraped(t *testing.T, servers []*rwserver.Server, since time.Time, among int) {
	t.Helper()
	wait.Until(t, firstSeries, func() (bool, string) {
		twice, by := 0, map[int]bool{}
		for _, list := range glimpses(servers) {
			if n := len(list); n > 1 && list[n-2].T >= since.UnixMilli() && list[n-1].by == list[n-2].by {
				twice++
				by[list[n-1].by] = true
			}
		}
		return twice == allocated && len(by) == among, fmt.Sprintf("%d of %d targets were scraped twice, by %d members", twice, allocated, len(by))
	})
}

// allocatedFleet starts the targets and returns the allocator's configuration for them. The allocator divides targets
// by address, so each needs its own: all of 127.0.0.0/8 is this machine.
func allocatedFleet(t *testing.T) string {
	t.Helper()
	l := serve.Listen(t, "0.0.0.0:0")
	serve.HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprint(w, goodPage)
	}))
	var statics []string
	for i := range allocated {
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		statics = append(statics, fmt.Sprintf("{targets: [%q]}", net.JoinHostPort(fmt.Sprintf("127.0.1.%d", i+1), port)))
	}
	return fmt.Sprintf("allocation_strategy: consistent-hashing\nfilter_strategy: relabel-config\nconfig:\n  scrape_configs:\n"+
		"    - {job_name: fleet, scrape_interval: %s, scrape_timeout: %[1]s, static_configs: [%s]}\n", allocatedInterval, strings.Join(statics, ", "))
}

// The allocator divides targets among three collectors over mutual TLS. One of them dies and comes back. Meanwhile the
// others scrape its targets: with no gap beyond the time to notice, no target scraped by two collectors, and no
// staleness marker, because every target is still there.
func TestAllocatorDividesTargets(t *testing.T) {
	t.Parallel()
	k := cluster.Start(t)
	names := []string{"collector-0", "collector-1", "collector-2"}
	for _, name := range names {
		k.Create(t, memberPod(name))
	}
	a := startAllocator(t, k, allocatedFleet(t))
	var servers []*rwserver.Server
	var members []*collector
	for _, name := range names {
		server := rwserver.New(t, rwserver.Options{})
		servers, members = append(servers, server), append(members, a.member(t, name, server))
	}
	// owners returns the collector that scraped each target in its last two samples, both later than since. Targets
	// without a clear owner are left out.
	owners := func(since time.Time) map[string]int {
		out := map[string]int{}
		for instance, list := range glimpses(servers) {
			if n := len(list); n > 1 && list[n-1].by == list[n-2].by && list[n-2].T >= since.UnixMilli() && !list[n-1].Stale() {
				out[instance] = list[n-1].by
			}
		}
		return out
	}
	settled := func(since time.Time, among int) map[string]int {
		t.Helper()
		var by map[string]int
		wait.Until(t, firstSeries, func() (bool, string) {
			by = owners(since)
			has := map[int]int{}
			for _, owner := range by {
				has[owner]++
			}
			return len(by) == allocated && len(has) == among, fmt.Sprintf("%d of %d targets have an owner: %v", len(by), allocated, has)
		})
		return by
	}
	first := settled(time.Now(), len(names))

	// One collector dies, and its pod is deleted.
	members[1].Kill()
	died := time.Now()
	require.NoError(t, k.Remove(cluster.Objects(t, memberPod(names[1]))[0]))
	second := settled(died, len(names)-1)
	for instance, owner := range first {
		if owner != 1 {
			assert.Equal(t, owner, second[instance], "%s was not the dead collector's, and moved", instance)
		}
	}

	// It comes back, and the collectors that still run return its targets.
	k.Create(t, memberPod(names[1]))
	members[1].Restart()
	members[1].ready()
	third := settled(time.Now(), len(names))
	assert.Equal(t, first, third, "as it was")
	// After this time, a collector that handed a target over would have sent a staleness marker.
	after := time.Now().Add(3 * allocatedInterval)
	wait.Until(t, firstSeries, func() (bool, string) {
		for instance, list := range glimpses(servers) {
			if list[len(list)-1].T < after.UnixMilli() {
				return false, instance + " has no later sample"
			}
		}
		return true, ""
	})

	var longest time.Duration
	twice, more := 0, 0
	for instance, list := range glimpses(servers) {
		for i, g := range list {
			assert.False(t, g.Stale(), "%s is there, and collector %d calls it stale", instance, g.by)
			if i == 0 {
				continue
			}
			gap := time.Duration(g.T-list[i-1].T) * time.Millisecond
			longest = max(longest, gap)
			if gap < allocatedInterval/2 && first[instance] == 1 && isOrphan(died, g) {
				more++ // the new owner could not know when the dead one last scraped it
			} else if gap < allocatedInterval/2 {
				twice++
				t.Logf("%s was scraped by collector %d and, %s later, by %d, %s after collector 1 had died", instance, list[i-1].by, gap, g.by, time.UnixMilli(g.T).Sub(died).Round(time.Millisecond))
			}
		}
	}
	t.Logf("the longest gap was %s of an interval of %s; %d samples of %d targets were scraped by two collectors while targets moved, and %d more soon after the end of their collector",
		longest, allocatedInterval, twice, allocated, more)
	assert.Less(t, longest, allocatedInterval+orphaned)
	// A member applies a new list at once, between two scrapes. On a machine that delays a process for long, a target
	// may still be scraped by both.
	assert.LessOrEqual(t, twice, 2)
	for _, m := range members {
		assert.Zero(t, m.Stop(syscall.SIGTERM, drainTime))
	}
}

// isOrphan reports whether a scrape came soon after its collector died.
func isOrphan(died time.Time, g glimpse) bool {
	after := time.UnixMilli(g.T).Sub(died)
	return after > 0 && after < allocatedInterval+orphaned
}

// A collector dies, and the others ask for their targets as rarely as by default. Its targets miss one scrape at most.
func TestAllocatorLosesAMember(t *testing.T) {
	t.Parallel()
	k := cluster.Start(t)
	names := []string{"collector-0", "collector-1", "collector-2"}
	for _, name := range names {
		k.Create(t, memberPod(name))
	}
	a := startAllocator(t, k, allocatedFleet(t))
	var servers []*rwserver.Server
	var members []*collector
	for _, name := range names {
		server := rwserver.New(t, rwserver.Options{})
		servers, members = append(servers, server), append(members, startMember(t, name, server, a.plain, "{insecure: true}", 30*time.Second))
	}
	waitScraped(t, servers, time.Now(), len(names))
	members[1].Kill()
	died := time.Now()
	require.NoError(t, k.Remove(cluster.Objects(t, memberPod(names[1]))[0]))
	known := a.knowsMembers(t, len(names)-1)
	waitScraped(t, servers, died, len(names)-1)

	var longest time.Duration
	adopted, first := 0, known.Add(time.Hour)
	for instance, list := range glimpses(servers) {
		for i, g := range list {
			assert.False(t, g.Stale(), "%s is there, and collector %d calls it stale", instance, g.by)
			if i == 0 || g.T < died.UnixMilli() {
				continue
			}
			gap := time.Duration(g.T-list[i-1].T) * time.Millisecond
			longest = max(longest, gap)
			if off := gap % allocatedInterval; off > time.Second && off < allocatedInterval-time.Second && list[i-1].by == 1 {
				adopted++
				if at := time.UnixMilli(g.T); at.Before(first) {
					first = at
				}
			}
		}
	}
	t.Logf("the allocator knew after %s, and others scraped %d targets at once, beginning %s later; the longest gap was %s of an interval of %s",
		known.Sub(died), adopted, first.Sub(known), longest, allocatedInterval)
	assert.Positive(t, adopted, "new owners wait for the usual times of their targets")
	assert.Less(t, longest, allocatedInterval+orphaned)
	for i, m := range members {
		if i != 1 {
			assert.Zero(t, m.Stop(syscall.SIGTERM, drainTime))
		}
	}
}

// Collectors scrape the targets that the operator's allocator derives from ServiceMonitor and PodMonitor.
func TestAllocatorReadsMonitors(t *testing.T) {
	t.Parallel()
	k := cluster.Need(t)
	target := targets.New(t, targets.Page{Body: goodPage})
	for _, kind := range []string{"ServiceMonitor", "PodMonitor", "Probe", "ScrapeConfig"} {
		k.Create(t, monitorKind(kind))
	}
	k.Create(t, roleObjects+"---"+pod("web-a", "node-1", "10.2.0.1")+"---"+memberPod("collector-0"))
	createMonitors(t, k, target.Addr())
	a := startAllocator(t, k, "allocation_strategy: consistent-hashing\nfilter_strategy: relabel-config\n"+
		"prometheus_cr: {enabled: true, scrape_interval: 1s, service_monitor_selector: {}, pod_monitor_selector: {}}\n")
	server := rwserver.New(t, rwserver.Options{})
	c := a.member(t, "collector-0", server)
	scrapesMonitored(t, server)
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}

// createMonitors creates the objects of monitors. The API server serves their new kinds only after a moment.
func createMonitors(t *testing.T, k *cluster.Cluster, addr string) {
	t.Helper()
	for _, o := range cluster.Objects(t, monitors(addr)) {
		wait.Until(t, firstWords, func() (bool, string) {
			err := k.Put(o)
			return err == nil, fmt.Sprint(err)
		})
	}
}

// monitors returns a ServiceMonitor and a PodMonitor of the pods of roleObjects, with the target at addr instead.
func monitors(addr string) string {
	return fmt.Sprintf(`
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: by-service, namespace: default}
spec: {selector: {matchLabels: {app: web}}, endpoints: [{port: http, interval: 1s, scrapeTimeout: 1s, %[1]s}]}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: by-pod, namespace: default}
spec: {selector: {matchLabels: {app: web}}, podMetricsEndpoints: [{port: http, interval: 1s, scrapeTimeout: 1s, %[1]s}]}
`, fmt.Sprintf("relabelings: [{targetLabel: __address__, replacement: %q}]", addr))
}

// scrapesMonitored waits until a pod is scraped as its monitors ask.
func scrapesMonitored(t *testing.T, server *rwserver.Server) {
	t.Helper()
	for job, pod := range map[string]string{"web": "web-a", "default/by-pod": "web-a"} {
		wait.Until(t, firstSeries, func() (bool, string) {
			all := server.Series("up", "job", job, "pod", pod)
			return len(all) == 1 && all[0].Samples[len(all[0].Samples)-1].V == 1, "job " + job + " is not scraped"
		})
	}
}

// monitorKind returns the definition of one of the Prometheus operator's kinds; it allows any fields.
func monitorKind(kind string) string {
	name := strings.ToLower(kind) + "s"
	version := "v1"
	if kind == "ScrapeConfig" {
		version = "v1alpha1"
	}
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: %[2]s, plural: %[1]s, singular: %[3]s}
  versions:
    - name: %[4]s
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, name, kind, strings.ToLower(kind), version)
}
