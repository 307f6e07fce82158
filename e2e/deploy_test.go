// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/godwit-otel/godwit/e2e/repository"
)

const (
	deployed      = "deploy/kubernetes/"
	accountToken  = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	manifestsKind = "manifests of Kubernetes"
)

// A workload is the pod template of a controller, and the objects around it.
type workload struct {
	pod      corev1.PodTemplateSpec
	selector *metav1.LabelSelector
	claims   []corev1.PersistentVolumeClaim
	configs  map[string]*corev1.ConfigMap
	accounts map[string]bool
	secrets  map[string]*corev1.Secret
	services []*corev1.Service
	budgets  []*policyv1.PodDisruptionBudget
	policies []*networkingv1.NetworkPolicy
	monitors []monitor
	// serviceName is that of a StatefulSet.
	serviceName string
}

// A monitor is a PodMonitor or a ServiceMonitor.
type monitor struct {
	name   string
	ofPods bool
	labels map[string]string // of what it selects
	ports  []string
}

// The manifests decode strictly into the API's types, their parts fit together, and the configuration in them is valid
// for the image's binary.
func TestManifestsHangTogether(t *testing.T) {
	var found []string
	for _, name := range repository.Files(t) {
		if !strings.HasPrefix(name, deployed) {
			continue
		}
		found = append(found, name)
		t.Run(name, func(t *testing.T) { checkWorkload(t, readWorkload(t, repository.Read(t, name))) })
	}
	assert.Len(t, found, 2)
}

// The gateway's network policy lets in the agents of the other file, and nobody else at the ports of its receivers.
func TestManifestsAdmitAgentsToTheGateway(t *testing.T) {
	agent, gateway := readWorkload(t, repository.Read(t, deployed+"agent.yaml")), readWorkload(t, repository.Read(t, deployed+"gateway.yaml"))
	require.Len(t, gateway.policies, 1)
	everyone := map[int32]bool{8888: true, 13133: true} // scrapers, and the kubelet
	for _, rule := range gateway.policies[0].Spec.Ingress {
		for _, p := range rule.Ports {
			if everyone[p.Port.IntVal] {
				continue
			}
			require.Len(t, rule.From, 1, "who may reach port %s", p.Port)
			assert.Nil(t, rule.From[0].NamespaceSelector)
			s, err := metav1.LabelSelectorAsSelector(rule.From[0].PodSelector)
			require.NoError(t, err)
			assert.True(t, !s.Empty() && s.Matches(labels.Set(agent.pod.Labels)), "%s is not our agents", s)
		}
	}
}

func TestManifestsAreReadStrictly(t *testing.T) {
	for _, text := range []string{"apiVersion: v1\nkind: Secret\nstringdata: {a: b}\n", "apiVersion: v1\nkind: Nothing\n"} {
		_, err := decodeManifest([]byte(text))
		assert.Error(t, err, text)
	}
}

func decodeManifest(text []byte) (runtime.Object, error) {
	object, _, err := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode(text, nil, nil)
	return object, err
}

func newWorkload() *workload {
	return &workload{configs: map[string]*corev1.ConfigMap{}, accounts: map[string]bool{"": true}, secrets: map[string]*corev1.Secret{}}
}

func readWorkload(t *testing.T, text string) *workload {
	t.Helper()
	w := newWorkload()
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		object, err := decodeManifest(document)
		require.NoError(t, err, "%s", document)
		if namespaced, ok := object.(metav1.Object); ok && !clusterWide(object) {
			assert.Equal(t, "godwit", namespaced.GetNamespace(), namespaced.GetName())
		}
		w.add(t, object)
	}
	return w
}

func clusterWide(object runtime.Object) bool {
	switch object.(type) {
	case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		return true
	}
	return false
}

