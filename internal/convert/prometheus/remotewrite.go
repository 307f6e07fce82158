// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/output"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// remoteWrite converts a destination of Prometheus to the settings and the name of an exporter.
func remoteWrite(out *output.Output, d *input.Section, native bool) (document.Table, string) {
	carry := promconfig.NewCarrier(d.In, d.File)
	settings := document.NewTable()
	name := d.Text("name")
	url := d.Text("url")
	switch {
	case url == "":
		d.Say(report.Lost, nil, "url", "there is none")
	case !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://"):
		d.Say(report.Lost, d.Get("url"), "url", "it must begin with http:// or https://")
	}
	if d.Yes("round_robin_dns", false) {
		url = inTurn(url)
	}
	settings.Set("endpoint", carry.Text(url))
	setDuration(d, "remote_timeout", settings, "timeout")

	client := document.NewTable()
	httpClient(out, d, client, name)
	if !client.Empty() {
		settings.Set("http", client)
	}
	cloudAuth(d, carry, settings)
	switch message := d.Text("protobuf_message"); message {
	case "":
	case "prometheus.WriteRequest":
		settings.Set("protobuf_message", "1.0")
	case "io.prometheus.write.v2.Request":
		settings.Set("protobuf_message", "2.0")
	default:
		d.Say(report.Lost, d.Get("protobuf_message"), "protobuf_message", "it must be prometheus.WriteRequest or io.prometheus.write.v2.Request: the exporter finds out what the destination takes")
	}
	if rules := d.Get("write_relabel_configs"); rules != nil {
		taken := carry.Take(rules, "[]"+promconfig.TypeRelabel, d.Join("write_relabel_configs"))
		promconfig.SentLabels(d.In, d.File, d.Join("write_relabel_configs"), taken.Content)
		settings.Set("write_relabel_configs", taken)
	}
	queueConfig(d, settings, out.Exporters.Empty())
	if !d.Yes("send_exemplars", false) {
		settings.Set("exemplars", false)
	}
	if sent := d.Yes("send_native_histograms", false); !sent && (native || d.Has("send_native_histograms")) {
		d.Say(report.Changed, d.Get("send_native_histograms"), "send_native_histograms", "native histograms are sent if they are scraped: leave out `scrape_native_histograms` where they shall not be")
	}
	if meta := d.Sub("metadata_config"); meta != nil {
		if !meta.Yes("send", true) {
			settings.Set("send_metadata", false)
		}
		if interval := meta.Text("send_interval"); interval != "" && interval != "1m" {
			meta.Say(report.Changed, meta.Get("send_interval"), "send_interval", "metadata goes with each series in 2.0, and once a minute in 1.0")
		}
		meta.Lose(report.Note, "metadata goes with the samples, in as many requests as these take", "max_samples_per_send")
	}
	return settings, name
}

// inTurn returns a URL for which requests go to all addresses of the host in turn.
func inTurn(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	authority, _, _ := strings.Cut(rest, "/")
	host := strings.LastIndexByte(authority, '@') + 1
	return scheme + "://" + rest[:host] + "dns+" + rest[host:]
}

// queueConfig converts queue_config. The queue is as close to Prometheus' as possible: it never holds up scrapes.
func queueConfig(d *input.Section, settings document.Table, first bool) {
	queue := document.NewTable().Set("on_full", "drop_oldest")
	if first {
		queue.Say("As with Prometheus, a destination that is down holds up nothing: what has waited longest is dropped.\n`directory` keeps the queue on disk.")
	}
	q := d.Sub("queue_config")
	if q != nil {
		if most, least := q.Number("max_shards"), q.Number("min_shards"); most > 0 || least > 0 {
			shards := document.NewTable()
			if least > 0 {
				shards.Set("min", least)
			}
			if most > 0 {
				shards.Set("max", most)
			} else if least > 16 { // the default of max
				shards.Set("max", least)
			}
			settings.Set("shards", shards)
		}
		batch := document.NewTable()
		if n := q.Number("max_samples_per_send"); n > 0 {
			batch.Set("max_samples", n)
		}
		setDuration(q, "batch_send_deadline", batch, "timeout")
		if !batch.Empty() {
			settings.Set("batch", batch)
		}
		retry := document.NewTable()
		setDuration(q, "min_backoff", retry, "initial_interval")
		setDuration(q, "max_backoff", retry, "max_interval")
		if !retry.Empty() {
			settings.Set("retry", retry)
		}
		setDuration(q, "sample_age_limit", queue, "max_age")
		q.Lose(report.Changed, "it counts samples, beside the log that Prometheus has on disk: here `queue::size` counts bytes of compressed requests, "+
			"64 MiB in memory unless it says otherwise, which is some 15 million samples", "capacity")
		if value := q.Get("retry_on_http_429"); value != nil && !document.Truth(value.Value) {
			q.Say(report.Changed, value, "retry_on_http_429", "429 is always repeated, and `Retry-After` obeyed")
		}
	}
	settings.Set("queue", queue)
}

