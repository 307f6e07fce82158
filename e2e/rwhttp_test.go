// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/freeport"
	"github.com/godwit-otel/godwit/e2e/process"
	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
	"github.com/godwit-otel/godwit/internal/certtest"
)

// entrances are receivers of remote write with all kinds of settings, which send to one exporter. The exporters that
// write to them have pipelines of their own, which begin with OTLP.
const entrances = `
extensions:
  basicauth/in: {htpasswd: {inline: "goose:honk"}}
  basicauth/out: {client_auth: {username: goose, password: honk}}
  bearertokenauth: {token: honk}
receivers:
  remotewrite/plain: {endpoint: %[1]s}
  remotewrite/basic: {endpoint: %[2]s, auth: {authenticator: basicauth/in}}
  remotewrite/bearer: {endpoint: %[3]s, auth: {authenticator: bearertokenauth}}
  remotewrite/once: {endpoint: %[4]s, keep_alives_enabled: false}
  remotewrite/small: {endpoint: %[5]s, max_request_body_size: 4096}
  remotewrite/secure: {endpoint: %[6]s, tls: {cert_file: %[7]q, key_file: %[8]q, client_ca_file: %[7]q}}
exporters:
  remotewrite/out: {endpoint: %[9]s, translation_strategy: UnderscoreEscapingWithoutSuffixes, target_info: {enabled: false}, batch: {timeout: 50ms}}
service:
  extensions: [health_check, basicauth/in, basicauth/out, bearertokenauth]
  pipelines:
    metrics/in: {receivers: [remotewrite/plain, remotewrite/basic, remotewrite/bearer, remotewrite/once, remotewrite/small, remotewrite/secure], exporters: [remotewrite/out]}
`

// throughEntrance is an overlay: an exporter that sends what comes by OTLP to one of the entrances.
const throughEntrance = `
receivers: {otlp/%[1]s: {protocols: {grpc: {endpoint: %[2]s}}}}
exporters:
  remotewrite/%[1]s: {endpoint: %[3]q, external_labels: {way: %[1]s}, target_info: {enabled: false}, batch: {timeout: 50ms}, timeout: 30s, http: %[4]s}
service: {pipelines: {metrics/%[1]s: {receivers: [otlp/%[1]s], exporters: [remotewrite/%[1]s]}}}
`

const (
	wayLabel   = "way"
	clientName = "client_requests"
	writePath  = "/api/v1/write"
	asWrites   = "Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n"
)

// came records what arrived from clients and from exporters.
type came struct {
	mu      sync.Mutex
	clients map[string][]int // numbers by client
	ways    map[string]*tally
}

func (c *came) observe(series rwserver.Series) {
	if series.Labels.Get(model.MetricNameLabel) == clientName {
		c.mu.Lock()
		defer c.mu.Unlock()
		of := series.Labels.Get("of")
		for _, s := range series.Samples {
			c.clients[of] = append(c.clients[of], int(s.V))
		}
		return
	}
	if y := c.ways[series.Labels.Get(wayLabel)]; y != nil {
		series.Labels = labels.NewBuilder(series.Labels).Del(wayLabel).Labels()
		y.observe(series)
	}
}

// clientWrite returns a request of remote write 1.0 with one sample, whose value is number, and so much incompressible
// padding.
func clientWrite(t *testing.T, of string, number, padding int) []byte {
	t.Helper()
	series := prompb.TimeSeries{
		Labels:  []prompb.Label{{Name: model.MetricNameLabel, Value: clientName}, {Name: "of", Value: of}},
		Samples: []prompb.Sample{{Value: float64(number), Timestamp: time.Now().UnixMilli() + int64(number)}},
	}
	if padding > 0 {
		series.Labels = append(series.Labels, prompb.Label{Name: "padding", Value: fmt.Sprintf("%x", noise(padding/2))})
	}
	raw, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{series}}).Marshal()
	require.NoError(t, err)
	return snappy.Encode(nil, raw)
}

// speaker is a connection on which a client writes raw HTTP.
type speaker struct {
	net.Conn

	t  *testing.T
	in *bufio.Reader
}

func speak(t *testing.T, addr string) *speaker {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(delivery)))
	return &speaker{conn, t, bufio.NewReader(conn)}
}

func (s *speaker) say(parts ...string) {
	s.t.Helper()
	_, err := io.WriteString(s, strings.Join(parts, ""))
	require.NoError(s.t, err)
}

// hear returns the status of the next response, and whether it is the last on the connection.
func (s *speaker) hear() (code int, last bool) {
	s.t.Helper()
	resp, err := http.ReadResponse(s.in, nil)
	require.NoError(s.t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, resp.Close
}

// ends requires that the connection is closed.
func (s *speaker) ends() {
	s.t.Helper()
	_, err := s.in.ReadByte()
	require.Error(s.t, err)
	require.NotErrorIs(s.t, err, os.ErrDeadlineExceeded)
}

func sized(body []byte) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

// chunks returns a chunked body.
func chunks(body []byte, size int) string {
	var b strings.Builder
	b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	for piece := range slices.Chunk(body, size) {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(piece), piece)
	}
	b.WriteString("0\r\n\r\n")
	return b.String()
}

