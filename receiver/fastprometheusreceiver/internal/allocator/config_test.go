// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/base64"
	"testing"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"
)

func load(t *testing.T, text string) (Config, error) {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	cfg := NewDefaultConfig()
	if err := conf.Unmarshal(&cfg); err != nil {
		return cfg, err
	}
	return cfg, confmap.Validate(&cfg)
}

const everyKey = `
endpoint: https://allocator:443
timeout: 5s
interval: 15s
collector_id: collector-1
proxy_url: http://proxy:3128
tls:
  ca_file: ca.crt
  cert_file: client.crt
  key_file: client.key
  server_name_override: allocator
  insecure_skip_verify: true
  min_version: "1.2"
  max_version: "1.3"
http_sd_config:
  refresh_interval: 60s
  basic_auth:
    username: discoverer
    password: secret
http_scrape_config:
  basic_auth:
    username: scraper
    password: secret
`

func TestEveryKey(t *testing.T) {
	cfg, err := load(t, everyKey)
	require.NoError(t, err)
	jobs := readJobs(t, func(c *Config) {
		endpoint := c.Client.Endpoint
		*c = cfg
		c.Client.Endpoint = endpoint
		c.Client.TLS.CAFile, c.Client.TLS.CertFile, c.Client.TLS.KeyFile = "", "", ""
	}, oneJob)
	assert.Equal(t, "scraper", jobs[0].HTTPClientConfig.BasicAuth.Username)
	assert.Equal(t, "/one", jobs[0].MetricsPath)
	assert.Equal(t, time.Minute, time.Duration(targetsOf(t, jobs[0]).RefreshInterval))

	targets, err := cfg.discovery()
	require.NoError(t, err)
	client := targets.HTTPClientConfig
	assert.Equal(t, commonconfig.Secret("secret"), client.BasicAuth.Password)
	assert.Equal(t, "http://proxy:3128", client.ProxyURL.String())
	assert.Equal(t, commonconfig.TLSConfig{
		CAFile: "ca.crt", CertFile: "client.crt", KeyFile: "client.key", ServerName: "allocator", InsecureSkipVerify: true,
		MinVersion: commonconfig.TLSVersions["TLS12"], MaxVersion: commonconfig.TLSVersions["TLS13"],
	}, client.TLSConfig)
}

func TestDefaults(t *testing.T) {
	cfg, err := load(t, "{endpoint: 'http://allocator', interval: 30s, collector_id: c}")
	require.NoError(t, err)
	assert.Equal(t, 30*time.Second, cfg.Client.Timeout)
	assert.Nil(t, cfg.Discovery.read)
	assert.Nil(t, cfg.Scrape.read)
}

func TestInvalid(t *testing.T) {
	for text, words := range map[string][]string{
		"{}": {"`endpoint`", "`collector_id`", "`interval`"},
		"{endpoint: 'allocator:80', interval: -1s, collector_id: '${POD_NAME}', timeout: -1s}": {"`endpoint`", "`collector_id`", "`interval`", "`timeout`"},
		"{endpoint: 'http://', interval: 1s, collector_id: a}":                                 {"`endpoint`"},
		"{surprise: 1}":                   {"surprise"},
		"{http_sd_config: {surprise: 1}}": {"`http_sd_config`", "surprise"},
		"{endpoint: 'http://a', interval: 1s, collector_id: a, allowed_files: [a]}":                     {"`allowed_files`", "\"a\""},
		"{endpoint: 'http://a', interval: 1s, collector_id: a, allowed_files: ['/[']}":                  {"`allowed_files`"},
		"{http_scrape_config: {surprise: 1}}":                                                           {"`http_scrape_config`", "surprise"},
		"{http_scrape_config: {bearer_token_file: a, basic_auth: {username: b}}}":                       {"`http_scrape_config`"},
		"{endpoint: 'http://a', interval: 1s, collector_id: a, tls: {min_version: '9'}}":                {"9"},
		"{endpoint: 'http://a', interval: 1s, collector_id: a, tls: {ca_pem: '%'}}":                     {"`tls::ca_pem`"},
		"{endpoint: 'http://a', interval: 1s, collector_id: a, proxy_url: ':'}":                         {"`proxy_url`"},
		"{endpoint: 'http://a', interval: 1s, collector_id: a, http_sd_config: {refresh_interval: 0s}}": {"`http_sd_config`", "`refresh_interval`", "0s"},
	} {
		_, err := load(t, text)
		for _, word := range words {
			require.ErrorContains(t, err, word, text)
		}
	}
}

// PEM may be encoded in base64.
func TestPEM(t *testing.T) {
	text := "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
	for _, given := range []string{text, base64.StdEncoding.EncodeToString([]byte(text))} {
		got, err := pem("ca_pem", configopaque.String(given))
		require.NoError(t, err)
		assert.Equal(t, text, got)
	}
}

// A marshalled configuration has no secrets, and can be unmarshalled.
func TestMarshal(t *testing.T) {
	cfg, err := load(t, everyKey)
	require.NoError(t, err)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(&cfg))
	assert.Equal(t, "discoverer", conf.Get("http_sd_config::basic_auth::username"))
	assert.Equal(t, "<secret>", conf.Get("http_sd_config::basic_auth::password"))
	assert.Nil(t, conf.Get("http_sd_config::url"))
	assert.Equal(t, "<secret>", conf.Get("http_scrape_config::basic_auth::password"))

	again := NewDefaultConfig()
	require.NoError(t, conf.Unmarshal(&again))
	assert.Equal(t, cfg.Discovery.read.RefreshInterval, again.Discovery.read.RefreshInterval)

	empty := confmap.New()
	cfg, err = load(t, "{endpoint: 'http://allocator', interval: 30s, collector_id: c}")
	require.NoError(t, err)
	require.NoError(t, empty.Marshal(&cfg))
	assert.Equal(t, "http://allocator", empty.Get("endpoint"))
}

func TestEndpointIsShownWithoutSecrets(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.Client.Endpoint = "https://me:covert/word@host/?key=covert"
	err := cfg.Validate()
	require.ErrorContains(t, err, `got "https://[REDACTED]@host/?key=[REDACTED]"`)
	require.NotContains(t, err.Error(), "covert")
}
