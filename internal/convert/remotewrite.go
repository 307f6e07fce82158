// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// remoteWrite makes the settings of an exporter of one of Prometheus' destinations, and says what it is called.
func remoteWrite(out *output, d *section, native bool) (table, string) {
	carry := d.in.carrier(d.file)
	settings := newTable()
	name := d.text("name")
	url := d.text("url")
	switch {
	case url == "":
		d.say(Lost, nil, "url", "there is none")
	case !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://"):
		d.say(Lost, d.get("url"), "url", "it must begin with http:// or https://")
	}
	if d.yes("round_robin_dns", false) {
		url = inTurn(url)
	}
	settings.set("endpoint", carry.text(url))
	setDuration(d, "remote_timeout", settings, "timeout")

	client := newTable()
	httpClient(out, d, client, name)
	if !client.empty() {
		settings.set("http", client)
	}
	cloudAuth(d, carry, settings)
	switch message := d.text("protobuf_message"); message {
	case "":
	case "prometheus.WriteRequest":
		settings.set("protobuf_message", "1.0")
	case "io.prometheus.write.v2.Request":
		settings.set("protobuf_message", "2.0")
	default:
		d.say(Lost, d.get("protobuf_message"), "protobuf_message", "it must be prometheus.WriteRequest or io.prometheus.write.v2.Request: the exporter finds out what the destination takes")
	}
	if rules := d.get("write_relabel_configs"); rules != nil {
		settings.set("write_relabel_configs", carry.take(rules, "[]"+typeRelabel, d.join("write_relabel_configs")))
	}
	queueConfig(d, settings, out.exporters.empty())
	if !d.yes("send_exemplars", false) {
		settings.set("exemplars", false)
	}
	if sent := d.yes("send_native_histograms", false); !sent && (native || d.has("send_native_histograms")) {
		d.say(Changed, d.get("send_native_histograms"), "send_native_histograms", "native histograms are sent if they are scraped: leave out `scrape_native_histograms` where they shall not be")
	}
	if meta := d.sub("metadata_config"); meta != nil {
		if !meta.yes("send", true) {
			settings.set("send_metadata", false)
		}
		if interval := meta.text("send_interval"); interval != "" && interval != "1m" {
			meta.say(Changed, meta.get("send_interval"), "send_interval", "metadata goes with each series in 2.0, and once a minute in 1.0")
		}
		meta.lose(Note, "metadata goes with the samples, in as many requests as these take", "max_samples_per_send")
	}
	return settings, name
}

// inTurn is a URL whose requests go to all addresses of its host in turn.
func inTurn(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	authority, _, _ := strings.Cut(rest, "/")
	host := strings.LastIndexByte(authority, '@') + 1
	return scheme + "://" + rest[:host] + "dns+" + rest[host:]
}

// queueConfig converts queue_config. The queue is Prometheus' as near as can be: it never holds up scrapes.
func queueConfig(d *section, settings table, first bool) {
	queue := newTable().set("on_full", "drop_oldest")
	if first {
		queue.say("As with Prometheus, a destination that is down holds up nothing: what has waited longest is dropped.\n`directory` keeps the queue on disk.")
	}
	q := d.sub("queue_config")
	if q != nil {
		if most, least := q.number("max_shards"), q.number("min_shards"); most > 0 || least > 0 {
			shards := newTable()
			if least > 0 {
				shards.set("min", least)
			}
			if most > 0 {
				shards.set("max", most)
			} else if least > 16 { // the default of the most
				shards.set("max", least)
			}
			settings.set("shards", shards)
		}
		batch := newTable()
		if n := q.number("max_samples_per_send"); n > 0 {
			batch.set("max_samples", n)
		}
		setDuration(q, "batch_send_deadline", batch, "timeout")
		if !batch.empty() {
			settings.set("batch", batch)
		}
		retry := newTable()
		setDuration(q, "min_backoff", retry, "initial_interval")
		setDuration(q, "max_backoff", retry, "max_interval")
		if !retry.empty() {
			settings.set("retry", retry)
		}
		setDuration(q, "sample_age_limit", queue, "max_age")
		q.lose(Changed, "it counts samples, beside the log that Prometheus has on disk: here `queue::size` counts bytes of compressed requests, "+
			"64 MiB in memory unless it says otherwise, which is some 15 million samples", "capacity")
		if value := q.get("retry_on_http_429"); value != nil && !truth(value.Value) {
			q.say(Changed, value, "retry_on_http_429", "429 is always repeated, and `Retry-After` obeyed")
		}
	}
	settings.set("queue", queue)
}