// clients write to an entrance in various ways. Each returns how many of its requests, numbered from 0, must arrive.
var clients = []struct {
	name, entrance string
	write          func(t *testing.T, of, addr string) int
}{
	{"one connection", "plain", func(t *testing.T, of, addr string) int {
		s := speak(t, addr)
		for n := range 5 {
			s.say("POST ", writePath, " HTTP/1.1\r\nHost: gateway\r\n", asWrites, sized(clientWrite(t, of, n, 0)))
			code, last := s.hear()
			assert.Equal(t, 204, code)
			assert.False(t, last)
		}
		return 5
	}},
	{"chunks", "plain", func(t *testing.T, of, addr string) int {
		s := speak(t, addr)
		for n, size := range []int{1, 7, 1 << 20} {
			s.say("POST ", writePath, " HTTP/1.1\r\nHost: gateway\r\n", asWrites, chunks(clientWrite(t, of, n, 1000), size))
			code, last := s.hear()
			assert.Equal(t, 204, code)
			assert.False(t, last)
		}
		return 3
	}},
	{"pipelined", "plain", func(t *testing.T, of, addr string) int {
		s := speak(t, addr)
		var all strings.Builder
		for n := range 20 {
			all.WriteString("POST " + writePath + " HTTP/1.1\r\nHost: gateway\r\n" + asWrites)
			if n%2 == 0 {
				all.WriteString(sized(clientWrite(t, of, n, 0)))
			} else {
				all.WriteString(chunks(clientWrite(t, of, n, 0), 10))
			}
		}
		s.say(all.String(), "GET ", writePath, " HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n")
		for range 20 {
			code, _ := s.hear()
			assert.Equal(t, 204, code)
		}
		code, last := s.hear()
		assert.Equal(t, 405, code)
		assert.True(t, last)
		s.ends()
		return 20
	}},
	{"HTTP 1.0", "plain", func(t *testing.T, of, addr string) int {
		s := speak(t, addr)
		for n, header := range []string{"Connection: keep-alive\r\n", ""} {
			s.say("POST ", writePath, " HTTP/1.0\r\n", header, asWrites, sized(clientWrite(t, of, n, 0)))
			code, last := s.hear()
			assert.Equal(t, 204, code)
			assert.Equal(t, header == "", last)
		}
		s.ends()
		return 2
	}},
	{"byte by byte", "plain", func(t *testing.T, of, addr string) int {
		s := speak(t, addr)
		text := "POST " + writePath + " HTTP/1.1\r\nHost: gateway\r\n" + asWrites + sized(clientWrite(t, of, 0, 0))
		for i := range len(text) { // each in its own packet: Go sets TCP_NODELAY
			s.say(text[i : i+1])
		}
		code, _ := s.hear()
		assert.Equal(t, 204, code)
		return 1
	}},
	{"100-continue", "plain", func(t *testing.T, of, addr string) int {
		s := speak(t, addr)
		for n := range 2 {
			body := clientWrite(t, of, n, 0)
			s.say("POST ", writePath, " HTTP/1.1\r\nHost: gateway\r\nExpect: 100-continue\r\n", asWrites, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)))
			code, _ := s.hear()
			require.Equal(t, 100, code)
			s.say(string(body))
			code, last := s.hear()
			assert.Equal(t, 204, code)
			assert.False(t, last)
		}
		s.say("POST /elsewhere HTTP/1.1\r\nHost: gateway\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
		code, last := s.hear()
		assert.Equal(t, 404, code, "who is refused need not send it")
		assert.True(t, last)
		return 2
	}},
	{"curl", "plain", func(t *testing.T, of, addr string) int {
		curls(t, clientWrite(t, of, 0, 0), "204", "http://"+addr+writePath, "-T", "-")
		curls(t, clientWrite(t, of, 1, 2<<20), "204", "http://"+addr+writePath, "-T", "-", "-H", "Expect: 100-continue")
		curls(t, clientWrite(t, of, 2, 2<<20), "204", "http://"+addr+writePath, "--data-binary", "@-", "--http1.0")
		return 3
	}},
	{"basic", "basic", func(t *testing.T, of, addr string) int { return withPassword(t, of, addr, "Basic Z29vc2U6aG9uaw==") }},
	{"bearer", "bearer", func(t *testing.T, of, addr string) int { return withPassword(t, of, addr, "Bearer honk") }},
	{"once", "once", func(t *testing.T, of, addr string) int {
		for n := range 2 {
			s := speak(t, addr)
			request := "POST " + writePath + " HTTP/1.1\r\nHost: gateway\r\n" + asWrites
			s.say(request, sized(clientWrite(t, of, n, 0)), request, sized(clientWrite(t, of, 100, 0)))
			code, last := s.hear()
			assert.Equal(t, 204, code)
			assert.True(t, last)
			s.ends()
		}
		return 2
	}},
	{"small", "small", func(t *testing.T, of, addr string) int {
		for _, as := range []func([]byte) string{sized, func(b []byte) string { return chunks(b, 1000) }} {
			s := speak(t, addr)
			s.say("POST ", writePath, " HTTP/1.1\r\nHost: gateway\r\n", asWrites, as(clientWrite(t, of, 100, 100_000)))
			code, last := s.hear()
			assert.Equal(t, 413, code)
			assert.True(t, last)
			s.ends()
		}
		curls(t, clientWrite(t, of, 100, 100_000), "413", "http://"+addr+writePath, "-T", "-") // a larger rejected body may lose its response
		s := speak(t, addr)
		s.say("POST ", writePath, " HTTP/1.1\r\nHost: gateway\r\n", asWrites, sized(clientWrite(t, of, 0, 2000)))
		code, _ := s.hear()
		assert.Equal(t, 204, code)
		return 1
	}},
}

