// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/collector"
	"github.com/godwit-otel/godwit/internal/convert/detect"
	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/manifest"
	"github.com/godwit-otel/godwit/internal/convert/mistakes"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/redact"
	"github.com/godwit-otel/godwit/internal/typo"
)

// Exit codes of the commands.
const (
	exitDone = 0
	// exitFailed is returned if there is no result.
	exitFailed = 1
	// exitIncomplete is returned with --strict if the result lacks something.
	exitIncomplete = 3
)

// A Command holds the arguments and streams that a distribution was started with.
type Command struct {
	// Distribution is the name of the binary.
	Distribution string
	Args         []string
	Stdin        io.Reader
	Stdout       io.Writer
	Stderr       io.Writer
	// Validate is the distribution's own command `validate`, which writes its errors itself.
	Validate func(args ...string) error
	// LookupEnv looks up an environment variable; nil uses the process's environment.
	LookupEnv func(name string) (string, bool)
}

// Intercept runs the commands that the distribution adds to a collector's, and ends the process. It returns if the
// collector has to handle the command.
func Intercept(distribution string) {
	c := Command{
		Distribution: distribution, Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Validate: validate,
	}
	if exit, done := c.Run(); done {
		os.Exit(exit)
	}
}

// inner is the variable that marks a process that validates for another one.
const inner = "GODWIT_VALIDATE_INNER"

// validate runs the command `validate` of the process's own binary.
func validate(args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the file of this program: %w", err)
	}
	var said strings.Builder
	command := exec.Command(self, append([]string{"validate"}, args...)...) //nolint:gosec,noctx // it is this program
	command.Stdout, command.Stderr = os.Stdout, &said
	command.Env = append(os.Environ(), inner+"=1")
	err = command.Run()
	_, _ = io.WriteString(os.Stderr, plainly(said.String()))
	return err
}

// validateFiles runs `validate`, and reports missing files, deprecated keys and success.
func (c *Command) validateFiles(args []string) int {
	if err := c.Validate(args...); err != nil {
		return exitFailed
	}
	for _, path := range configFiles(args) {
		if text, err := readFile(path); err == nil {
			var doc yaml.Node
			if yaml.Unmarshal(text, &doc) == nil {
				for _, f := range missingFiles(path, &doc, nil, 0) {
					_, _ = fmt.Fprintln(c.Stdout, f)
				}
			}
		}
		result, err := Run(c.source([]string{path}, nil, detect.Collector, "", c.Distribution))
		if err != nil || len(result.Report.Findings) == 0 {
			continue // a part of a configuration need not be valid alone
		}
		for _, f := range result.Report.Findings {
			_, _ = fmt.Fprintln(c.Stdout, f)
		}
	}
	_, _ = fmt.Fprintln(c.Stdout, "valid")
	return exitDone
}

// Run runs one of the commands above. If the command is the collector's, done is false.
func (c *Command) Run() (exit int, done bool) {
	if len(c.Args) == 0 {
		return 0, false
	}
	switch c.Args[0] {
	case "convert":
		return c.convert(c.Args[1:]), true
	case "check":
		return c.check(c.Args[1:]), true
	case "help", "-h", "--help":
		if len(c.Args) > 1 {
			return 0, false
		}
		_, _ = fmt.Fprintf(c.Stdout, helpText, c.Distribution)
		return exitDone, true
	case "validate", "print-config":
		if slices.Contains(c.Args[1:], "-h") || slices.Contains(c.Args[1:], "--help") {
			_, _ = fmt.Fprintf(c.Stdout, map[string]string{"validate": validateUsage, "print-config": printUsage}[c.Args[0]], c.Distribution)
			return exitDone, true
		}
	}
	if exit, done := c.refuse(); done || c.Args[0] != "validate" || c.Validate == nil || !validates(c.Args[1:]) {
		return exit, done
	}
	return c.validateFiles(c.Args[1:]), true
}

// validates reports whether the arguments ask to validate a configuration. It is false for requests for help, and in
// the process that validates for another one.
func validates(args []string) bool {
	return os.Getenv(inner) == "" && len(flagValues(args, "config")) > 0 && !slices.Contains(args, "--help") && !slices.Contains(args, "-h")
}

