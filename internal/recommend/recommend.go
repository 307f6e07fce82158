// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package recommend is the command `cardinality recommend` of the distributions: it asks the console of a running one for
// rules that would save series, and prints them.
package recommend

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-otel/godwit/internal/redact"
)

// The command and its subcommand.
const (
	group = "cardinality"
	verb  = "recommend"
)

const (
	// defaultConsole is the default address of a console.
	defaultConsole = "http://127.0.0.1:13155"
	defaultRules   = 3

	patience  = 30 * time.Second
	maxAnswer = 4 << 20
	maxSecret = 64 << 10
)

// A Command holds the arguments and streams that a distribution was started with.
type Command struct {
	// Distribution is the name of the binary.
	Distribution   string
	Args           []string
	Stdout, Stderr io.Writer
}

// Intercept runs the command and ends the process if the arguments name this command. Otherwise it returns.
func Intercept(distribution string) {
	c := Command{Distribution: distribution, Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr}
	if exit, done := c.Run(); done {
		os.Exit(exit)
	}
}

// Run runs the command if the arguments name it. Otherwise done is false.
func (c *Command) Run() (exit int, done bool) {
	if len(c.Args) == 0 || c.Args[0] != group {
		return 0, false
	}
	err := c.run(c.Args[1:])
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0, true
	case errors.Is(err, errFlags): // flag has printed the error
	default:
		_, _ = fmt.Fprintf(c.Stderr, "Error: %v\n", err)
	}
	return 1, true
}

var errFlags = errors.New("cannot use the flags")

// question holds the parameters of the request.
type question struct {
	console, processor    string
	rules                 int
	caFile, authorization string
}

func (c *Command) run(args []string) error {
	set := flag.NewFlagSet("cardinality recommend", flag.ContinueOnError)
	set.SetOutput(c.Stderr)
	set.Usage = func() {
		_, _ = fmt.Fprintf(c.Stderr, usage, c.Distribution)
		set.PrintDefaults()
	}
	var q question
	set.StringVar(&q.console, "console", defaultConsole, "URL of the console of the collector to ask")
	set.StringVar(&q.processor, "processor", "", "which cardinality processor, if there are several: as the console names it")
	set.IntVar(&q.rules, "rules", defaultRules, "how many rules at most, from 1 to 20")
	set.StringVar(&q.caFile, "ca-file", "", "certificates to trust, for https")
	set.StringVar(&q.authorization, "authorization-file", "", "file with the value of the header Authorization, such as Bearer abc")
	if len(args) == 0 || args[0] != verb {
		if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
			set.Usage()
			return flag.ErrHelp
		}
		return fmt.Errorf("cannot tell what to do: write %s cardinality recommend", c.Distribution)
	}
	if err := set.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errFlags
	}
	if set.NArg() > 0 {
		return fmt.Errorf("cannot use %q: all of it is flags", set.Arg(0))
	}
	text, err := q.ask(context.Background())
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c.Stdout, text); err != nil {
		return fmt.Errorf("cannot write the rules: %w", err)
	}
	return nil
}

// ask returns the rules as YAML.
func (q *question) ask(ctx context.Context) (string, error) {
	base, err := url.Parse(q.console)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return "", fmt.Errorf("cannot use --console %q: it must be a URL, such as %s", redact.URL(q.console), defaultConsole)
	}
	at := base.JoinPath("api/v1/cardinality/recommendations")
	query := url.Values{"n": {strconv.Itoa(q.rules)}}
	if q.processor != "" {
		query.Set("processor", q.processor)
	}
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", fmt.Errorf("cannot ask the console: %w", err)
	}
	if q.authorization != "" {
		value, err := readSecret(q.authorization)
		if err != nil {
			return "", err
		}
		request.Header.Set("Authorization", value)
	}
	client, err := q.client()
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return "", unreached(base, cause(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("cannot read the console's answer: %w", err)
	}
	return understand(response.StatusCode, body)
}

// cause removes the URL from an error, since it may contain a password.
func cause(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// unreached returns the error for a console that did not answer, or that is not trusted, with advice.
func unreached(console *url.URL, err error) error {
	advice := "see whether the collector runs with the extension `console`, and name its address by --console"
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		advice = "name the authority that signed its certificate by --ca-file, and use a host in --console that the certificate has"
	}
	return fmt.Errorf("cannot reach the console at %s: %w: %s", console.Redacted(), err, advice)
}

func readSecret(name string) (string, error) {
	file, err := os.Open(name) //nolint:gosec // the user names it
	if err != nil {
		return "", fmt.Errorf("cannot read --authorization-file: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxSecret))
	if err != nil {
		return "", fmt.Errorf("cannot read --authorization-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (q *question) client() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if q.caFile != "" {
		pem, err := os.ReadFile(q.caFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read --ca-file: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cannot use --ca-file %s: there is no certificate in it", q.caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport, Timeout: patience}, nil
}

// understand returns the rules in an answer, or the reason why there are none.
func understand(status int, body []byte) (string, error) {
	var answer struct {
		YAML  string `json:"yaml"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	err := json.Unmarshal(body, &answer)
	switch {
	case status == http.StatusUnauthorized:
		reason := cmp.Or(answer.Error.Message, "the console answered 401")
		return "", fmt.Errorf("cannot get recommendations: %s: name a file with the console's credentials by --authorization-file", reason)
	case answer.Error.Message != "":
		return "", fmt.Errorf("cannot get recommendations: %s", answer.Error.Message)
	case status != http.StatusOK:
		return "", fmt.Errorf("cannot get recommendations: the console answered %d", status)
	case err != nil:
		return "", fmt.Errorf("cannot read the console's answer: %w", err)
	case answer.YAML == "":
		return "", errors.New("cannot get recommendations: what answered is no console")
	}
	return answer.YAML, nil
}

const usage = `Prints rules of the cardinality processor that would save most series, as YAML to paste, and which queries would change. It asks
the console of a collector that runs:

  %[1]s cardinality recommend
  %[1]s cardinality recommend --rules 5 --console http://node-7:13155

`