// httpClient converts the keys that Prometheus has for HTTP clients to the settings of a client.
func httpClient(out *output.Output, s *input.Section, client document.Table, name string) {
	carry := promconfig.NewCarrier(s.In, s.File)
	if proxy := s.Text("proxy_url"); proxy != "" {
		client.Set("proxy_url", carry.Text(proxy))
	}
	s.Lose(report.Lost, "the environment variable NO_PROXY does so", "no_proxy")
	s.Lose(report.Lost, "the exporter sends a proxy nothing but what is in its URL", "proxy_connect_header")
	if value := s.Get("proxy_from_environment"); value != nil && !document.Truth(value.Value) {
		s.Say(report.Changed, value, "proxy_from_environment", "HTTP_PROXY and HTTPS_PROXY are always obeyed: unset them")
	}
	if t := s.Sub("tls_config"); t != nil {
		if made := clientTLS(t); !made.Empty() {
			client.Set("tls", made)
		}
	}
	if headers := clientHeaders(s, carry); !headers.Empty() {
		client.Set("headers", headers)
	}
	if s.Yes("enable_http2", false) {
		client.Set("force_attempt_http2", true)
	}
	if value := s.Get("follow_redirects"); value != nil && document.Truth(value.Value) {
		s.Say(report.Changed, value, "follow_redirects", "redirects are not followed, and repeated until there are none: write the last URL")
	}
	if auth := clientAuth(out, s, carry, name); auth != "" {
		client.Set("auth", document.NewTable().Set("authenticator", auth))
	}
}

// tlsKeys maps the keys of tls_config to a collector's.
var tlsKeys = []struct{ from, to string }{
	{"ca", "ca_pem"},
	{"cert", "cert_pem"},
	{"key", "key_pem"},
	{"ca_file", "ca_file"},
	{"cert_file", "cert_file"},
	{"key_file", "key_file"},
	{"server_name", "server_name_override"},
}

func clientTLS(t *input.Section) document.Table {
	carry := promconfig.NewCarrier(t.In, t.File)
	made := document.NewTable()
	for _, k := range tlsKeys {
		value := t.Text(k.from)
		if value == "" {
			continue
		}
		if strings.HasSuffix(k.from, "_file") {
			value = t.In.Join(value)
		}
		made.Set(k.to, carry.Text(value))
	}
	if t.Yes("insecure_skip_verify", false) {
		made.Set("insecure_skip_verify", true)
	}
	for _, key := range []string{"min_version", "max_version"} {
		if value := t.Text(key); value != "" {
			version, ok := strings.CutPrefix(value, "TLS")
			if !ok || len(version) != 2 {
				t.Say(report.Lost, t.Get(key), key, "it must be TLS10, TLS11, TLS12 or TLS13")
				continue
			}
			made.Set(key, version[:1]+"."+version[1:])
		}
	}
	t.Lose(report.Lost, secretStores, "ca_ref", "cert_ref", "key_ref")
	return made
}

const secretStores = "there are no secret managers here: write a file and name it, or `${env:NAME}`"

// clientHeaders converts `headers`, which only remote write has, and `http_headers`, which all clients have.
func clientHeaders(s *input.Section, carry *promconfig.Carrier) document.Table {
	made := document.NewTable()
	headers := s.Get("headers")
	if headers != nil && headers.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(headers.Content); i += 2 {
			made.Set(headers.Content[i].Value, carry.Text(headers.Content[i+1].Value))
		}
	}
	more := s.Sub("http_headers")
	if more == nil || more.Node.Kind != yaml.MappingNode {
		return made
	}
	for i := 0; i+1 < len(more.Node.Content); i += 2 {
		name := more.Node.Content[i].Value
		h := more.Sub(name)
		if h == nil {
			continue
		}
		var values []string
		for _, key := range []string{"values", "secrets"} {
			for _, value := range document.Contents(h.Get(key)) {
				values = append(values, value.Value)
			}
		}
		h.Lose(report.Lost, "headers are not read from files: `bearertokenauth` reads one with `header` and `filename`", "files")
		if len(values) > 1 {
			h.Say(report.Changed, h.Node, "", "its values go in one header, with commas between them")
		}
		if len(values) > 0 {
			made.Set(name, carry.Text(strings.Join(values, ",")))
		}
	}
	return made
}

