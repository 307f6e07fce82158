// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// vmagentClient converts the flags about the connection to a destination.
func vmagentClient(f *flags, out *output, carry *carrier, client table, i int, name string) {
	of := func(name string) string { return carry.text(f.of("remoteWrite."+name, i)) }
	file := func(name string) string { return carry.text(f.in.join(f.of("remoteWrite."+name, i))) }
	setText(client, "proxy_url", of("proxyURL"))
	tls := newTable()
	setText(tls, "ca_file", file("tlsCAFile"))
	setText(tls, "cert_file", file("tlsCertFile"))
	setText(tls, "key_file", file("tlsKeyFile"))
	setText(tls, "server_name_override", of("tlsServerName"))
	if truth(f.of("remoteWrite.tlsInsecureSkipVerify", i)) {
		tls.set("insecure_skip_verify", true)
	}
	if !tls.empty() {
		client.set("tls", tls)
	}
	headers := newTable()
	for header := range strings.SplitSeq(f.of("remoteWrite.headers", i), "^^") {
		if key, value, ok := strings.Cut(header, ":"); ok {
			headers.set(strings.TrimSpace(key), carry.text(strings.TrimSpace(value)))
		} else if header != "" {
			f.say(Lost, "remoteWrite.headers", "a header must be `name:value`")
		}
	}
	if !headers.empty() {
		client.set("headers", headers)
	}

	basic := newTable()
	setText(basic, "username", of("basicAuth.username"))
	setText(basic, "username_file", file("basicAuth.usernameFile"))
	setText(basic, "password", of("basicAuth.password"))
	setText(basic, "password_file", file("basicAuth.passwordFile"))
	bearer := newTable()
	setText(bearer, "token", of("bearerToken"))
	setText(bearer, "filename", file("bearerTokenFile"))
	auth := ""
	switch {
	case !basic.empty():
		auth = out.extend("basicauth", name, newTable().set("client_auth", basic))
	case !bearer.empty():
		auth = out.extend("bearertokenauth", name, bearer)
	case f.of("remoteWrite.oauth2.clientID", i) != "":
		auth = out.extend("oauth2client", name, vmagentOAuth2(f, of, file, i))
	case truth(f.of("remoteWrite.aws.useSigv4", i)):
		service := of("aws.service")
		if service == "" {
			service = "aps"
		}
		aws := newTable()
		setText(aws, "region", of("aws.region"))
		aws.set("service", service)
		if role := of("aws.roleARN"); role != "" {
			aws.set("assume_role", newTable().set("arn", role))
		}
		auth = out.extend("sigv4auth", name, aws)
	}
	if auth != "" {
		client.set("auth", newTable().set("authenticator", auth))
	}
}

func vmagentOAuth2(f *flags, of, file func(string) string, i int) table {
	made := newTable()
	setText(made, "client_id", of("oauth2.clientID"))
	setText(made, "client_secret", of("oauth2.clientSecret"))
	setText(made, "client_secret_file", file("oauth2.clientSecretFile"))
	setText(made, "token_url", of("oauth2.tokenUrl"))
	if scopes := of("oauth2.scopes"); scopes != "" {
		made.set("scopes", strings.Split(scopes, ";"))
	}
	if params := f.of("remoteWrite.oauth2.endpointParams", i); params != "" {
		lists := newTable()
		root, err := parse([]byte(params)) // JSON is YAML
		if err != nil || root == nil || root.Kind != yaml.MappingNode {
			f.say(Lost, "remoteWrite.oauth2.endpointParams", "it must be an object of JSON")
			return made
		}
		for k := 0; k+1 < len(root.Content); k += 2 {
			lists.set(root.Content[k].Value, []string{strings.ReplaceAll(root.Content[k+1].Value, "$", "$$")})
		}
		made.set("endpoint_params", lists)
	}
	return made
}
