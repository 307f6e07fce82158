// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientcmd reads kubeconfig files.
package clientcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"k8s.io/client-go/rest"
)

type kubeconfig struct {
	CurrentContext string `yaml:"current-context"`
	Contexts       []struct {
		Name    string `yaml:"name"`
		Context struct {
			Cluster string `yaml:"cluster"`
			User    string `yaml:"user"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Clusters []struct {
		Name    string  `yaml:"name"`
		Cluster cluster `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		Name string `yaml:"name"`
		User user   `yaml:"user"`
	} `yaml:"users"`
}

type cluster struct {
	Server             string `yaml:"server"`
	CAFile             string `yaml:"certificate-authority"`
	CAData             base64 `yaml:"certificate-authority-data"`
	Insecure           bool   `yaml:"insecure-skip-tls-verify"`
	ServerName         string `yaml:"tls-server-name"`
	ProxyURL           string `yaml:"proxy-url"`
	DisableCompression bool   `yaml:"disable-compression"`
	Extensions         []struct {
		Name      string `yaml:"name"`
		Extension any    `yaml:"extension"`
	} `yaml:"extensions"`
}

type user struct {
	CertFile     string              `yaml:"client-certificate"`
	CertData     base64              `yaml:"client-certificate-data"`
	KeyFile      string              `yaml:"client-key"`
	KeyData      base64              `yaml:"client-key-data"`
	Token        string              `yaml:"token"`
	TokenFile    string              `yaml:"tokenFile"`
	Username     string              `yaml:"username"`
	Password     string              `yaml:"password"`
	As           string              `yaml:"as"`
	AsUID        string              `yaml:"as-uid"`
	AsGroups     []string            `yaml:"as-groups"`
	AsExtra      map[string][]string `yaml:"as-user-extra"`
	AuthProvider *struct {
		Name string `yaml:"name"`
	} `yaml:"auth-provider"`
	Exec *execution `yaml:"exec"`
}

type execution struct {
	APIVersion string   `yaml:"apiVersion"`
	Command    string   `yaml:"command"`
	Args       []string `yaml:"args"`
	Env        []struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	} `yaml:"env"`
	InstallHint        string `yaml:"installHint"`
	InteractiveMode    string `yaml:"interactiveMode"`
	ProvideClusterInfo bool   `yaml:"provideClusterInfo"`
}

// BuildConfigFromFlags reads a file. The first argument is a flag that service discovery does not have.
func BuildConfigFromFlags(_, path string) (*rest.Config, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the configuration names it
	if err != nil {
		return nil, err
	}
	var k kubeconfig
	if err := yaml.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("error loading config file %q: %w", path, err)
	}
	c, u, err := k.chosen()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	config, err := configOf(c, u, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

// chosen returns the cluster and the user of the current context. A context may have no user.
func (k *kubeconfig) chosen() (c cluster, u user, err error) {
	if len(k.Clusters) == 0 {
		return c, u, errors.New("invalid configuration: no configuration has been provided")
	}
	var names struct{ cluster, user string }
	found := false
	for _, context := range k.Contexts {
		if context.Name == k.CurrentContext {
			names.cluster, names.user, found = context.Context.Cluster, context.Context.User, true
			break
		}
	}
	if !found {
		return c, u, fmt.Errorf("context %q does not exist", k.CurrentContext)
	}
	found = false
	for _, one := range k.Clusters {
		if one.Name == names.cluster {
			c, found = one.Cluster, true
			break
		}
	}
	if !found || c.Server == "" {
		return c, u, fmt.Errorf("cluster %q does not exist, or has no server", names.cluster)
	}
	if names.user == "" {
		return c, u, nil
	}
	for _, one := range k.Users {
		if one.Name == names.user {
			return c, one.User, nil
		}
	}
	return c, u, fmt.Errorf("auth info %q does not exist", names.user)
}

// configOf returns a client's configuration. Files are relative to the directory of the kubeconfig.
func configOf(c cluster, u user, dir string) (*rest.Config, error) {
	in := func(file string) string {
		if file == "" || filepath.IsAbs(file) {
			return file
		}
		return filepath.Join(dir, file)
	}
	config := &rest.Config{
		Host:               c.Server,
		DisableCompression: c.DisableCompression,
		TLS: rest.TLSClientConfig{
			Insecure: c.Insecure, ServerName: c.ServerName, CAFile: in(c.CAFile), CAData: c.CAData,
		},
		Impersonate: rest.ImpersonationConfig{UserName: u.As, UID: u.AsUID, Groups: u.AsGroups, Extra: u.AsExtra},
	}
	if c.Insecure && (c.CAFile != "" || len(c.CAData) > 0) {
		return nil, errors.New("certificate-authority and insecure-skip-tls-verify exclude each other")
	}
	if c.ProxyURL != "" {
		proxy, err := url.Parse(c.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("proxy-url: %w", err)
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	if u.AuthProvider != nil {
		return nil, fmt.Errorf("no Auth Provider found for name %q", u.AuthProvider.Name)
	}
	if u.Exec != nil && u.Exec.InteractiveMode == "Always" {
		return nil, errors.New("exec: its program asks questions, and nobody answers here")
	}
	switch base, err := config.BaseURL(); {
	case err != nil:
		return nil, err
	case base.Scheme != "https":
		return config, nil // no credentials are sent over an insecure connection
	}
	config.TLS.CertFile, config.TLS.CertData = in(u.CertFile), u.CertData
	config.TLS.KeyFile, config.TLS.KeyData = in(u.KeyFile), u.KeyData
	config.BearerToken, config.BearerTokenFile = u.Token, in(u.TokenFile)
	config.Username, config.Password = u.Username, u.Password
	if u.Exec != nil {
		exec, err := u.Exec.config(c, dir)
		if err != nil {
			return nil, err
		}
		config.Exec = exec
	}
	return config, nil
}

// clusterExtension is the extension of a cluster that is passed to a credential program.
const clusterExtension = "client.authentication.k8s.io/exec"

func (e *execution) config(c cluster, dir string) (*rest.ExecConfig, error) {
	if e.Command == "" || e.APIVersion == "" {
		return nil, errors.New("exec: command and apiVersion are needed")
	}
	config := &rest.ExecConfig{APIVersion: e.APIVersion, Command: e.Command, Args: e.Args, InstallHint: e.InstallHint}
	if strings.ContainsRune(e.Command, filepath.Separator) && !filepath.IsAbs(e.Command) {
		config.Command = filepath.Join(dir, e.Command)
	}
	for _, variable := range e.Env {
		config.Env = append(config.Env, variable.Name+"="+variable.Value)
	}
	if !e.ProvideClusterInfo {
		return config, nil
	}
	ca := []byte(c.CAData)
	if file := c.CAFile; file != "" && len(ca) == 0 {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		var err error
		if ca, err = os.ReadFile(file); err != nil { //nolint:gosec // the kubeconfig names it
			return nil, err
		}
	}
	about := map[string]any{
		"server": c.Server, "tls-server-name": c.ServerName, "insecure-skip-tls-verify": c.Insecure,
		"certificate-authority-data": ca, "proxy-url": c.ProxyURL, "disable-compression": c.DisableCompression,
	}
	for _, extension := range c.Extensions {
		if extension.Name == clusterExtension {
			about["config"] = extension.Extension
		}
	}
	var err error
	config.Cluster, err = json.Marshal(about)
	return config, err
}