// clientAuth makes the extension for a client's authentication, and returns its ID.
func clientAuth(out *output.Output, s *input.Section, carry *promconfig.Carrier, name string) string {
	file := func(s *input.Section, key string) string { return carry.Text(s.In.Join(s.Text(key))) }
	if b := s.Sub("basic_auth"); b != nil {
		made := document.NewTable()
		promconfig.SetText(made, "username", carry.Text(b.Text("username")))
		promconfig.SetText(made, "username_file", file(b, "username_file"))
		promconfig.SetText(made, "password", carry.Text(b.Text("password")))
		promconfig.SetText(made, "password_file", file(b, "password_file"))
		b.Lose(report.Lost, secretStores, "username_ref", "password_ref")
		return out.Extend("basicauth", name, document.NewTable().Set("client_auth", made))
	}
	if a := s.Sub("authorization"); a != nil {
		made := document.NewTable()
		if kind := a.Text("type"); kind != "" && kind != "Bearer" {
			made.Set("scheme", carry.Text(kind))
		}
		promconfig.SetText(made, "token", carry.Text(a.Text("credentials")))
		promconfig.SetText(made, "filename", file(a, "credentials_file"))
		a.Lose(report.Lost, secretStores, "credentials_ref")
		return out.Extend("bearertokenauth", name, made)
	}
	if token := s.Text("bearer_token"); token != "" {
		return out.Extend("bearertokenauth", name, document.NewTable().Set("token", carry.Text(token)))
	}
	if path := file(s, "bearer_token_file"); path != "" {
		return out.Extend("bearertokenauth", name, document.NewTable().Set("filename", path))
	}
	if o := s.Sub("oauth2"); o != nil {
		return out.Extend("oauth2client", name, oauth2(o, carry))
	}
	if v := s.Sub("sigv4"); v != nil {
		return out.Extend("sigv4auth", name, sigv4(v))
	}
	return ""
}

// cloudAuth converts the authentication methods for which the exporter has Prometheus' keys.
func cloudAuth(d *input.Section, carry *promconfig.Carrier, settings document.Table) {
	if a := d.Sub("azuread"); a != nil {
		made := document.NewTable()
		promconfig.SetText(made, "cloud", carry.Text(a.Text("cloud")))
		promconfig.SetText(made, "scope", carry.Text(a.Text("scope")))
		for _, way := range []string{"managed_identity", "oauth", "workload_identity", "sdk"} {
			w := a.Sub(way)
			if w == nil {
				continue
			}
			of := document.NewTable()
			for _, key := range []string{"client_id", "client_secret", "tenant_id", "token_file_path"} {
				promconfig.SetText(of, key, carry.Text(w.Text(key)))
			}
			made.Set(way, of)
		}
		settings.Set("azuread", made)
	}
	if g := d.Sub("google_iam"); g != nil {
		made := document.NewTable()
		promconfig.SetText(made, "credentials_file", carry.Text(g.In.Join(g.Text("credentials_file"))))
		settings.Set("google_iam", made)
	}
}

func oauth2(o *input.Section, carry *promconfig.Carrier) document.Table {
	made := document.NewTable()
	for _, key := range []string{
		"client_id", "client_secret", "client_secret_file", "token_url", "grant_type", "iss", "audience", "signature_algorithm",
		"client_certificate_key_id", "client_certificate_key", "client_certificate_key_file",
	} {
		value := o.Text(key)
		if strings.HasSuffix(key, "_file") {
			value = o.In.Join(value)
		}
		promconfig.SetText(made, key, carry.Text(value))
	}
	if scopes := o.Get("scopes"); scopes != nil {
		made.Set("scopes", carry.Take(scopes, "[]string", o.Join("scopes")))
	}
	if params := o.Get("endpoint_params"); params != nil && params.Kind == yaml.MappingNode {
		lists := document.NewTable()
		for i := 0; i+1 < len(params.Content); i += 2 {
			lists.Set(params.Content[i].Value, []string{carry.Text(params.Content[i+1].Value)})
		}
		made.Set("endpoint_params", lists)
	}
	if claims := o.Get("claims"); claims != nil {
		made.Set("claims", carry.Take(claims, "any", o.Join("claims")))
	}
	if t := o.Sub("tls_config"); t != nil {
		if tls := clientTLS(t); !tls.Empty() {
			made.Set("tls", tls)
		}
	}
	o.Lose(report.Lost, secretStores, "client_secret_ref", "client_certificate_key_ref")
	o.Lose(report.Lost, "tokens are asked for without a proxy of their own: HTTPS_PROXY does so", "proxy_url", "no_proxy", "proxy_from_environment", "proxy_connect_header")
	o.Lose(report.Lost, "requests for tokens have no headers of their own", "http_headers")
	return made
}

func sigv4(v *input.Section) document.Table {
	made := document.NewTable()
	promconfig.SetText(made, "region", v.Text("region"))
	service := v.Text("service_name")
	if service == "" {
		service = "aps"
	}
	made.Set("service", service)
	role := document.NewTable()
	promconfig.SetText(role, "arn", v.Text("role_arn"))
	promconfig.SetText(role, "external_id", v.Text("external_id"))
	if !role.Empty() {
		made.Set("assume_role", role)
	}
	v.Lose(report.Lost, "keys are read from where AWS' own tools read them: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "access_key", "secret_key")
	v.Lose(report.Lost, "set AWS_PROFILE", "profile")
	v.Lose(report.Lost, "set AWS_USE_FIPS_ENDPOINT", "use_fips_sts_endpoint")
	return made
}

// setDuration converts a duration to a key, if it is set.
func setDuration(s *input.Section, from string, to document.Table, key string) {
	text := s.Text(from)
	if text == "" {
		return
	}
	d, err := promconfig.Duration(text)
	if err != nil {
		s.Say(report.Lost, s.Get(from), from, err.Error())
		return
	}
	to.Set(key, promconfig.GoDuration(d))
}
