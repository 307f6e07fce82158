// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonconfig "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"
	promhttp "github.com/prometheus/prometheus/discovery/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

const (
	patience = 60 * time.Second
	glance   = 2 * time.Millisecond

	oneJob  = `{"a": {"job_name": "a", "kubernetes_sd_configs": [{"role": "pod"}], "metrics_path": "/one"}}`
	twoJobs = `{"a": {"job_name": "a"}, "b": {"job_name": "b"}}`
)

// A service is an allocator with a changeable response.
type service struct {
	*httptest.Server

	handler atomic.Pointer[http.HandlerFunc]
	asked   atomic.Int64
}

func newService(t *testing.T, status int, body string) *service {
	t.Helper()
	s := &service{}
	s.answer(status, body)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.asked.Add(1)
		if assert.Equal(t, "/scrape_configs", r.URL.Path) {
			(*s.handler.Load())(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) handle(f http.HandlerFunc) { s.handler.Store(&f) }

func (s *service) answer(status int, body string) {
	s.handle(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

// await waits for another request to be answered.
func (s *service) await(t *testing.T) {
	t.Helper()
	before := s.asked.Load()
	require.Eventually(t, func() bool { return s.asked.Load() > before+1 }, patience, glance)
}

// A taker accepts jobs or refuses them.
type taker struct {
	mu     sync.Mutex
	refuse bool
	offers int
	jobs   []*promconfig.ScrapeConfig
	broken map[string]error
	wrong  string // the job that it cannot use
}

func (k *taker) take(answer Answer) (map[string]error, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.offers++
	if k.refuse {
		return nil, errors.New("no, thanks")
	}
	k.jobs, k.broken = nil, maps.Clone(answer.Broken)
	for _, job := range answer.Jobs {
		if job.JobName == k.wrong {
			k.broken[job.JobName] = errors.New("its file is missing")
			continue
		}
		k.jobs = append(k.jobs, job)
	}
	return k.broken, nil
}

func (k *taker) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *taker) names() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, job := range k.jobs {
		out = append(out, job.JobName)
	}
	return out
}

func (k *taker) awaitJobs(t *testing.T, names ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(names, k.names()) }, patience, glance)
}

func newClient(t *testing.T, s *service, change func(*Config)) (*Client, *observer.ObservedLogs) {
	t.Helper()
	cfg := NewDefaultConfig()
	cfg.Client.Endpoint, cfg.CollectorID, cfg.Interval = s.URL, "collector 1", 5*time.Millisecond
	if change != nil {
		change(&cfg)
	}
	require.NoError(t, cfg.Validate())
	set := componenttest.NewNopTelemetrySettings()
	core, log := observer.New(zap.InfoLevel)
	set.Logger = zap.New(core)
	c, err := New(t.Context(), cfg, promconfig.DefaultGlobalConfig, componenttest.NewNopHost(), set)
	require.NoError(t, err)
	return c, log
}

// run runs a client until the test ends.
func run(t *testing.T, c *Client, k *taker) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx, k.take) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func TestJobsFollowTheAllocator(t *testing.T) {
	s, k := newService(t, http.StatusOK, oneJob), &taker{}
	c, _ := newClient(t, s, nil)
	run(t, c, k)
	k.awaitJobs(t, "a")
	s.await(t)
	s.answer(http.StatusOK, twoJobs)
	k.awaitJobs(t, "a", "b")
	s.answer(http.StatusOK, "{}")
	k.awaitJobs(t)
	s.await(t)
	k.mu.Lock()
	defer k.mu.Unlock()
	assert.Equal(t, 3, k.offers, "only changes are handed on")
	assert.Zero(t, c.Failures())
}