// maxLookedAt limits the size of files that are checked before the collector reads them, because each start checks
// them.
const maxLookedAt = 256 << 10

// refuse reports whether the collector must not start: a file is a configuration of Prometheus, or has a mistake that
// can be reported with its line.
func (c *Command) refuse() (exit int, done bool) {
	paths := configFiles(c.Args)
	typo.LookIn(paths...)
	var files []mistakes.File
	for _, path := range paths {
		text, err := readFile(path)
		if err != nil {
			return 0, false // the collector reports the error
		}
		text = document.Readable(text)
		if detect.IsPrometheus(text) {
			_, _ = fmt.Fprintf(c.Stderr, "Error: cannot use %s: it is a configuration of Prometheus, not of a collector: make one of it by `%s convert %s -o godwit.yaml`\n",
				path, c.Distribution, path)
			return exitFailed, true
		}
		if manifest.Is(text) {
			_, _ = fmt.Fprintf(c.Stderr, "Error: cannot use %s: it is a manifest of Kubernetes: take the configuration out of it by `%s convert %s -o godwit.yaml`\n",
				path, c.Distribution, path)
			return exitFailed, true
		}
		if len(text) > maxLookedAt {
			return 0, false
		}
		if kind := detect.Stranger(text); kind != "" {
			return c.fail(c.noCollectors(path, kind)), true
		}
		files = append(files, mistakes.File{Name: path, Text: text})
	}
	if c.Args[0] != "validate" {
		c.warn(files)
	}
	if len(paths) < len(flagValues(c.Args, "config")) {
		return 0, false // other sources may set or use a key
	}
	if err := mistakes.Find(c.Distribution, files, flagValues(c.Args, "set"), c.lookup); err != nil {
		for _, f := range files { // if the file is not for a collector, that explains more than its first unknown key
			if kind := detect.File(f.Text); kind != detect.Collector && kind != detect.Unknown {
				return c.fail(c.noCollectors(f.Name, kind)), true
			}
		}
		return c.fail(err), true
	}
	return 0, false
}

// noCollectors returns the error for a file that is not a collector's.
func (c *Command) noCollectors(path string, kind detect.Kind) error {
	switch kind {
	case detect.Prometheus, detect.VMAgent, detect.Manifest:
		what, _, _ := strings.Cut(kind.String(), " without ")
		return fmt.Errorf("cannot use %[1]s: it is %[2]s: make one of a collector by `%[3]s convert %[1]s -o godwit.yaml`", path, what, c.Distribution)
	}
	return fmt.Errorf("cannot use %s: it is %s", path, kind)
}

// warn reports what will be ignored or read as plain text in the files. Neither is an error: a text may contain a
// dollar sign.
func (c *Command) warn(files []mistakes.File) {
	for _, f := range files {
		if line := document.FurtherDocument(f.Text); line > 0 {
			_, _ = fmt.Fprintf(c.Stderr, "Warning: %s:%d: %s\n", f.Name, line, anotherDocument)
		}
		for _, finding := range collector.FormerVariables(f.Name, f.Text) {
			_, _ = fmt.Fprintln(c.Stderr, "Warning:", strings.TrimPrefix(finding.String(), string(report.Changed)+": "))
		}
	}
}

func (c *Command) lookup(name string) (string, bool) {
	if c.LookupEnv == nil {
		return os.LookupEnv(name)
	}
	return c.LookupEnv(name)
}

// flagValues returns the values of all uses of a flag.
func flagValues(args []string, flag string) []string {
	var values []string
	for i, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		switch {
		case name != "--"+flag && name != "-"+flag:
			continue
		case !given && i+1 < len(args):
			value = args[i+1]
		case !given:
			continue
		}
		values = append(values, value)
	}
	return values
}

// configFiles returns the files that --config names.
func configFiles(args []string) []string {
	var files []string
	for _, value := range flagValues(args, "config") {
		value = strings.TrimPrefix(value, "file:")
		if scheme, _, found := strings.Cut(value, ":"); found && len(scheme) > 1 && !strings.ContainsAny(scheme, `/\.`) {
			continue // the scheme of another provider; a single letter is a drive of Windows
		}
		files = append(files, value)
	}
	return files
}