// httpClient converts what Prometheus has of a client of HTTP in its sections, into the settings of a client.
func httpClient(out *output, s *section, client table, name string) {
	carry := s.in.carrier(s.file)
	if proxy := s.text("proxy_url"); proxy != "" {
		client.set("proxy_url", carry.text(proxy))
	}
	s.lose(Lost, "the environment variable NO_PROXY does so", "no_proxy")
	s.lose(Lost, "the exporter sends a proxy nothing but what is in its URL", "proxy_connect_header")
	if value := s.get("proxy_from_environment"); value != nil && !truth(value.Value) {
		s.say(Changed, value, "proxy_from_environment", "HTTP_PROXY and HTTPS_PROXY are always obeyed: unset them")
	}
	if t := s.sub("tls_config"); t != nil {
		if made := clientTLS(t); !made.empty() {
			client.set("tls", made)
		}
	}
	if headers := clientHeaders(s, carry); !headers.empty() {
		client.set("headers", headers)
	}
	if s.yes("enable_http2", false) {
		client.set("force_attempt_http2", true)
	}
	if value := s.get("follow_redirects"); value != nil && truth(value.Value) {
		s.say(Changed, value, "follow_redirects", "redirects are not followed, and repeated until there are none: write the last URL")
	}
	if auth := clientAuth(out, s, carry, name); auth != "" {
		client.set("auth", newTable().set("authenticator", auth))
	}
}

// The keys of tls_config, and what they are for a collector.
var tlsKeys = []struct{ from, to string }{
	{"ca", "ca_pem"},
	{"cert", "cert_pem"},
	{"key", "key_pem"},
	{"ca_file", "ca_file"},
	{"cert_file", "cert_file"},
	{"key_file", "key_file"},
	{"server_name", "server_name_override"},
}

func clientTLS(t *section) table {
	carry := t.in.carrier(t.file)
	made := newTable()
	for _, k := range tlsKeys {
		value := t.text(k.from)
		if value == "" {
			continue
		}
		if strings.HasSuffix(k.from, "_file") {
			value = t.in.join(value)
		}
		made.set(k.to, carry.text(value))
	}
	if t.yes("insecure_skip_verify", false) {
		made.set("insecure_skip_verify", true)
	}
	for _, key := range []string{"min_version", "max_version"} {
		if value := t.text(key); value != "" {
			version, ok := strings.CutPrefix(value, "TLS")
			if !ok || len(version) != 2 {
				t.say(Lost, t.get(key), key, "it must be TLS10, TLS11, TLS12 or TLS13")
				continue
			}
			made.set(key, version[:1]+"."+version[1:])
		}
	}
	t.lose(Lost, secretStores, "ca_ref", "cert_ref", "key_ref")
	return made
}

const secretStores = "there are no secret managers here: write a file and name it, or `${env:NAME}`"

// clientHeaders are `headers`, which is remote write's own, and `http_headers`, which is any client's.
func clientHeaders(s *section, carry *carrier) table {
	made := newTable()
	headers := s.get("headers")
	if headers != nil && headers.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(headers.Content); i += 2 {
			made.set(headers.Content[i].Value, carry.text(headers.Content[i+1].Value))
		}
	}
	more := s.sub("http_headers")
	if more == nil || more.node.Kind != yaml.MappingNode {
		return made
	}
	for i := 0; i+1 < len(more.node.Content); i += 2 {
		name := more.node.Content[i].Value
		h := more.sub(name)
		if h == nil {
			continue
		}
		var values []string
		for _, key := range []string{"values", "secrets"} {
			for _, value := range contents(h.get(key)) {
				values = append(values, value.Value)
			}
		}
		h.lose(Lost, "headers are not read from files: `bearertokenauth` reads one with `header` and `filename`", "files")
		if len(values) > 1 {
			h.say(Changed, h.node, "", "its values go in one header, with commas between them")
		}
		if len(values) > 0 {
			made.set(name, carry.text(strings.Join(values, ",")))
		}
	}
	return made
}

// clientAuth makes the extension that a client authenticates itself with, and returns its ID.
func clientAuth(out *output, s *section, carry *carrier, name string) string {
	file := func(s *section, key string) string { return carry.text(s.in.join(s.text(key))) }
	if b := s.sub("basic_auth"); b != nil {
		made := newTable()
		setText(made, "username", carry.text(b.text("username")))
		setText(made, "username_file", file(b, "username_file"))
		setText(made, "password", carry.text(b.text("password")))
		setText(made, "password_file", file(b, "password_file"))
		b.lose(Lost, secretStores, "username_ref", "password_ref")
		return out.extend("basicauth", name, newTable().set("client_auth", made))
	}
	if a := s.sub("authorization"); a != nil {
		made := newTable()
		if kind := a.text("type"); kind != "" && kind != "Bearer" {
			made.set("scheme", carry.text(kind))
		}
		setText(made, "token", carry.text(a.text("credentials")))
		setText(made, "filename", file(a, "credentials_file"))
		a.lose(Lost, secretStores, "credentials_ref")
		return out.extend("bearertokenauth", name, made)
	}
	if token := s.text("bearer_token"); token != "" {
		return out.extend("bearertokenauth", name, newTable().set("token", carry.text(token)))
	}
	if path := file(s, "bearer_token_file"); path != "" {
		return out.extend("bearertokenauth", name, newTable().set("filename", path))
	}
	if o := s.sub("oauth2"); o != nil {
		return out.extend("oauth2client", name, oauth2(o, carry))
	}
	if v := s.sub("sigv4"); v != nil {
		return out.extend("sigv4auth", name, sigv4(v))
	}
	return ""
}

