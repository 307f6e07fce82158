// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
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
	// allocatorVariable names the binary of the operator's target allocator to test with.
	allocatorVariable = "TARGET_ALLOCATOR"

	// allocatedInterval is between two scrapes of what is allocated. The allocator looks at its collectors every 5 seconds, and these ask
	// it every second: no more than one scrape can fall into that time.
	allocatedInterval = 10 * time.Second
)

// realAllocator is the target allocator of the OpenTelemetry operator, which serves over TLS and trusts one certificate.
type realAllocator struct {
	*process.Process

	endpoint  string
	authority string // the file of the certificate
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
	a.endpoint = "https://" + secure
	a.Process = process.Start(t, process.Settings{Path: path, Args: []string{
		"--config-file", configFile(t, config+"\ncollector_namespace: default\ncollector_selector: {matchlabels: {app: collector}}\n"),
		"--kubeconfig-path", k.Kubeconfig(t), "--listen-addr", plain,
		"--enable-https-server", "--listen-addr-https", secure,
		"--https-ca-file", a.authority, "--https-tls-cert-file", a.authority, "--https-tls-key-file", a.key,
	}})
	a.WaitHTTP(firstWords, "http://"+plain+"/livez", nil)
	return a
}

// member starts a collector that the allocator knows by a name, and what it ships to.
func (a *realAllocator) member(t *testing.T, name string, server *rwserver.Server) *collector {
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
      tls: {ca_file: %[4]s, cert_file: %[4]s, key_file: %[5]s}
      http_sd_config: {refresh_interval: 1s}
service:
  pipelines: {metrics: {receivers: [fastprometheus], exporters: [remotewrite]}}
`, server.URL(), a.endpoint, name, a.authority, a.key))
}

// memberPod is by what the allocator knows of a collector.
func memberPod(name string) string {
	return strings.ReplaceAll(pod(name, "node-1", "10.9.0.1"), "app: web", "app: collector")
}

// A glimpse is a sample of a target, and which collector has it.
type glimpse struct {
	rwserver.Sample

	by int
}

// glimpses are the samples of `up` of each target, whichever collector has them, by time.
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

// The allocator divides targets among three collectors over mutual TLS. One of them dies and comes back: others scrape its targets
// meanwhile, with no gap but for the time in which nobody knew, none is scraped by two, and no target is called stale, for all are there.
func TestAllocatorDividesTargets(t *testing.T) {
	t.Parallel()
	k := cluster.Start(t)
	const number = 30
	// The allocator divides by address, so that each target needs one of its own: all of 127.0.0.0/8 is this machine.
	l := serve.Listen(t, "0.0.0.0:0")
	serve.HTTP(t, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprint(w, goodPage)
	}))
	var statics []string
	for i := range number {
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		statics = append(statics, fmt.Sprintf("{targets: [%q]}", net.JoinHostPort(fmt.Sprintf("127.0.1.%d", i+1), port)))
	}
	names := []string{"collector-0", "collector-1", "collector-2"}
	for _, name := range names {
		k.Create(t, memberPod(name))
	}
	a := startAllocator(t, k, fmt.Sprintf("allocation_strategy: consistent-hashing\nfilter_strategy: relabel-config\nconfig:\n  scrape_configs:\n    - {job_name: fleet, scrape_interval: %s, scrape_timeout: %[1]s, static_configs: [%s]}\n",
		allocatedInterval, strings.Join(statics, ", ")))
	var servers []*rwserver.Server
	var members []*collector
	for _, name := range names {
		server := rwserver.New(t, rwserver.Options{})
		servers, members = append(servers, server), append(members, a.member(t, name, server))
	}
	// owners are who has had each target for its last two samples and has them since a time; those in doubt are left out.
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
			return len(by) == number && len(has) == among, fmt.Sprintf("%d of %d targets have an owner: %v", len(by), number, has)
		})
		return by
	}
	first := settled(time.Now(), len(names))

	// One dies, and its pod with it.
	members[1].Kill()
	died := time.Now()
	require.NoError(t, k.Remove(cluster.Objects(t, memberPod(names[1]))[0]))
	second := settled(died, len(names)-1)
	for instance, owner := range first {
		if owner != 1 {
			assert.Equal(t, owner, second[instance], "%s was not the dead collector's, and moved", instance)
		}
	}

	// It comes back, and is given targets again, by those who go on running.
	k.Create(t, memberPod(names[1]))
	members[1].Restart()
	members[1].ready()
	third := settled(time.Now(), len(names))
	assert.Equal(t, first, third, "as it was")
	// Those who gave targets away have had the time to call them stale.
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
	twice := 0
	for instance, list := range glimpses(servers) {
		for i, g := range list {
			assert.False(t, g.Stale(), "%s is there, and collector %d calls it stale", instance, g.by)
			if i == 0 {
				continue
			}
			gap := time.Duration(g.T-list[i-1].T) * time.Millisecond
			longest = max(longest, gap)
			if gap < allocatedInterval/2 {
				twice++
				t.Logf("%s was scraped by collector %d and, %s later, by %d, %s after collector 1 had died", instance, list[i-1].by, gap, g.by, time.UnixMilli(g.T).Sub(died).Round(time.Millisecond))
			}
		}
	}
	t.Logf("the longest gap was %s of an interval of %s; %d samples of %d targets were scraped by two collectors while targets moved", longest, allocatedInterval, twice, number)
	// One scrape is missing where it was due between the end of a member and the others' next question.
	assert.Less(t, longest, 5*allocatedInterval/2)
	// Members take up what they are told in one moment, between two scrapes: on a machine that lets a process wait for long, a target may be on either side of it.
	assert.LessOrEqual(t, twice, 2)
	for _, m := range members {
		assert.Zero(t, m.Stop(syscall.SIGTERM, drainTime))
	}
}

// What the operator's allocator makes of the kinds ServiceMonitor and PodMonitor, collectors scrape.
func TestAllocatorReadsMonitors(t *testing.T) {
	t.Parallel()
	k := cluster.Need(t)
	target := targets.New(t, targets.Page{Body: goodPage})
	for _, kind := range []string{"ServiceMonitor", "PodMonitor", "Probe", "ScrapeConfig"} {
		k.Create(t, monitorKind(kind))
	}
	k.Create(t, roleObjects+"---"+pod("web-a", "node-1", "10.2.0.1")+"---"+memberPod("collector-0"))
	there := fmt.Sprintf("relabelings: [{targetLabel: __address__, replacement: %q}]", target.Addr())
	monitors := fmt.Sprintf(`
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: by-service, namespace: default}
spec: {selector: {matchLabels: {app: web}}, endpoints: [{port: http, interval: 1s, scrapeTimeout: 1s, %[1]s}]}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: by-pod, namespace: default}
spec: {selector: {matchLabels: {app: web}}, podMetricsEndpoints: [{port: http, interval: 1s, scrapeTimeout: 1s, %[1]s}]}
`, there)
	for _, o := range cluster.Objects(t, monitors) {
		wait.Until(t, firstWords, func() (bool, string) { // a kind is served a moment after it was made
			err := k.Put(o)
			return err == nil, fmt.Sprint(err)
		})
	}
	a := startAllocator(t, k, "allocation_strategy: consistent-hashing\nfilter_strategy: relabel-config\n"+
		"prometheus_cr: {enabled: true, scrape_interval: 1s, service_monitor_selector: {}, pod_monitor_selector: {}}\n")
	server := rwserver.New(t, rwserver.Options{})
	c := a.member(t, "collector-0", server)
	for job, pod := range map[string]string{"web": "web-a", "default/by-pod": "web-a"} {
		wait.Until(t, firstSeries, func() (bool, string) {
			all := server.Series("up", "job", job, "pod", pod)
			return len(all) == 1 && all[0].Samples[len(all[0].Samples)-1].V == 1, "job " + job + " is not scraped"
		})
	}
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}

// monitorKind defines a kind of the Prometheus operator's, with any fields.
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