// An allocator that is not reachable or not ready is polled until it is.
func TestFailureAtStart(t *testing.T) {
	s, k := newService(t, http.StatusServiceUnavailable, ""), &taker{}
	c, log := newClient(t, s, nil)
	run(t, c, k)
	s.await(t)
	s.answer(http.StatusOK, "")
	s.await(t)
	s.handle(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	s.await(t)
	assert.Empty(t, k.names())
	s.answer(http.StatusOK, oneJob)
	k.awaitJobs(t, "a")
	assert.GreaterOrEqual(t, c.Failures(), int64(3))
	assert.Equal(t, 1, log.FilterMessageSnippet("Keeping the current jobs").Len())
	require.Eventually(t, func() bool { return log.FilterMessageSnippet("up to date again").Len() == 1 }, patience, glance)
}

// A response that is not a list of jobs changes nothing.
func TestBadAnswersChangeNothing(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":         " \n",
		"text":            "404 page not found",
		"list":            "[]",
		"number":          "1",
		"page":            "<html>hello</html>",
		"cut off":         twoJobs[:30],
		"binary":          "\x00\xff\x1f\x8b",
		"no list":         "null",
		"no list in YAML": "~",
		"large":           `{"a": {"job_name": "a", "metrics_path": "/` + strings.Repeat("x", 5000) + `"}}`,
		"many aliases":    "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n",
		"deep":            strings.Repeat(`{"a":`, 700) + "1" + strings.Repeat("}", 700),
	} {
		t.Run(name, func(t *testing.T) {
			s, k := newService(t, http.StatusOK, oneJob), &taker{}
			c, _ := newClient(t, s, nil)
			c.limit = 4096
			run(t, c, k)
			k.awaitJobs(t, "a")
			s.answer(http.StatusOK, body)
			require.Eventually(t, func() bool { return c.Failures() > 0 }, patience, glance)
			assert.Equal(t, []string{"a"}, k.names())
			s.answer(http.StatusOK, twoJobs)
			k.awaitJobs(t, "a", "b")
		})
	}
}