// cloudAuth converts what the exporter has the keys of Prometheus for.
func cloudAuth(d *section, carry *carrier, settings table) {
	if a := d.sub("azuread"); a != nil {
		made := newTable()
		setText(made, "cloud", carry.text(a.text("cloud")))
		setText(made, "scope", carry.text(a.text("scope")))
		for _, way := range []string{"managed_identity", "oauth", "workload_identity", "sdk"} {
			w := a.sub(way)
			if w == nil {
				continue
			}
			of := newTable()
			for _, key := range []string{"client_id", "client_secret", "tenant_id", "token_file_path"} {
				setText(of, key, carry.text(w.text(key)))
			}
			made.set(way, of)
		}
		settings.set("azuread", made)
	}
	if g := d.sub("google_iam"); g != nil {
		made := newTable()
		setText(made, "credentials_file", carry.text(g.in.join(g.text("credentials_file"))))
		settings.set("google_iam", made)
	}
}

func oauth2(o *section, carry *carrier) table {
	made := newTable()
	for _, key := range []string{
		"client_id", "client_secret", "client_secret_file", "token_url", "grant_type", "iss", "audience", "signature_algorithm",
		"client_certificate_key_id", "client_certificate_key", "client_certificate_key_file",
	} {
		value := o.text(key)
		if strings.HasSuffix(key, "_file") {
			value = o.in.join(value)
		}
		setText(made, key, carry.text(value))
	}
	if scopes := o.get("scopes"); scopes != nil {
		made.set("scopes", carry.take(scopes, "[]string", o.join("scopes")))
	}
	if params := o.get("endpoint_params"); params != nil && params.Kind == yaml.MappingNode {
		lists := newTable()
		for i := 0; i+1 < len(params.Content); i += 2 {
			lists.set(params.Content[i].Value, []string{carry.text(params.Content[i+1].Value)})
		}
		made.set("endpoint_params", lists)
	}
	if claims := o.get("claims"); claims != nil {
		made.set("claims", carry.take(claims, "any", o.join("claims")))
	}
	if t := o.sub("tls_config"); t != nil {
		if tls := clientTLS(t); !tls.empty() {
			made.set("tls", tls)
		}
	}
	o.lose(Lost, secretStores, "client_secret_ref", "client_certificate_key_ref")
	o.lose(Lost, "tokens are asked for without a proxy of their own: HTTPS_PROXY does so", "proxy_url", "no_proxy", "proxy_from_environment", "proxy_connect_header")
	o.lose(Lost, "requests for tokens have no headers of their own", "http_headers")
	return made
}

func sigv4(v *section) table {
	made := newTable()
	setText(made, "region", v.text("region"))
	service := v.text("service_name")
	if service == "" {
		service = "aps"
	}
	made.set("service", service)
	role := newTable()
	setText(role, "arn", v.text("role_arn"))
	setText(role, "external_id", v.text("external_id"))
	if !role.empty() {
		made.set("assume_role", role)
	}
	v.lose(Lost, "keys are read from where AWS' own tools read them: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "access_key", "secret_key")
	v.lose(Lost, "set AWS_PROFILE", "profile")
	v.lose(Lost, "set AWS_USE_FIPS_ENDPOINT", "use_fips_sts_endpoint")
	return made
}

func setText(t table, key, value string) {
	if value != "" {
		t.set(key, value)
	}
}

// setDuration converts a duration under a key, if there is one.
func setDuration(s *section, from string, to table, key string) {
	text := s.text(from)
	if text == "" {
		return
	}
	d, err := duration(text)
	if err != nil {
		s.say(Lost, s.get(from), from, err.Error())
		return
	}
	to.set(key, goDuration(d))
}

var (
	durationPart = expression(`^(\d+(?:\.\d+)?)(ms|y|w|d|h|m|s)`)
	units        = map[string]time.Duration{
		"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
		"d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "y": 365 * 24 * time.Hour,
	}
)

// duration reads a duration as Prometheus and vmagent write it.
func duration(text string) (time.Duration, error) {
	var sum time.Duration
	if text == "0" {
		return 0, nil
	}
	for rest := text; rest != ""; {
		part := durationPart().FindStringSubmatch(rest)
		if part == nil {
			return 0, fmt.Errorf("%q is no duration, such as 30s or 5m", text)
		}
		n, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration: %w", text, err)
		}
		sum += time.Duration(n * float64(units[part[2]]))
		rest = rest[len(part[0]):]
	}
	return sum, nil
}

// goDuration writes a duration as a collector reads it, without parts that are zero.
func goDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
