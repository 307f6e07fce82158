// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/godwit-otel/godwit/e2e/repository"
)

// listeners are the ports on which a configuration listens, beyond the loopback.
type listeners struct {
	health, metrics int32
	all             map[int32]bool
}

func listenersOf(t *testing.T, config string) listeners {
	t.Helper()
	var read struct {
		Receivers  map[string]any
		Extensions map[string]any
		Service    struct {
			Telemetry struct {
				Metrics struct {
					Readers []struct {
						Pull struct {
							Exporter struct {
								Prometheus struct {
									Host string
									Port int32
								}
							}
						}
					}
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(config), &read))
	l := listeners{all: map[int32]bool{}}
	for _, port := range portsOf(read.Extensions["health_check"]) {
		l.health, l.all[port] = port, true
	}
	for _, port := range portsOf(read.Receivers) {
		l.all[port] = true
	}
	for _, reader := range read.Service.Telemetry.Metrics.Readers {
		if at := reader.Pull.Exporter.Prometheus; isBeyondLoopback(at.Host) {
			l.metrics, l.all[at.Port] = at.Port, true
		}
	}
	return l
}

// portsOf returns the ports of endpoints anywhere in a part of a configuration.
func portsOf(part any) (ports []int32) {
	switch v := part.(type) {
	case map[string]any:
		for key, value := range v {
			text, isText := value.(string)
			host, port, err := net.SplitHostPort(text)
			if n, wrong := strconv.ParseInt(port, 10, 32); key == "endpoint" && isText && err == nil && wrong == nil && isBeyondLoopback(host) {
				ports = append(ports, int32(n))
			}
			ports = append(ports, portsOf(value)...)
		}
	case []any:
		for _, value := range v {
			ports = append(ports, portsOf(value)...)
		}
	}
	return ports
}

// isBeyondLoopback reports whether a host to listen on is more than the loopback. The address of the pod, from its
// environment, is.
func isBeyondLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && !ip.IsLoopback() || strings.Contains(host, "POD_IP")
}

// misfits returns what in a workload does not fit its pods, and what in these does not fit their configuration. The
// API accepts all of it, and the pods may even run, but are not reached, not watched or not protected.
func (w *workload) misfits(t *testing.T, config string) []string {
	t.Helper()
	l := listenersOf(t, config)
	container := &w.pod.Spec.Containers[0]
	return slices.Concat(w.selectorMisfits(), probeMisfits(container, l), w.portMisfits(container, l), w.variableMisfits(container, config), w.volumeMisfits(container, config))
}

func (w *workload) selectorMisfits() (all []string) {
	selectors := map[string]*metav1.LabelSelector{"the controller": w.selector}
	for _, s := range w.services {
		selectors["service "+s.Name] = &metav1.LabelSelector{MatchLabels: s.Spec.Selector}
	}
	for _, b := range w.budgets {
		selectors["disruption budget "+b.Name] = b.Spec.Selector
	}
	for _, p := range w.policies {
		selectors["network policy "+p.Name] = &p.Spec.PodSelector
	}
	for i := range w.pod.Spec.TopologySpreadConstraints {
		selectors["spread constraint"] = w.pod.Spec.TopologySpreadConstraints[i].LabelSelector
	}
	for name, selector := range selectors {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || s.Empty() || !s.Matches(labels.Set(w.pod.Labels)) {
			all = append(all, fmt.Sprintf("%s selects other pods: %v (%v)", name, selector, err))
		}
	}
	for _, m := range w.monitors {
		s := labels.SelectorFromSet(m.labels)
		isOf := func(of map[string]string) bool { return !s.Empty() && s.Matches(labels.Set(of)) }
		if m.ofPods && !isOf(w.pod.Labels) || !m.ofPods && !slices.ContainsFunc(w.services, func(s *corev1.Service) bool { return isOf(s.Labels) }) {
			all = append(all, "monitor "+m.name+" selects nothing here")
		}
	}
	return all
}

// probeMisfits: the kubelet restarts a pod whose probe asks where nothing answers.
func probeMisfits(container *corev1.Container, l listeners) (all []string) {
	for kind, probe := range map[string]*corev1.Probe{"liveness": container.LivenessProbe, "readiness": container.ReadinessProbe} {
		switch {
		case probe == nil || probe.HTTPGet == nil:
			all = append(all, "no "+kind+" probe")
		case resolved(container, probe.HTTPGet.Port) != l.health || l.health == 0:
			all = append(all, fmt.Sprintf("the %s probe asks at port %s, and health_check listens on %d", kind, probe.HTTPGet.Port.String(), l.health))
		case probe.HTTPGet.Path != "/":
			all = append(all, fmt.Sprintf("the %s probe asks for %q", kind, probe.HTTPGet.Path))
		}
	}
	return all
}

// resolved returns the number of a port of a container, or 0 for a name that it does not have.
func resolved(container *corev1.Container, port intstr.IntOrString) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, p := range container.Ports {
		if p.Name == port.StrVal {
			return p.ContainerPort
		}
	}
	return 0
}

