// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"encoding/base64"
	"strings"
)

// minSecret is how long a secret must be to be looked for in a text: shorter ones are parts of ordinary words.
const minSecret = 4

// Secrets returns what the target's requests authenticate with, as far as it can be read: those who answer may repeat it.
func (t *Target) Secrets() []string {
	c := t.client
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	lines, _ := c.extra.append(ctx, []byte(c.extra.fixed)) // what could not be read was not sent
	var out []string
	add := func(secret string) {
		if len(secret) >= minSecret {
			out = append(out, secret)
		}
	}
	for line := range strings.SplitSeq(string(lines), "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		if name != "Authorization" {
			add(value)
			continue
		}
		kind, credentials, _ := strings.Cut(value, " ")
		add(credentials)
		if pair, err := base64.StdEncoding.DecodeString(credentials); err == nil && kind == "Basic" {
			_, password, _ := strings.Cut(string(pair), ":")
			add(password)
		}
	}
	if proxy := c.config.ProxyURL.URL; proxy != nil {
		password, _ := proxy.User.Password()
		add(password)
	}
	for _, values := range c.config.ProxyConnectHeader {
		for _, value := range values {
			add(string(value))
		}
	}
	if c.oauth != nil {
		password, _ := c.oauth.user.Password()
		add(password)
		if c.oauth.secret != nil {
			secret, _ := c.oauth.secret.Fetch(ctx)
			add(secret)
		}
	}
	return out
}
