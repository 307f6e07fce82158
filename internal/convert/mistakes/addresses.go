// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package mistakes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/components"
	"github.com/godwit-otel/godwit/internal/convert/document"
)

var (
	// byAddress are components whose endpoints are addresses with a port; byURL are those whose endpoints are URLs.
	byAddress    = append([]string{"otlp", "otlp_grpc", "health_check", "pprof", "zpages"}, ours...)
	byURL        = []string{"remotewrite", "prometheus_remote_write", "prometheusremotewrite", "otlp_http", "otlphttp"}
	endpointKeys = []string{"endpoint", "traces_endpoint", "metrics_endpoint", "logs_endpoint"}
	aPort        = regexp.MustCompile(`^[0-9]+$`)
)

// address finds a port without an address, and a URL without its scheme. For the former, the collector would only ask
// for a text.
func (m *finder) address(n *yaml.Node, path []string) error {
	if len(path) < 3 || !slices.Contains(endpointKeys, path[len(path)-1]) || slices.Contains(path, "config") || m.isReplaced(path) ||
		slices.Contains(path, "endpoints") && m.isReplaced(path[:slices.Index(path, "endpoints")+1]) {
		return nil
	}
	url := path[0] == "exporters" && slices.Contains(byURL, components.TypeOf(path[1]))
	if !url && !slices.Contains(byAddress, components.TypeOf(path[1])) {
		return nil
	}
	value, of := m.said(n.Value)
	lower, scheme := strings.ToLower(value), ""
	if url {
		scheme = "http://"
	}
	what := "`" + withoutPassword(value) + "`" + of
	switch {
	case value == "", url && (strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")):
		return nil
	case aPort.MatchString(value) && path[0] == "exporters":
		return m.at(n, path, fmt.Sprintf("%s is a port without a host: write %shost:%s", what, scheme, value))
	case aPort.MatchString(value):
		return m.at(n, path, fmt.Sprintf("%s is a port without an address: write 127.0.0.1:%s for this machine only, or 0.0.0.0:%[2]s for all", what, value))
	case url && strings.Contains(value, "://"):
		return m.at(n, path, what+" must begin with http:// or https://")
	case url:
		value = withoutPassword(value)
		return m.at(n, path, fmt.Sprintf("%s has no scheme: write http://%s, or https://%[2]s", what, value))
	}
	return nil
}

// withoutPassword removes the user and password from an address.
func withoutPassword(address string) string {
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		return "…" + address[i:]
	}
	return address
}

// targets finds URLs where a job expects hosts and ports, if no rule makes an address of them. Such a target would
// never be scraped.
func (m *finder) targets(job *yaml.Node, path []string) error {
	for _, rule := range document.Contents(document.Find(job, "relabel_configs")) {
		to, action := document.Find(rule, "target_label"), document.Find(rule, "action")
		if rule.Kind != yaml.MappingNode || action != nil && action.Value == "labelmap" || to != nil && (to.Value == "__address__" || strings.Contains(to.Value, "$")) {
			return nil
		}
	}
	path = append(slices.Clip(path), "static_configs", "targets")
	for _, group := range document.Contents(document.Find(job, "static_configs")) {
		for _, target := range document.Contents(document.Find(group, "targets")) {
			scheme, rest, found := strings.Cut(target.Value, "://")
			if !found || scheme != "http" && scheme != "https" || strings.Contains(rest, "${") || m.isReplaced(path[:len(path)-2]) {
				continue
			}
			host, page, _ := strings.Cut(rest, "/")
			text := "a target is a host and port, not a URL: write " + host
			if scheme == "https" {
				text += ", and `scheme: https` for the job"
			}
			if page != "" && page != "metrics" {
				text += fmt.Sprintf(", and `metrics_path: /%s` for the job", page)
			}
			return m.at(target, path, text)
		}
	}
	return nil
}