var errNoFile = errors.New("it is no regular file")

// readFile reads a regular file of at most document.MaxFile bytes.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNoFile
	case info.Size() > document.MaxFile:
		return nil, fmt.Errorf("it is larger than %d MiB", document.MaxFile>>20)
	}
	return os.ReadFile(path) //nolint:gosec // the user names it
}

func (c *Command) read(path string) ([]byte, error) {
	if path != input.Stdin {
		return readFile(path)
	}
	return io.ReadAll(io.LimitReader(c.Stdin, document.MaxFile+1))
}

func (c *Command) fail(err error) int {
	_, _ = fmt.Fprintf(c.Stderr, "Error: %v\n", redact.Error(err))
	return exitFailed
}

// flagSet makes the flags of a command with its usage text.
func (c *Command) flagSet(name, usage string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(c.Stderr)
	set.Usage = func() {
		_, _ = fmt.Fprintf(c.Stderr, usage, c.Distribution)
		set.PrintDefaults()
	}
	return set
}

func (c *Command) source(files, args []string, from detect.Kind, dir, distribution string) Source {
	return Source{From: from, Files: files, Args: args, Dir: dir, Distribution: distribution, Read: c.read, Glob: filepath.Glob}
}

// convert runs the command of that name.
func (c *Command) convert(args []string) int {
	set := c.flagSet("convert", convertUsage)
	from := set.String("from", "auto", "what the file is: prometheus, vmagent, collector or auto")
	to := set.String("o", "", "write the configuration to this file, which must not be there, instead of to the standard output (-)")
	dir := set.String("dir", "", "directory that relative paths in the file are relative to (default: that of the file)")
	pick := set.String("pick", "", "which of several configurations in a manifest of Kubernetes: NAME, NAMESPACE/NAME, or as the error says")
	target := set.String("distribution", c.Distribution, "distribution that shall run the result")
	strict := set.Bool("strict", false, "fail with exit code 3 when something was lost, or the distribution lacks a component")
	files, flags, err := parseArgs(set, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		return exitFailed
	}
	source := c.source(files, flags, detect.Kind(*from), *dir, *target)
	source.Pick = *pick
	result, err := Run(source)
	if err != nil {
		return c.fail(err)
	}
	if _, err := result.Report.WriteTo(c.Stderr); err != nil {
		return c.fail(err)
	}
	if *to == "" || *to == input.Stdin {
		_, err = c.Stdout.Write(result.Config)
	} else {
		err = create(*to, result.Config)
	}
	if err != nil {
		return c.fail(fmt.Errorf("cannot write the configuration: %w", err))
	}
	if *strict && !result.Report.Complete() {
		return exitIncomplete
	}
	return exitDone
}

// parseArgs parses flags before and after the names of files. Arguments after -- are flags of vmagent.
func parseArgs(set *flag.FlagSet, args []string) (files, foreign []string, err error) {
	for i, arg := range args {
		if arg == "--" {
			args, foreign = args[:i], args[i+1:]
			break
		}
	}
	for {
		if err := set.Parse(args); err != nil {
			return nil, nil, err
		}
		if args = set.Args(); len(args) == 0 {
			return files, foreign, nil
		}
		files, args = append(files, args[0]), args[1:]
	}
}

// check determines what a file is, and checks it.
func (c *Command) check(args []string) int {
	set := c.flagSet("check", checkUsage)
	from := set.String("from", "auto", "what the file is: prometheus, vmagent, collector or auto")
	pick := set.String("pick", "", "which of several configurations in a manifest of Kubernetes")
	files, flags, err := parseArgs(set, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		return exitFailed
	case len(files) == 0:
		return c.fail(errors.New("cannot check: name a file"))
	}
	source := c.source(files, flags, detect.Kind(*from), "", c.Distribution)
	source.Pick = *pick
	result, err := Run(source)
	if err != nil {
		return c.fail(err)
	}
	_, _ = fmt.Fprintf(c.Stdout, "%s is %s\n", files[0], result.Kind)
	if _, err := result.Report.WriteTo(c.Stdout); err != nil {
		return c.fail(err)
	}
	path, remove := files[0], func() {}
	if result.Kind != detect.Collector || result.Wrapped || path == input.Stdin {
		if path, remove, err = temporary(result.Config); err != nil {
			return c.fail(err)
		}
	}
	defer remove()
	if err := c.Validate("--config", "file:"+path); err != nil {
		_, _ = fmt.Fprintln(c.Stdout, "not valid"+c.unconverted(result, path))
		return exitFailed
	}
	_, _ = fmt.Fprintln(c.Stdout, "valid")
	return exitDone
}