// An invalid or unusable job is omitted alone. It is logged when that begins and when it ends, counted each time, and
// tried again.
func TestBrokenJobsFailAlone(t *testing.T) {
	for name, job := range map[string]string{
		"empty":             `null`,
		"a scalar":          `7`,
		"a list":            `[]`,
		"a duration":        `{"job_name": "bad", "scrape_interval": "often"}`,
		"a regex":           `{"job_name": "bad", "relabel_configs": [{"regex": "("}]}`,
		"a rule":            `{"job_name": "bad", "relabel_configs": [null]}`,
		"a timeout":         `{"job_name": "bad", "scrape_interval": "1s", "scrape_timeout": "2s"}`,
		"of another's name": `{"job_name": "a"}`,
		"a scheme":          `{"job_name": "bad", "tls_config": {"min_version": "TLS99"}}`,
		"names a file":      `{"job_name": "bad", "authorization": {"credentials_file": "/etc/shadow"}}`,
		"refused":           `{"job_name": "refused"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, k := newService(t, http.StatusOK, `{"a": {"job_name": "a"}, "bad": `+job+`}`), &taker{wrong: "refused"}
			c, log := newClient(t, s, func(cfg *Config) { cfg.AllowedFiles = []string{"/var/run/secrets/*"} })
			run(t, c, k)
			k.awaitJobs(t, "a")
			require.Eventually(t, func() bool { return c.Failures() > 2 }, patience, glance)
			k.set(func() { assert.Len(t, k.broken, 1) })
			told := log.FilterMessageSnippet("Cannot use a job")
			require.Equal(t, 1, told.Len(), "%v", log.All())
			s.answer(http.StatusOK, twoJobs)
			k.awaitJobs(t, "a", "b")
			require.Eventually(t, func() bool { return log.FilterMessageSnippet("valid again").Len() == 1 }, patience, glance)
			failures := c.Failures()
			s.await(t)
			assert.Equal(t, failures, c.Failures())
		})
	}
}

// Only the configured files may be named in jobs, however the setting is written.
func TestAllowedFiles(t *testing.T) {
	c, _ := newClient(t, newService(t, http.StatusOK, ""), func(cfg *Config) {
		cfg.AllowedFiles = []string{"/var/run/secrets/*/token", "/etc/certs/ca.pem"}
	})
	f := func(job string, allowed bool) {
		t.Helper()
		got, _, err := c.read([]byte(`{"a": {"job_name": "a", ` + job + `}}`))
		require.NoError(t, err)
		require.Equal(t, allowed, len(got.Jobs) == 1, "%v", got.Broken)
	}
	f(`"honor_labels": true`, true)
	f(`"bearer_token_file": "/var/run/secrets/app/token"`, true)
	f(`"bearer_token_file": "/var/run/secrets/app/../app/token"`, true)
	f(`"bearer_token_file": "/var/run/secrets/app/../../../../etc/shadow"`, false)
	f(`"bearer_token_file": "/var/run/secrets/app/more/token"`, false)
	f(`"bearer_token_file": "token"`, false)
	f(`"authorization": {"credentials_file": "/etc/shadow"}`, false)
	f(`"basic_auth": {"username": "a", "password_file": "/etc/shadow"}`, false)
	f(`"basic_auth": {"username_file": "/etc/shadow"}`, false)
	f(`"tls_config": {"ca_file": "/etc/certs/ca.pem"}`, true)
	f(`"tls_config": {"ca_file": "/etc/certs/ca.pem", "cert_file": "/etc/cert", "key_file": "/etc/key"}`, false)
	f(`"oauth2": {"client_id": "a", "token_url": "http://t/", "client_secret_file": "/etc/shadow"}`, false)
	f(`"oauth2": {"client_id": "a", "client_secret": "b", "token_url": "http://t/", "tls_config": {"ca_file": "/etc/shadow"}}`, false)
	f(`"http_headers": {"X-A": {"files": ["/var/run/secrets/app/token", "/etc/shadow"]}}`, false)
	f(`"http_headers": {"X-A": {"values": ["/etc/shadow"]}}`, true)
	f(`"file_sd_configs": [{"files": ["/etc/targets/*.yaml"]}], "kubernetes_sd_configs": [{"role": "pod", "kubeconfig_file": "/etc/kubeconfig"}]`, true)
}

// Files of a job do not count if http_scrape_config replaces what they are for.
func TestFilesThatAreReplaced(t *testing.T) {
	cfg, err := load(t, "{endpoint: 'http://a', interval: 1s, collector_id: a, http_scrape_config: {basic_auth: {username: b, password: c}}}")
	require.NoError(t, err)
	var tags func(reflect.Type) []string
	tags = func(of reflect.Type) (keys []string) {
		for i := range of.NumField() {
			switch name, kind, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ","); {
			case strings.HasPrefix(kind, "inline"):
				keys = append(keys, tags(of.Field(i).Type)...)
			case name != "":
				keys = append(keys, name)
			default:
			}
		}
		return keys
	}
	require.ElementsMatch(t, tags(reflect.TypeFor[commonconfig.HTTPClientConfig]()), clientKeys)

	c, _ := newClient(t, newService(t, http.StatusOK, ""), func(to *Config) {
		to.AllowedFiles = []string{"/nothing"}
		to.Scrape = cfg.Scrape
	})
	got, unknown, err := c.read([]byte(`{"a": {"job_name": "a", "bearer_token_file": "/a", "tls_config": {"ca_file": "/b"}, "http_headers": {"X-A": {"files": ["/c"]}}},
		"b": {"job_name": "b", "params": {"files": ["/d"]}}, "c": {"job_name": "c", "surprise_file": "/e"}}`))
	require.NoError(t, err)
	require.NoError(t, unknown)
	require.Len(t, got.Jobs, 2, "%v", got.Broken)
	assert.Equal(t, "b", got.Jobs[0].HTTPClientConfig.BasicAuth.Username)
	assert.Equal(t, commonconfig.TLSConfig{}, got.Jobs[0].HTTPClientConfig.TLSConfig)
}

// An allocator cannot make the receiver write files.
func TestNoFilesAreWrittenForJobs(t *testing.T) {
	s, k := newService(t, http.StatusOK, `{"a": {"job_name": "a", "scrape_failure_log_file": "/etc/passwd"}}`), &taker{}
	c, log := newClient(t, s, nil)
	c.global.ScrapeFailureLogFile = "/var/log/failures"
	run(t, c, k)
	k.awaitJobs(t, "a")
	k.set(func() {
		assert.Equal(t, "/var/log/failures", k.jobs[0].ScrapeFailureLogFile, "the configuration says so for all jobs")
	})
	s.await(t)
	warnings := log.FilterMessageSnippet("Ignoring parts").All()
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0].ContextMap()["error"], "`scrape_failure_log_file`")
}

// A URL for targets, as in the operator's examples, is ignored with a warning.
func TestDiscoveryURLIsLeftOut(t *testing.T) {
	cfg := NewDefaultConfig()
	conf := confmap.NewFromStringMap(map[string]any{"http_sd_config": map[string]any{"url": "http://user:secret@elsewhere/", "refresh_interval": "7s"}})
	require.NoError(t, conf.Unmarshal(&cfg))
	c, log := newClient(t, newService(t, http.StatusOK, ""), func(to *Config) { to.Discovery = cfg.Discovery })
	warnings := log.FilterMessageSnippet("Ignoring `target_allocator::http_sd_config::url`").All()
	require.Len(t, warnings, 1)
	assert.Equal(t, "http://[REDACTED]@elsewhere/", warnings[0].ContextMap()["url"])
	jobs, _, err := c.read([]byte(oneJob))
	require.NoError(t, err)
	assert.Contains(t, targetsOf(t, jobs.Jobs[0]).URL, c.cfg.Client.Endpoint)
	assert.EqualValues(t, 7*time.Second, targetsOf(t, jobs.Jobs[0]).RefreshInterval)
}

func TestBadStatusesChangeNothing(t *testing.T) {
	for _, status := range []int{http.StatusNoContent, http.StatusNotFound, http.StatusInternalServerError} {
		s, k := newService(t, http.StatusOK, oneJob), &taker{}
		c, _ := newClient(t, s, nil)
		run(t, c, k)
		k.awaitJobs(t, "a")
		s.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		require.Eventually(t, func() bool { return c.Failures() > 0 }, patience, glance)
		assert.Equal(t, []string{"a"}, k.names())
	}
}

// A response is not waited for longer than the timeout.
func TestSlowAllocator(t *testing.T) {
	s, k := newService(t, http.StatusOK, oneJob), &taker{}
	slow := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	s.handle(slow)
	c, _ := newClient(t, s, func(cfg *Config) { cfg.Client.Timeout = 20 * time.Millisecond })
	run(t, c, k)
	require.Eventually(t, func() bool { return c.Failures() > 1 }, patience, glance)
	assert.Empty(t, k.names())
}

// Stopping does not wait for a response.
func TestStopWhileAsking(t *testing.T) {
	s := newService(t, http.StatusOK, oneJob)
	asked := make(chan struct{})
	s.handle(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	c, _ := newClient(t, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		c.Run(ctx, (&taker{}).take)
		close(ended)
	}()
	<-asked
	cancel()
	<-ended
	assert.Zero(t, c.Failures())
}

// Jobs that were refused are offered again until they are accepted.
func TestRefusedJobsAreOfferedAgain(t *testing.T) {
	s, k := newService(t, http.StatusOK, oneJob), &taker{refuse: true}
	c, _ := newClient(t, s, nil)
	run(t, c, k)
	require.Eventually(t, func() bool { return c.Failures() > 1 }, patience, glance)
	k.mu.Lock()
	k.refuse = false
	k.mu.Unlock()
	k.awaitJobs(t, "a")
}

// An allocator may be of a later version: unknown settings are ignored with a warning.
func TestUnknownKeys(t *testing.T) {
	s, k := newService(t, http.StatusOK, `{"a": {"job_name": "a", "invented_later": true, "honor_labels": true}}`), &taker{}
	c, log := newClient(t, s, nil)
	run(t, c, k)
	k.awaitJobs(t, "a")
	assert.True(t, k.jobs[0].HonorLabels)
	warnings := log.FilterMessageSnippet("Ignoring parts").All()
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0].ContextMap()["error"], "invented_later")
}

func TestShard(t *testing.T) {
	body := []byte(`{"a": {"regex": "$(SHARD)", "other": "$(SHARD)1"}}`)
	set := func(string) (string, bool) { return "3", true }
	unset := func(string) (string, bool) { return "", false }
	assert.JSONEq(t, `{"a": {"regex": "3", "other": "31"}}`, string(withShard(body, set)))
	assert.JSONEq(t, `{"a": {"regex": "0", "other": "01"}}`, string(withShard(body, unset)))

	t.Setenv("SHARD", "7")
	s, k := newService(t, http.StatusOK, `{"a": {"job_name": "a", "relabel_configs": [{"source_labels": ["x"], "regex": "$(SHARD)", "action": "keep"}]}}`), &taker{}
	c, _ := newClient(t, s, nil)
	run(t, c, k)
	k.awaitJobs(t, "a")
	assert.Equal(t, "7", k.jobs[0].RelabelConfigs[0].Regex.String())
}

func targetsOf(t *testing.T, job *promconfig.ScrapeConfig) *promhttp.SDConfig {
	t.Helper()
	require.Len(t, job.ServiceDiscoveryConfigs, 1)
	targets, ok := job.ServiceDiscoveryConfigs[0].(*promhttp.SDConfig)
	require.True(t, ok)
	return targets
}