// withPassword writes with the right password and with wrong ones. The client gets the 401 however large its request
// is.
func withPassword(t *testing.T, of, addr, right string) int {
	t.Helper()
	write := func(password string, n, padding int) (code int, last bool) {
		s := speak(t, addr)
		s.say("POST ", writePath, " HTTP/1.1\r\nHost: gateway\r\n", password, asWrites, sized(clientWrite(t, of, n, padding)))
		return s.hear()
	}
	for n := range 2 {
		code, last := write("Authorization: "+right+"\r\n", n, 1000*n)
		assert.Equal(t, 204, code)
		assert.False(t, last)
	}
	for _, wrong := range []string{"", "Authorization: " + right + "x\r\n", "Authorization: Digest goose\r\n"} {
		for _, padding := range []int{0, 200_000} {
			code, _ := write(wrong, 100, padding)
			assert.Equal(t, 401, code, "%q", wrong)
		}
	}
	curls(t, clientWrite(t, of, 100, 2<<20), "401", "http://"+addr+writePath, "-T", "-")
	return 2
}

// curls writes a body with curl, and requires this status.
func curls(t *testing.T, body []byte, code, url string, args ...string) {
	t.Helper()
	args = append([]string{
		"-sS", "-X", "POST", "-w", "%{http_code}", "--max-time", "60",
		"-H", "Content-Type: application/x-protobuf", "-H", "Content-Encoding: snappy", url,
	}, args...)
	cmd := exec.CommandContext(t.Context(), "curl", args...)
	cmd.Stdin = bytes.NewReader(body)
	out, err := cmd.Output()
	answered := strings.HasSuffix(string(out), code)
	if refused := new(exec.ExitError); errors.As(err, &refused) && answered {
		err = nil // the response came before the request was sent
	}
	require.NoError(t, err, "%q", out)
	require.True(t, answered, "%q is not %s", out, code)
}

