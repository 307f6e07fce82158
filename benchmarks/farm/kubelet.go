// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package farm

import "fmt"

// Kubelet generates the page that the cAdvisor in a kubelet serves for the pods of its node, which are on no other
// node: long identities, repeated on some forty series each, and one pod in fifty replaced from scrape to scrape.
func Kubelet(samples int) *Page {
	const perPod = 34
	p := &Page{live: true}
	places := make([]podPlace, min(60, max(1, samples/perPod)))
	for i := range places {
		places[i] = podPlace(i + 3) // from 3 on, the byte of a text is never 1, 2 or a line feed
	}
	namespace := func(at podPlace) string { return "team-" + word(int(at)%7) }
	pod := func(at podPlace) string {
		return fmt.Sprintf(`namespace=%q,pod="%s-%s"`, namespace(at), word(int(at)%11), at.text(0))
	}
	cgroup := func(at podPlace) string {
		return fmt.Sprintf(`/kubepods/burstable/pod%s-4a1e-%s`, at.text(1), at.text(0))
	}
	container := func(at podPlace) string {
		return fmt.Sprintf(`container="main",id="%s/%s%s",image="registry.example.org/%s@sha256:%s%s",name="%s%s",%s`,
			cgroup(at), at.text(2), at.text(3), word(int(at)%11), at.text(1), at.text(3), at.text(2), at.text(3), pod(at))
	}
	sandbox := func(at podPlace) string {
		return fmt.Sprintf(`container="",id="%s",image="",name="",%s`, cgroup(at), pod(at))
	}
	add := func(name, kind, help string, value float64, labels ...func(podPlace) string) {
		p.family(name, kind, help)
		for _, at := range places {
			for i, l := range labels {
				p.lines = append(p.lines, line{
					series: name + "{" + l(at) + "}", varies: true,
					value: scaled(value, 0.25+unit(hash(0, 16, int(at), i))), // bytes and counts are whole numbers, as in cAdvisor
				})
			}
		}
	}
	with := func(l func(podPlace) string, more string) func(podPlace) string {
		return func(at podPlace) string { return l(at) + "," + more }
	}
	for _, m := range []struct {
		name, kind string
		value      float64
	}{
		{"container_cpu_usage_seconds_total", "counter", 48211.372816},
		{"container_cpu_user_seconds_total", "counter", 39017.61},
		{"container_cpu_system_seconds_total", "counter", 9193.77},
		{"container_memory_usage_bytes", "gauge", 4096 * 61_233},
		{"container_memory_working_set_bytes", "gauge", 4096 * 52_871},
		{"container_memory_rss", "gauge", 4096 * 40_017},
		{"container_memory_cache", "gauge", 4096 * 9_733},
		{"container_start_time_seconds", "gauge", 1_732_104_556},
		{"container_spec_memory_limit_bytes", "gauge", 4096 * 131_072},
		{"container_threads", "gauge", 23},
	} {
		add(m.name, m.kind, "What cAdvisor says of a container.", m.value, container, sandbox)
	}
	add("container_memory_failures_total", "counter", "Cumulative count of memory allocation failures.", 771_203,
		with(container, `failure_type="pgfault",scope="container"`), with(container, `failure_type="pgmajfault",scope="container"`),
		with(container, `failure_type="pgfault",scope="hierarchy"`), with(container, `failure_type="pgmajfault",scope="hierarchy"`))
	for _, name := range []string{"receive_bytes", "receive_errors", "receive_packets", "transmit_bytes", "transmit_errors", "transmit_packets"} {
		add("container_network_"+name+"_total", "counter", "Cumulative count of the network.", 88_120_331, with(sandbox, `interface="eth0"`))
	}
	add("container_fs_writes_bytes_total", "counter", "Cumulative count of bytes written.", 91_220_992, with(container, `device="/dev/nvme0n1"`))
	add("container_fs_reads_bytes_total", "counter", "Cumulative count of bytes read.", 11_030_528, with(container, `device="/dev/nvme0n1"`))
	add("container_oom_events_total", "counter", "Count of out of memory events.", 0, container)
	add("container_last_seen", "gauge", "Last time a container was seen.", 1_732_444_556, container)
	return p
}
