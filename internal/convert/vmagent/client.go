// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/output"
	"github.com/godwit-otel/godwit/internal/convert/promconfig"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// clientOf converts the flags of the connection to a destination.
func clientOf(f *flags, out *output.Output, carry *promconfig.Carrier, client document.Table, i int, name string) {
	of := func(name string) string { return carry.Text(f.of("remoteWrite."+name, i)) }
	file := func(name string) string { return carry.Text(f.in.Join(f.of("remoteWrite."+name, i))) }
	promconfig.SetText(client, "proxy_url", of("proxyURL"))
	tls := document.NewTable()
	promconfig.SetText(tls, "ca_file", file("tlsCAFile"))
	promconfig.SetText(tls, "cert_file", file("tlsCertFile"))
	promconfig.SetText(tls, "key_file", file("tlsKeyFile"))
	promconfig.SetText(tls, "server_name_override", of("tlsServerName"))
	if f.on("remoteWrite.tlsInsecureSkipVerify", i) {
		tls.Set("insecure_skip_verify", true)
	}
	if !tls.Empty() {
		client.Set("tls", tls)
	}
	headers := document.NewTable()
	for header := range strings.SplitSeq(f.of("remoteWrite.headers", i), "^^") {
		if key, value, ok := strings.Cut(header, ":"); ok {
			headers.Set(strings.TrimSpace(key), carry.Text(strings.TrimSpace(value)))
		} else if header != "" {
			f.say(report.Lost, "remoteWrite.headers", "a header must be `name:value`")
		}
	}
	if !headers.Empty() {
		client.Set("headers", headers)
	}

	basic := document.NewTable()
	promconfig.SetText(basic, "username", of("basicAuth.username"))
	promconfig.SetText(basic, "username_file", file("basicAuth.usernameFile"))
	promconfig.SetText(basic, "password", of("basicAuth.password"))
	promconfig.SetText(basic, "password_file", file("basicAuth.passwordFile"))
	bearer := document.NewTable()
	promconfig.SetText(bearer, "token", of("bearerToken"))
	promconfig.SetText(bearer, "filename", file("bearerTokenFile"))
	auth := ""
	switch {
	case !basic.Empty():
		auth = out.Extend("basicauth", name, document.NewTable().Set("client_auth", basic))
	case !bearer.Empty():
		auth = out.Extend("bearertokenauth", name, bearer)
	case f.of("remoteWrite.oauth2.clientID", i) != "":
		auth = out.Extend("oauth2client", name, oauth2Of(f, of, file, i))
	case f.on("remoteWrite.aws.useSigv4", i):
		service := of("aws.service")
		if service == "" {
			service = "aps"
		}
		aws := document.NewTable()
		promconfig.SetText(aws, "region", of("aws.region"))
		aws.Set("service", service)
		if role := of("aws.roleARN"); role != "" {
			aws.Set("assume_role", document.NewTable().Set("arn", role))
		}
		auth = out.Extend("sigv4auth", name, aws)
	}
	if auth != "" {
		client.Set("auth", document.NewTable().Set("authenticator", auth))
	}
}

func oauth2Of(f *flags, of, file func(string) string, i int) document.Table {
	made := document.NewTable()
	promconfig.SetText(made, "client_id", of("oauth2.clientID"))
	promconfig.SetText(made, "client_secret", of("oauth2.clientSecret"))
	promconfig.SetText(made, "client_secret_file", file("oauth2.clientSecretFile"))
	promconfig.SetText(made, "token_url", of("oauth2.tokenUrl"))
	if scopes := of("oauth2.scopes"); scopes != "" {
		made.Set("scopes", strings.Split(scopes, ";"))
	}
	if params := f.of("remoteWrite.oauth2.endpointParams", i); params != "" {
		lists := document.NewTable()
		root, err := document.Parse([]byte(params)) // JSON is YAML
		if err != nil || root == nil || root.Kind != yaml.MappingNode {
			f.say(report.Lost, "remoteWrite.oauth2.endpointParams", "it must be an object of JSON")
			return made
		}
		for k := 0; k+1 < len(root.Content); k += 2 {
			lists.Set(root.Content[k].Value, []string{carrierOf(f).Text(root.Content[k+1].Value)})
		}
		made.Set("endpoint_params", lists)
	}
	return made
}