// unconverted returns advice for a collector's file that is only correct once `convert` has rewritten it.
func (c *Command) unconverted(result Result, path string) string {
	if result.Kind != detect.Collector || result.Wrapped {
		return ""
	}
	text, err := readFile(path)
	if err != nil {
		return ""
	}
	root, err := document.Parse(text)
	if err != nil {
		return ""
	}
	if same, err := document.Encode(root); err != nil || bytes.Equal(same, result.Config) {
		return ""
	}
	return fmt.Sprintf(" as it is: `%s convert %s -o godwit.yaml` writes it as the lines above say", c.Distribution, path)
}

// temporary writes a configuration for `validate` to read, under a name that fits its error messages.
func temporary(text []byte) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "godwit-")
	if err != nil {
		return "", nil, fmt.Errorf("cannot write the converted configuration: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // a leftover does no harm
	path = filepath.Join(dir, "converted.yaml")
	if err := create(path, text); err != nil {
		remove()
		return "", nil, fmt.Errorf("cannot write the converted configuration: %w", err)
	}
	return path, remove, nil
}

const convertUsage = `Makes a configuration of what Prometheus, vmagent or another collector runs with:

  %[1]s convert prometheus.yml > godwit.yaml
  %[1]s convert vmagent.service scrape.yml relabel.yml > godwit.yaml
  %[1]s convert --from vmagent -- -promscrape.config=scrape.yml -remoteWrite.url=http://victoria:8428/api/v1/write
  %[1]s convert otelcol.yaml -o godwit.yaml
  %[1]s convert collector.yaml -o godwit.yaml         # a manifest with one of these in it, such as an OpenTelemetryCollector or a ConfigMap
  %[1]s convert collectors.yaml --pick gateway        # one of several in it

The report, on the standard error, has a line for all that is not as it was: lost (left out), needs (the distribution
lacks it), changed (means something else), note. Exit code 0: written; 1: not; 3: written and incomplete, with --strict.

`

const checkUsage = `Says what a file is, what is deprecated in it or would mean something else here, and whether it is valid:

  %[1]s check FILE

`

const validateUsage = `Checks a configuration without running it. Exit code 0: valid; 1: not, and why, with file and line.

  %[1]s validate --config FILE

` + given

const printUsage = `Shows what a configuration means, with defaults, and variables and files filled in:

  %[1]s print-config --config FILE

` + given + `--mode=unredacted     shows secrets, too
--format=json         as JSON, whose form may change
--validate=false      also where it is not valid
`

// given is the help text for flags that several commands have.
const given = `--config may be given several times: what is in several files is that of the last.

--set KEY=VALUE       replaces one value, such as processors.batch.timeout=2s
--feature-gates LIST  turns gates on and off: NAME,-OTHER; %[1]s featuregate lists them
`

const helpText = `Usage: %[1]s --config FILE

Runs a collector. --config may be given several times, and names a file or what a provider reads: file:, env:, yaml:.
--set receivers.x.key=value replaces one value. SIGHUP reads the configuration again, SIGTERM drains and stops.

Commands:
  validate      check a configuration: --config FILE
  check         say what a file is, of Prometheus, vmagent or a collector, what would change, and whether it is valid
  convert       make a configuration out of one of these
  cardinality   cardinality recommend prints rules that would save most series of a collector that runs
  print-config  show what a configuration means, with defaults: --config FILE
  components    list what is built in
  featuregate   list feature gates; --feature-gates=NAME,-OTHER before or after --config turns them on and off
  completion    write a completion script for a shell

%[1]s COMMAND --help tells more. %[1]s --version says which this is.
`
