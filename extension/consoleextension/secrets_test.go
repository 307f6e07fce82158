// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/consoletest"
	"github.com/godwit-otel/godwit/internal/inspect"
)

// Every value that contains s3cr3t is a secret, in places where users have them, some of them unusual.
const nasty = `
receivers:
  fastprometheus:
    config:
      scrape_configs:
        - job_name: node
          basic_auth: {username: me, password: s3cr3t-1}
          authorization: {type: Bearer, credentials: s3cr3t-2}
          oauth2: {client_id: x, client_secret: s3cr3t-3, token_url: "https://u:s3cr3t-4@idp/token?client_secret=s3cr3t-5", endpoint_params: {assertion: s3cr3t-6}}
          params: {"api_key": [s3cr3t-7], plain: [s3cr3t-8]}
          http_headers: {X-Scope: {values: [s3cr3t-9], secrets: [s3cr3t-10]}}
          proxy_url: http://u:s3cr3t-11@proxy:3128
          proxy_connect_header: {Proxy-Authorization: [s3cr3t-12]}
          static_configs: [{targets: ["u:s3cr3t-13@host:1", "https://s3cr3t-14@host/"], labels: {__param_token: s3cr3t-15}}]
          consul_sd_configs: [{server: c, token: s3cr3t-16, password: s3cr3t-17}]
          ec2_sd_configs: [{access_key: s3cr3t-18, secret_key: s3cr3t-19}]
          azure_sd_configs: [{client_secret: s3cr3t-20}]
          http_sd_configs: [{url: "https://sd/x?access_token=s3cr3t-21&a=b"}]
processors:
  attributes: {actions: [{key: auth_token, value: s3cr3t-22, action: insert}, {key: harmless, value: "seen", action: insert}]}
  transform: {statements: ['set(attributes["h"], "Bearer s3cr3t-23-abcdef")']}
exporters:
  remotewrite:
    endpoint: "https://u:s3cr3t-24@mimir/push?X-Amz-Signature=s3cr3t-25"
    headers: {Authorization: Basic s3cr3t-26, X-Anything: s3cr3t-27}
    tls: {key_pem: "s3cr3t-28", cert_file: /etc/cert.pem, key_file: /etc/key.pem}
    list: [{name: X-Api-Key, value: s3cr3t-29}, {name: Password, value: 53}]
  kafka: {auth: {sasl: {username: u, password: s3cr3t-30}}, dsn: "host=a password=s3cr3t-31 user=b"}
  sql: {datasource: "postgres://u:s3cr3t-32@db/x", note: "Server=x;Pwd=s3cr3t-33;Database=y"}
  odd: {apiKey: s3cr3t-34, "API-KEY": s3cr3t-35, passPhrase: s3cr3t-36, private_key: s3cr3t-37, "session.cookie": s3cr3t-38, webhook_url: "https://hooks/s3cr3t-39"}
  more: {pem: "-----BEGIN RSA PRIVATE KEY-----\ns3cr3t-40\n-----END RSA PRIVATE KEY-----", jwt: eyJhbGciOiJIUzI1NiJ9.s3cr3t-41.abc, aws: "AKIAIOSFODNN7EXAMPLE"}
  deep: {secrets: {a: {b: [s3cr3t-42, {c: s3cr3t-43}]}}, text: "curl -H 'Authorization: Bearer s3cr3t-44-xyz' http://x"}
extensions:
  basicauth: {htpasswd: {inline: "u:s3cr3t-45"}, client_auth: {username: u, password: s3cr3t-46}}
  bearertokenauth: {token: s3cr3t-47, filename: /etc/token}
  env: {environment: {DB_PASS: s3cr3t-48}}
service:
  pipelines: {metrics: {receivers: [fastprometheus], exporters: [remotewrite]}}
`

func TestNoSecretInAnyAnswer(t *testing.T) {
	s := open(t)
	s.configure(nasty)
	evil := errors.New(`Post "https://u:s3cr3t@mimir/push?token=s3cr3t": Authorization: Bearer s3cr3t-xyz`)
	s.ComponentStatusChanged(componentstatus.NewInstanceID(consoletest.ID("remotewrite"), component.KindExporter), componentstatus.NewPermanentErrorEvent(evil))
	receiver := consoletest.Scraped(3)
	receiver.Targets = func() inspect.Targets {
		labels := []inspect.Label{
			{Name: "__param_token", Value: "s3cr3t"},
			{Name: "__meta_kubernetes_pod_annotation_api_key", Value: "s3cr3t"},
			{Name: "__address__", Value: "https://u:s3cr3t@host"},
			{Name: "url", Value: "http://u:s3cr3t@host?apikey=s3cr3t"},
		}
		target := inspect.Target{
			ID: "0000000000000001", URL: "http://u:s3cr3t@host/metrics?to%6ben=s3cr3t&a=b", State: inspect.Failing, LastError: evil.Error(),
			Labels: consoletest.TargetLabels{Now: labels, Found: labels},
		}
		return inspect.Targets{Jobs: []inspect.Job{{Name: "j", Targets: []inspect.Target{target}, Dropped: []inspect.Labels{consoletest.TargetLabels{Now: labels, Found: labels}}}}}
	}
	s.RegisterInspection(receiver)
	s.RegisterInspection(inspect.Source{
		Kind: component.KindExporter, ID: consoletest.ID("remotewrite"),
		Delivery: func() inspect.Delivery {
			return inspect.Delivery{Destinations: []inspect.Destination{{Name: "http://u:s3cr3t@mimir?sig=s3cr3t", LastError: evil.Error(), BreakerOpen: true}}}
		},
	})
	s.processor("cardinality", consoletest.Cardinality{})
	for _, path := range everything {
		_, h, text := s.do(http.MethodGet, path, "")
		if i := strings.Index(text, "s3cr3t"); i >= 0 {
			t.Errorf("%s: …%s…", path, text[max(0, i-60):min(len(text), i+30)])
		}
		for name, values := range h {
			require.NotContains(t, strings.Join(values, " "), "s3cr3t", name)
		}
	}
	// Secrets cannot be guessed by searching for them either.
	require.Zero(t, get[struct{ Matched int }](s, "/api/v1/targets?q=s3cr3t").Matched)
	require.Equal(t, 1, get[struct{ Matched int }](s, "/api/v1/targets?q=host").Matched)

	text := get[struct {
		YAML     string
		Redacted int
	}](s, "/api/v1/configuration")
	require.NotContains(t, text.YAML, "AKIAIOSF")
	require.NotContains(t, text.YAML, "value: 53")
	require.Contains(t, text.YAML, "/etc/key.pem", "where a secret is, is none")
	require.Contains(t, text.YAML, "filename: /etc/token")
	require.Contains(t, text.YAML, "value: seen")
	require.Contains(t, text.YAML, "username: me")
	require.NotContains(t, text.YAML, "a=b", "what a parameter is for is not known")
	require.Contains(t, text.YAML, "access_token=[REDACTED]&a=[REDACTED]")
	require.Greater(t, text.Redacted, 40)
}