// With any HTTP client, and any settings of the receiver, requests that succeed arrive once, and nothing else does.
func TestWritersOfEveryKind(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl to test with")
	}
	all := &came{clients: map[string][]int{}, ways: map[string]*tally{}}
	for _, way := range []string{"plain", "basic", "bearer", "once", "secure"} {
		all.ways[way] = newTally()
	}
	server := rwserver.New(t, rwserver.Options{CountOnly: true, Observe: all.observe})
	certificate, key := certtest.SelfSigned(t)
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	require.NoError(t, os.WriteFile(certFile, []byte(certificate), 0o600))
	require.NoError(t, os.WriteFile(keyFile, []byte(key), 0o600))
	addrs := map[string]string{}
	for _, entrance := range []string{"plain", "basic", "bearer", "once", "small", "secure"} {
		addrs[entrance] = freeport.Addr(t)
	}
	configs := []string{fmt.Sprintf(entrances, addrs["plain"], addrs["basic"], addrs["bearer"], addrs["once"], addrs["small"], addrs["secure"],
		certFile, keyFile, server.URL())}
	from := map[string]string{}
	for way := range all.ways {
		from[way] = freeport.Addr(t)
		scheme, settings := "http", map[string]string{
			"basic": "{auth: {authenticator: basicauth/out}}", "bearer": "{auth: {authenticator: bearertokenauth}}",
			"secure": fmt.Sprintf("{tls: {ca_file: %[1]q, cert_file: %[1]q, key_file: %[2]q}}", certFile, keyFile),
		}[way]
		if settings == "" {
			settings = "{}"
		}
		if way == "secure" {
			scheme = "https"
		}
		configs = append(configs, fmt.Sprintf(throughEntrance, way, from[way], scheme+"://"+addrs[way]+writePath, settings))
	}
	c := startCollector(t, configs...)

	var stops []func()
	for way, y := range all.ways {
		stops = append(stops, y.flood(t, from[way]))
	}
	expected := map[string]int{}
	for _, client := range clients {
		expected[client.name] = client.write(t, client.name, addrs[client.entrance])
	}
	maps.Copy(expected, writeThroughNginx(t, addrs["plain"]))
	expected["secure"] = writeSecurely(t, "secure", addrs["secure"], certificate, key)
	for _, y := range all.ways {
		y.progress(t)
	}
	for _, stop := range stops {
		stop()
	}
	for way, y := range all.ways {
		arrived := y.arrivedBut(0)
		wait.Until(t, delivery, func() (bool, string) {
			ok, why := arrived()
			return ok, way + ": " + why
		})
		assert.Zero(t, y.sound(t), way)
	}
	want := map[string][]int{}
	for of, n := range expected {
		for i := range n {
			want[of] = append(want[of], i)
		}
	}
	wait.Until(t, delivery, func() (bool, string) {
		all.mu.Lock()
		defer all.mu.Unlock()
		for _, numbers := range all.clients {
			slices.Sort(numbers)
		}
		return maps.EqualFunc(want, all.clients, slices.Equal), fmt.Sprintf("%v arrived, of %v", all.clients, want)
	})
	assert.Zero(t, c.metric(t, "otelcol_exporter_send_failed_metric_points"))
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
	assert.NotContains(t, c.Output(), "panic")
	assert.Empty(t, server.Violations())
}

// writeThroughNginx writes through nginx with its defaults, by which it buffers a body and speaks HTTP/1.0 to the
// receiver, and with streaming over connections that it keeps.
func writeThroughNginx(t *testing.T, addr string) map[string]int {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/nginx") // where only root's PATH looks
	}
	if err != nil {
		t.Log("without nginx, which is not installed here")
		return nil
	}
	old, streaming := freeport.Addr(t), freeport.Addr(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(file, []byte(nginxFrame(fmt.Sprintf(`
  upstream gateway { server %s; keepalive 4; }
  server { listen %s; location / { proxy_pass http://gateway; } }
  server { listen %s; location / { proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off; } }
`, addr, old, streaming))), 0o600))
	process.Start(t, process.Settings{Path: path, Args: []string{"-p", dir, "-c", file, "-e", "stderr"}, Dir: dir}).
		WaitHTTP(firstWords, "http://"+streaming+"/", func(status int, _ string) (bool, string) {
			return status == http.StatusNotFound, fmt.Sprintf("nginx answers %d for what the receiver has not", status)
		})
	expected := map[string]int{}
	for of, front := range map[string]string{"nginx": old, "nginx, streaming": streaming} {
		s := speak(t, front)
		for n := range 4 {
			body := clientWrite(t, of, n, 20_000*n)
			text := sized(body)
			if n%2 == 1 {
				text = chunks(body, 3000)
			}
			s.say("POST ", writePath, " HTTP/1.1\r\nHost: gateway\r\n", asWrites, text)
			code, _ := s.hear()
			assert.Equal(t, 204, code, of)
		}
		curls(t, clientWrite(t, of, 4, 500_000), "204", "http://"+front+writePath, "-T", "-")
		expected[of] = 5
	}
	return expected
}

// writeSecurely writes over TLS, by HTTP/1.1 and HTTP/2. Clients without a certificate are refused.
func writeSecurely(t *testing.T, of, addr, certificate, key string) int {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	require.NoError(t, err)
	write := func(n int, second bool, of string, pool *x509.CertPool, certificates ...tls.Certificate) (*http.Response, error) {
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates}, ForceAttemptHTTP2: second,
		}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+addr+writePath, bytes.NewReader(clientWrite(t, of, n, 1000)))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-protobuf")
		request.Header.Set("Content-Encoding", "snappy")
		return transport.RoundTrip(request)
	}
	pool := certtest.Pool(t, certificate)
	for n, second := range []bool{false, true} {
		resp, err := write(n, second, of, pool, pair)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, 204, resp.StatusCode)
		assert.Equal(t, 1+n, resp.ProtoMajor)
		resp, err = write(100, second, of, pool)
		if err == nil {
			_ = resp.Body.Close()
		}
		require.Error(t, err, "without a certificate")
	}
	s := speak(t, addr)
	s.say("POST ", writePath, " HTTP/1.1\r\nHost: gateway\r\n", asWrites, sized(clientWrite(t, of, 100, 0)))
	code, _ := s.hear()
	assert.Equal(t, 400, code, "without TLS")
	return 2
}