func (w *workload) portMisfits(container *corev1.Container, l listeners) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, p := range container.Ports {
		if !l.all[p.ContainerPort] {
			say("nothing listens on %d, port %s of the container", p.ContainerPort, p.Name)
		}
	}
	for _, s := range w.services {
		for _, p := range s.Spec.Ports {
			target := p.TargetPort
			if target == (intstr.IntOrString{}) {
				target = intstr.FromInt32(p.Port)
			}
			if n := resolved(container, target); !l.all[n] {
				say("nothing listens on %s, port %s of service %s", target.String(), p.Name, s.Name)
			}
		}
	}
	for _, p := range w.policies {
		for _, misfit := range policyMisfits(p, container, l) {
			say("network policy %s: %s", p.Name, misfit)
		}
	}
	for _, m := range w.monitors {
		for _, port := range m.ports {
			if resolved(container, intstr.FromString(port)) != l.metrics || l.metrics == 0 {
				say("port %s of monitor %s is not that of the metrics", port, m.name)
			}
		}
	}
	if port, has := w.pod.Annotations["prometheus.io/port"]; has && port != fmt.Sprint(l.metrics) {
		say("the annotation has port %s, and the metrics %d", port, l.metrics)
	}
	return all
}

// policyMisfits: a policy lets through what the pod listens on, and nothing else.
func policyMisfits(p *networkingv1.NetworkPolicy, container *corev1.Container, l listeners) (all []string) {
	open := map[int32]bool{}
	for _, rule := range p.Spec.Ingress {
		for _, port := range rule.Ports {
			n := resolved(container, *port.Port)
			if open[n] = true; !l.all[n] {
				all = append(all, fmt.Sprintf("nothing listens on %s", port.Port.String()))
			}
		}
	}
	for port := range l.all {
		if !open[port] {
			all = append(all, fmt.Sprintf("%d is closed", port))
		}
	}
	return all
}

var variable = regexp.MustCompile(`\$\{env:([A-Z0-9_]+)`)

// variableMisfits: a variable that nobody sets is its default, which is hardly ever right. GODWIT_DATA is.
func (w *workload) variableMisfits(container *corev1.Container, config string) (all []string) {
	set, reads := map[string]bool{"GODWIT_DATA": true}, map[string]bool{}
	for _, match := range variable.FindAllStringSubmatch(config, -1) {
		reads[match[1]] = true
	}
	for _, v := range container.Env {
		set[v.Name] = true
	}
	for _, from := range container.EnvFrom {
		secret := w.secrets[from.SecretRef.Name]
		if secret == nil { // the user's: its contents are described where it is made
			set["GODWIT_REMOTE_WRITE_URL"], set["GODWIT_ALLOCATOR"] = true, true
			continue
		}
		for name := range secret.StringData {
			if set[name] = true; !reads[name] {
				all = append(all, "the configuration does not read "+name+" of the secret")
			}
		}
	}
	for name := range reads {
		if !set[name] {
			all = append(all, "nobody sets "+name)
		}
	}
	return all
}

var dataDirectory = regexp.MustCompile(`\$\{env:GODWIT_DATA:-([^}]+)\}`)

// volumeMisfits: the queue is in a volume that its user can write.
func (w *workload) volumeMisfits(container *corev1.Container, config string) (all []string) {
	there := map[string]bool{}
	for i := range w.pod.Spec.Volumes {
		there[w.pod.Spec.Volumes[i].Name] = true
	}
	for i := range w.claims {
		there[w.claims[i].Name] = true
	}
	data := dataDirectory.FindStringSubmatch(config)
	isMounted := data == nil
	for _, m := range container.VolumeMounts {
		isMounted = isMounted || m.MountPath == data[1] && !m.ReadOnly
		if !there[m.Name] {
			all = append(all, "no volume "+m.Name)
		}
	}
	if !isMounted {
		all = append(all, "no volume at "+data[1])
	}
	if c := w.pod.Spec.SecurityContext; c == nil || c.RunAsUser == nil || c.FSGroup == nil || *c.RunAsUser != *c.FSGroup {
		all = append(all, "the volumes belong to another group than the user's")
	}
	return all
}