func (w *workload) add(t *testing.T, object runtime.Object) {
	t.Helper()
	switch o := object.(type) {
	case *appsv1.DaemonSet:
		w.pod, w.selector = o.Spec.Template, o.Spec.Selector
	case *appsv1.StatefulSet:
		w.pod, w.selector, w.claims, w.serviceName = o.Spec.Template, o.Spec.Selector, o.Spec.VolumeClaimTemplates, o.Spec.ServiceName
	case *appsv1.Deployment:
		w.pod, w.selector = o.Spec.Template, o.Spec.Selector
	case *corev1.ConfigMap:
		w.configs[o.Name] = o
	case *corev1.ServiceAccount:
		w.accounts[o.Name] = true
	case *corev1.Secret:
		w.secrets[o.Name] = o
	case *corev1.Service:
		w.services = append(w.services, o)
	case *policyv1.PodDisruptionBudget:
		w.budgets = append(w.budgets, o)
	case *networkingv1.NetworkPolicy:
		w.policies = append(w.policies, o)
	case *rbacv1.ClusterRoleBinding:
		require.Len(t, o.Subjects, 1)
		assert.True(t, w.accounts[o.Subjects[0].Name], "the account of the binding")
	}
}

func checkWorkload(t *testing.T, w *workload) {
	t.Helper()
	require.Len(t, w.pod.Spec.Containers, 1)
	container := &w.pod.Spec.Containers[0]
	assert.True(t, w.accounts[w.pod.Spec.ServiceAccountName])
	for _, source := range container.EnvFrom {
		assert.Contains(t, w.secrets, source.SecretRef.Name)
	}
	assert.NotEmpty(t, w.policies)
	assert.Empty(t, w.misfits(t, w.config()))
	if w.serviceName != "" {
		require.Len(t, w.services, 1)
		assert.Equal(t, w.services[0].Name, w.serviceName)
		assert.Len(t, w.budgets, 1)
	}
	distribution := image(t, container.Image)
	assert.Equal(t, []string{"--config", "/etc/" + distribution + "/config.yaml"}, container.Args)
	checkVolumes(t, w, container, distribution)
}

// config returns the only configuration of a workload.
func (w *workload) config() string {
	for _, c := range w.configs {
		return c.Data["config.yaml"] + c.Data["relay"] // the chart's name of it
	}
	return ""
}

// image returns the distribution in an image.
func image(t *testing.T, name string) string {
	t.Helper()
	name, version, found := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	require.True(t, found)
	assert.NotEqual(t, "latest", version)
	return name
}

func checkVolumes(t *testing.T, w *workload, container *corev1.Container, distribution string) {
	t.Helper()
	volumes := map[string]string{} // contents by volume name
	for _, v := range w.pod.Spec.Volumes {
		volumes[v.Name] = ""
		if v.ConfigMap != nil {
			require.Contains(t, w.configs, v.ConfigMap.Name)
			volumes[v.Name] = w.configs[v.ConfigMap.Name].Data["config.yaml"]
		}
	}
	for i := range w.claims {
		volumes[w.claims[i].Name] = ""
	}
	mounted := map[string]string{}
	for _, mount := range container.VolumeMounts {
		require.Contains(t, volumes, mount.Name)
		mounted[mount.MountPath] = volumes[mount.Name]
	}
	config := mounted["/etc/"+distribution]
	require.NotEmpty(t, config, "nothing is where the arguments look for the configuration")
	assert.Contains(t, config, "/var/lib/"+distribution)
	assert.Contains(t, mounted, "/var/lib/"+distribution, "the queue needs a volume: the root is read-only")
	checkConfig(t, distribution, config)
}

// checkConfig validates a pod's configuration with a distribution.
func checkConfig(t *testing.T, distribution, config string) {
	t.Helper()
	token := configFile(t, "some file that is there")
	path := configFile(t, strings.ReplaceAll(config, accountToken, token))
	exit, output := command(t, distribution, configEnv(t), "validate", "--config", path)
	assert.Zero(t, exit, output)
	assert.NoError(t, fits(t, configSchema(t), config))
}