// What the checks of our manifests are to find: each of these changes leaves manifests that the API accepts.
func TestMisfitsOfManifestsAreFound(t *testing.T) {
	f := func(file, old, changed, want string) {
		t.Helper()
		text := repository.Read(t, deployed+file)
		require.Contains(t, text, old)
		w := readWorkload(t, strings.Replace(text, old, changed, 1))
		assert.Contains(t, strings.Join(w.misfits(t, w.config()), "\n"), want, "%s instead of %s", changed, old)
	}
	const agent, gateway = "agent.yaml", "gateway.yaml"
	f(agent, "endpoint: 0.0.0.0:13133", "endpoint: 0.0.0.0:14133", "the liveness probe asks at port health, and health_check listens on 14133")
	f(agent, "endpoint: 0.0.0.0:13133", "endpoint: 127.0.0.1:13133", "the readiness probe asks at port health, and health_check listens on 0")
	f(agent, "{name: health, containerPort: 13133}", "{name: health, containerPort: 14133}", "nothing listens on 14133, port health")
	f(agent, "livenessProbe: {httpGet: {path: /, port: health}", "livenessProbe: {httpGet: {path: /, port: metrics}", "the liveness probe asks at port metrics")
	f(agent, "readinessProbe: {httpGet: {path: /, ", "readinessProbe: {httpGet: {path: /ready, ", `the readiness probe asks for "/ready"`)
	f(agent, "host: 0.0.0.0", "host: localhost", "nothing listens on 8888")
	f(agent, "port: 8888\n", "port: 8889\n", "the annotation has port 8888")
	f(agent, "- {port: 13133, protocol: TCP}", "", "network policy godwit-agent: 13133 is closed")
	f(agent, "- {port: 8888, protocol: TCP}", "- {port: 8887, protocol: TCP}", "network policy godwit-agent: nothing listens on 8887")
	f(agent, "podSelector:\n    matchLabels: {app.kubernetes.io/name: godwit-agent}", "podSelector:\n    matchLabels: {app.kubernetes.io/name: agent}", "network policy godwit-agent selects other pods")
	f(agent, "podSelector:\n    matchLabels: {app.kubernetes.io/name: godwit-agent}", "podSelector: {}", "network policy godwit-agent selects other pods")
	f(agent, "{name: NODE_IP, valueFrom", "{name: NODEIP, valueFrom", "nobody sets NODE_IP")
	f(agent, "stringData:\n  GODWIT_REMOTE_WRITE_URL", "stringData:\n  GODWIT_REMOTE_URL", "nobody sets GODWIT_REMOTE_WRITE_URL")
	f(agent, "{name: data, mountPath: /var/lib/godwit-agent}", "{name: data, mountPath: /var/lib/agent}", "no volume at /var/lib/godwit-agent")
	f(agent, "fsGroup: 10001", "fsGroup: 10002", "the volumes belong to another group")
	f(gateway, "maxUnavailable: 1\n  selector:\n    matchLabels: {app.kubernetes.io/name: godwit-gateway}", "maxUnavailable: 1\n  selector: {}", "disruption budget godwit-gateway selects other pods")
	f(gateway, "selector: {app.kubernetes.io/name: godwit-gateway}", "selector: {app: godwit-gateway}", "service godwit-gateway selects other pods")
	f(gateway, "{name: otlp-http, port: 4318}", "{name: otlp-http, port: 4318, targetPort: http}", "nothing listens on http, port otlp-http of service")
	f(gateway, "{name: remote-write, port: 19291}", "{name: remote-write, port: 80}", "nothing listens on 80")
	f(gateway, "labelSelector: {matchLabels: {app.kubernetes.io/name: godwit-gateway}}", "labelSelector: {matchLabels: {app: gateway}}", "spread constraint selects other pods")
	f(gateway, `endpoint: 0.0.0.0:19291`, `endpoint: 0.0.0.0:9291`, "network policy godwit-gateway: 9291 is closed")
	f(gateway, "- metadata: {name: data}", "- metadata: {name: queue}", "no volume data")
}
