// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package vmagent

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/convert/document"
	"github.com/godwit-otel/godwit/internal/convert/input"
	"github.com/godwit-otel/godwit/internal/convert/report"
	"github.com/godwit-otel/godwit/internal/lazyregexp"
)

// A flagValue is one use of a flag.
type flagValue struct {
	name, value string
	line        int
}

// flags are the flags of vmagent. Reading a flag claims it.
type flags struct {
	in      *input.Input
	file    string
	all     []flagValue
	claimed map[string]bool
	// variables are the known variables of vmagent's environment.
	variables []envVariable
}

var errNoFlags = errors.New("there are no flags of vmagent in it")

// readFlags reads the flags from arguments, a systemd unit, a Kubernetes manifest, a YAML list, or a file with one or
// more flags in a line. It returns nil for a scrape configuration.
func readFlags(in *input.Input) (*flags, error) {
	f := &flags{in: in, file: in.Name(), claimed: map[string]bool{}}
	var elsewhere *string
	seen := func(all []envVariable, others string) { f.variables, elsewhere = all, &others }
	switch {
	case len(in.Args) > 0:
		f.file = ""
		f.add(in.Args, nil)
	case IsFlags(in.Text):
		if IsUnit(string(in.Text)) {
			seen(unitVariables(string(in.Text)))
		}
		f.readText(string(in.Text), 1)
	default:
		root, err := document.Parse(in.Text)
		if IsScript(in.Text, root) {
			f.readText(string(in.Text), 1)
			break
		}
		if err != nil {
			return nil, err
		}
		containers := containersOf(root)
		service, command, lines := Composed(root)
		switch {
		case service != nil:
			seen(composeVariables(service))
			f.command(command, lines)
			in.Mounts = composeMounts(root, service)
			for _, other := range composedBeside(root, service) {
				in.Report.Add(report.Finding{Kind: report.Lost, File: f.file, Line: other.Line, Path: "services." + other.Value, Text: "it has flags of vmagent, too, and the first service that has is converted: convert a file with this one alone"})
			}
		case len(containers) > 0:
			seen(f.container(containers))
		case root != nil && root.Kind == yaml.SequenceNode:
			f.add(document.ValuesOf(root.Content), linesOf(root.Content))
		default:
			return nil, nil
		}
	}
	if !slices.ContainsFunc(f.all, func(given flagValue) bool { return isFlag(given.name) }) {
		return nil, f.none(elsewhere)
	}
	f.environment(elsewhere)
	f.unfilled()
	return f, nil
}

// unfilled reports substitutions that a shell or Compose would make, but nobody does here: other forms of variables,
// and the output of commands. A file of flags may contain variables that another tool fills in.
func (f *flags) unfilled() {
	for _, given := range f.all {
		found := substitution().FindString(given.value)
		if found == "" || given.name == "promscrape.cluster.memberNum" { // sharding reports it
			continue
		}
		f.in.Report.Add(report.Finding{
			Kind: report.Changed, File: f.file, Line: given.line, Path: "-" + given.name,
			Text: found + " stays as it is, and is text: write what it stands for, or ${env:NAME}, in the result",
		})
	}
}

var substitution = lazyregexp.New("\\$\\{[^}]*\\}?|\\$\\([^)]*\\)?|`[^`]+`")

// none returns the error for a text without flags of vmagent, which says what to convert instead.
func (f *flags) none(elsewhere *string) error {
	for _, given := range f.all {
		if given.name == "config.file" || given.name == "config" { // of Prometheus and the Collector
			return fmt.Errorf("%w: convert the file that it names, %s", errNoFlags, given.value)
		}
	}
	if elsewhere != nil && *elsewhere != "" {
		return fmt.Errorf("%w: they may be in %s: give them as arguments, after `--`", errNoFlags, *elsewhere)
	}
	return errNoFlags
}

// IsUnit reports whether a text is a systemd unit.
func IsUnit(text string) bool { return strings.Contains(text, "[Service]") }

// readText reads a systemd unit, a command line, lines of flags, or a script or file of variables that contains these.
// The text begins on line first.
func (f *flags) readText(text string, first int) {
	unit := IsUnit(text)
	for began, line := range joinedLines(text) {
		command := line
		if unit {
			key, value := setting(line)
			if key != "ExecStart" {
				continue
			}
			if command = value; command == "" { // an empty value resets the list, as drop-ins do
				f.all = nil
			}
		}
		if !unit && listed().MatchString(command) {
			command = listComma().ReplaceAllString(listed().ReplaceAllString(command, " $1"), "$1 $2")
			command = listEnd().ReplaceAllString(command, "$1")
		}
		assigned := assignment().FindStringSubmatch(line)
		switch {
		case unit: // $NAME and ${NAME} are variables of systemd
			command = strings.TrimLeft(command, execPrefixes)
			command = f.specified(composeValue(command))
		case assigned != nil:
			command = shellValue(assigned[1]) + assigned[2]
		case !strings.HasPrefix(line, "-"): // a command of a shell
			command = shellValue(command)
		}
		args, lines := words(command)
		if !unit {
			args = untilOperator(args)
			lines = lines[:len(args)]
		}
		for i := range lines {
			lines[i] += began + first - 1
		}
		if !strings.HasPrefix(line, "-") {
			from := program(args)
			if unit && from == len(args) { // all flags may be in variables
				from = min(1, from)
			}
			f.in.Mounts = append(f.in.Mounts, commandMounts(args[:from])...)
			args, lines = args[from:], lines[from:]
		}
		f.add(args, lines)
		if assigned != nil { // its flags count, wherever the variable is used
			name, _, _ := strings.Cut(line, "=")
			f.variables = append(f.variables, envVariable{name: name[strings.LastIndexAny(name, " \t")+1:]})
		}
	}
}

// Patterns for flags in a list of strings, as in Terraform, Nomad, Dockerfiles and programs: the beginning of a flag,
// the separator of two, and the end.
var (
	listed    = lazyregexp.New(`(?:^\s*|\[\s*)(["']-)`)
	listComma = lazyregexp.New(`(["'])\s*,\s*(["']-)`)
	listEnd   = lazyregexp.New(`(["'])\s*,?\s*\]?\s*,?\s*(?:(?:#|//).*)?$`)
)

// execPrefixes may precede the program of an ExecStart and change how systemd starts it.
const execPrefixes = "@-:+!|"

// joinedLines returns the lines of a text with their numbers, without comments. Lines that end in a backslash are
// joined with the next, even if there is none, as in a piece of a longer command.
func joinedLines(text string) iter.Seq2[int, string] {
	return func(yield func(began int, line string) bool) {
		number, began, joined := 0, 0, ""
		for line := range strings.Lines(text) {
			number++
			line = strings.TrimSpace(line)
			if joined == "" {
				began = number
			}
			if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
				if joined != "" {
					joined += "\n"
				}
				continue
			}
			if rest, more := strings.CutSuffix(line, `\`); more {
				joined += rest + "\n"
				continue
			}
			line, joined = joined+line, ""
			if !yield(began, line) {
				return
			}
		}
		if joined != "" {
			yield(began, joined)
		}
	}
}

// assignment matches a variable of a shell or of systemd's EnvironmentFile with a value in quotes.
var assignment = lazyregexp.New(`^(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*=(?:"((?s:.*))"|'((?s:.*))')$`)

// program returns the index of the first argument after vmagent's name or image. It returns len(args) for commands
// without flags of vmagent.
func program(args []string) (from int) {
	first := slices.IndexFunc(args, func(arg string) bool {
		name := strings.TrimLeft(arg, "-")
		return name != arg && isFlag(name)
	})
	if first < 0 {
		return len(args)
	}
	for i, arg := range args[:first] {
		if !strings.HasPrefix(arg, "-") && strings.Contains(arg, "vmagent") {
			from = i + 1
		}
	}
	return from
}

// unitSpecifier matches what systemd expands in a unit; %% is an escaped percent sign.
var unitSpecifier = lazyregexp.New(`%[%A-Za-z]`)

// specified replaces systemd's specifiers by variables, if a unit can be given these.
func (f *flags) specified(command string) string {
	return unitSpecifier().ReplaceAllStringFunc(command, func(found string) string {
		var name, what string
		switch found[1] {
		case '%':
			return "%"
		case 'H':
			name, what = "HOSTNAME", "the host's name"
		case 'i', 'I':
			name, what = "INSTANCE", "the unit's instance"
		default:
			f.in.Report.Add(report.Finding{Kind: report.Changed, File: f.file, Text: found + " stays as it is, where systemd fills something in: write that in its place"})
			return found
		}
		f.in.Report.Add(report.Finding{Kind: report.Changed, File: f.file, Text: fmt.Sprintf("%[1]s, %[2]s, is filled in by systemd: the result takes it from the environment variable %[3]s, as "+
			"`Environment=%[3]s=%[1]s` in the collector's unit sets it", found, what, name)})
		return "%{" + name + "}"
	})
}

// words splits a command line as a shell does, without expanding variables, and returns the line in which each word
// begins, counted from 0.
func words(text string) (out []string, lines []int) {
	var word strings.Builder
	quote, in := rune(0), false
	escaped := false
	line, began := 0, 0
	begin := func() {
		if !in {
			in, began = true, line
		}
	}
	for _, r := range text {
		switch {
		case escaped && r == '\n': // a continued line
			escaped = false
		case escaped:
			begin()
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) { // in double quotes, a backslash escapes nothing else
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			begin()
			quote = r
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if in {
				out, lines = append(out, word.String()), append(lines, began)
				word.Reset()
				in = false
			}
		default:
			begin()
			word.WriteRune(r)
		}
		if r == '\n' {
			line++
		}
	}
	if in {
		out, lines = append(out, word.String()), append(lines, began)
	}
	return out, lines
}

// add parses flags as Go's package flag does, with their lines. Arguments before the flags that are no flags, such as
// the program's name, are skipped; those after a flag are reported as lost.
func (f *flags) add(args []string, lines []int) {
	last := ""
	for i := 0; i < len(args); i++ {
		line := 0
		if i < len(lines) {
			line = lines[i]
		}
		name := strings.TrimLeft(args[i], "-")
		if name == args[i] || name == "" {
			if !f.variable(args[i], line) && name != "" && last != "" {
				f.in.Report.Add(report.Finding{
					Kind: report.Lost, File: f.file, Line: line, Path: "-" + last, Text: "what follows its value is no flag, and left out: put a value with spaces in quotes",
				})
			}
			continue
		}
		name, value, given := strings.Cut(name, "=")
		if !given {
			value = "true"
			if !slices.Contains(switches, name) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				value = args[i]
			}
		}
		f.all = append(f.all, flagValue{name, value, line})
		last = name
	}
}

func linesOf(items []*yaml.Node) (lines []int) {
	for _, item := range items {
		lines = append(lines, item.Line)
		if item.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			lines[len(lines)-1]++
		}
	}
	return lines
}

func (f *flags) say(kind report.Outcome, name, text string) {
	finding := report.Finding{Kind: kind, File: f.file, Path: "-" + name, Text: text}
	for _, given := range f.all {
		if given.name == name {
			finding.Line = given.line
		}
	}
	f.in.Report.Add(finding)
}

// close reports the flags that were not claimed.
func (f *flags) close() {
	for _, given := range f.all {
		if f.claimed[given.name] {
			continue
		}
		kind, text := report.Lost, "this flag is not known here"
		for _, known := range knownFlags {
			if strings.HasPrefix(given.name, known.prefix) {
				kind, text = known.kind, known.text
				break
			}
		}
		f.say(kind, given.name, text)
	}
}

// A flagText describes the fate of flags with a prefix.
type flagText struct {
	prefix string
	kind   report.Outcome
	text   string
}

// knownFlags describes what happens to flags that are not converted. The first matching prefix applies.
var knownFlags = []flagText{
	{"remoteWrite.streamAggr.", report.Note, streamAggregation},
	{"streamAggr.", report.Note, streamAggregation},
	{"remoteWrite.shardByURL", report.Note, "it is about several destinations that `-remoteWrite.shardByURL` divides series among"},
	{"remoteWrite.significantFigures", report.Lost, "values are sent as they are"},
	{"remoteWrite.roundDigits", report.Lost, "values are sent as they are"},
	{"remoteWrite.mdx.", report.Lost, "a rule under `write_relabel_configs` keeps what it matches"},
	{"mdx.", report.Lost, "a rule under `write_relabel_configs` keeps what it matches"},
	{"remoteWrite.obfuscateLabels", report.Lost, "labels are sent as they are: `action: labeldrop` under `write_relabel_configs` leaves them out"},
	{"maxIngestionRate", report.Lost, "there is no limit on samples a second: `max_points_per_second` of the processor `cardinality` drops what is more"},
	{"remoteWrite.oauth2.", report.Lost, "only with `-remoteWrite.oauth2.clientID` and `.tokenUrl`"},
	{"remoteWrite.aws.ec2Endpoint", report.Lost, "set AWS_EC2_METADATA_SERVICE_ENDPOINT"},
	{"remoteWrite.aws.stsEndpoint", report.Lost, "set AWS_ENDPOINT_URL_STS"},
	{"remoteWrite.aws.", report.Lost, "keys are read from where AWS' own tools read them: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
	{"remoteWrite.tlsHandshakeTimeout", report.Note, "the timeout of a request bounds it"},
	{"remoteWrite.showURL", report.Note, "metrics name the destination's host and path, without credentials"},
	{"remoteWrite.keepDanglingQueues", report.Note, "a queue on disk stays until its destination is configured again"},
	{"remoteWrite.inmemoryQueues", report.Changed, "`queue::fresh_first_after` sends what is new before what has waited"},
	{"remoteWrite.maxMetadataPerBlock", report.Note, "metadata goes with the samples"},
	{"remoteWrite.vmProtoCompressLevel", report.Note, "`compression_level` is from 1, fastest, to 4, smallest; the default is 1"},
	{"sortLabels", report.Note, "labels are always sorted"},
	{"usePromCompatibleNaming", report.Note, "names are made so unless `translation_strategy` says otherwise"},
	{"maxLabel", report.Lost, "`label_limit`, `label_name_length_limit` and `label_value_length_limit` under `global` fail a scrape that is beyond them"},
	{"promscrape.cluster.memberURLTemplate", report.Note, "the console links to no other members"},
	{"promscrape.cluster.name", report.Note, "nothing removes duplicates by it"},
	{"promscrape.cluster.shardByLabels", report.Lost, "targets are divided by all of their labels and their URL"},
	{"promscrape.disableKeepAlive", report.Lost, "connections to targets are kept"},
	{"promscrape.configCheckInterval", report.Lost, "jobs in the collector's own file are read at the start: put them in files that `scrape_config_files` names, which are looked at each `reload_interval`"},
	{"promscrape.kubernetes.attach", report.Lost, "set `attach_metadata` under each of `kubernetes_sd_configs`"},
	{"promscrape.config.", report.Note, "`validate` does so"},
	{"promscrape.", report.Note, "there is nothing to set here: pages are read in parts, errors are logged when they begin and end, and discovered targets are taken up at once"},
	{"influx", report.Lost, "no distribution of Godwit takes InfluxDB's protocol: build one with contrib's receiver `influxdb`"},
	{"graphite", report.Lost, "no distribution of Godwit takes Graphite's protocol: build one with contrib's receiver `carbon`"},
	{"opentsdb", report.Lost, "no distribution of Godwit takes OpenTSDB's protocol"},
	{"datadog", report.Lost, "no distribution of Godwit takes Datadog's protocol: build one with contrib's receiver `datadog`"},
	{"newrelic", report.Lost, "no distribution of Godwit takes New Relic's protocol"},
	{"zabbixconnector", report.Lost, "no distribution of Godwit takes Zabbix' protocol"},
	{"opentelemetry.", report.Lost, "add the receiver `otlp`; `translation_strategy` and `promote_resource_attributes` of the exporter say what becomes of names and attributes"},
	{"enableMultitenan", report.Lost, "the exporter's `tenant` says whose data it is, and the receivers keep headers with `include_metadata`"},
	{"pushmetrics.", report.Lost, "a job that scrapes 127.0.0.1:8888 sends the collector's own metrics"},
	{"kafka.consumer.", report.Lost, "the receiver `kafka` of the distribution godwit reads OTLP alone: add it if what writes the topic can send that"},
	{"gcp.pubsub.", report.Lost, "no distribution of Godwit reads Google's Pub/Sub"},
	{"license", report.Note, "there is no licence to give"},
	{"eula", report.Note, "there is no licence to give"},
	{"httpListenAddr", report.Lost, "what listens says so itself: `console`, `health_check`, and each receiver. If remote write is pushed to it, add the receiver `remotewrite`"},
	{"http", report.Lost, "what listens says so itself: `console`, `health_check`, and each receiver"},
	{"tls", report.Lost, "what listens says so itself: `tls` of each receiver and extension"},
	{"logger", report.Note, "`service::telemetry::logs` says what is logged"},
	{"memory.allowed", report.Note, "that is for caches: `memory_limiter` bounds the process, at 80 % of the memory there is"},
	{"memory.", report.Note, nothingToSet},
	{"fs.", report.Note, nothingToSet},
	{"filestream.", report.Note, nothingToSet},
	{"internString", report.Note, nothingToSet},
	{"blockcache.", report.Note, nothingToSet},
	{"cacheExpireDuration", report.Note, nothingToSet},
	{"prevCacheRemovalPercent", report.Note, nothingToSet},
	{"denyQueryTracing", report.Note, nothingToSet},
	{"csvTrimTimestamp", report.Note, nothingToSet},
	{"import.", report.Note, nothingToSet},
	{"insert.", report.Note, nothingToSet},
	{"maxConcurrentInserts", report.Note, nothingToSet},
	{"maxInsertRequestSize", report.Note, nothingToSet},
	{"metrics", report.Note, nothingToSet},
	{"pprofAuthKey", report.Note, nothingToSet},
	{"flagsAuthKey", report.Note, nothingToSet},
	{"configAuthKey", report.Note, nothingToSet},
	{"reloadAuthKey", report.Note, nothingToSet},
	{"secret.flags", report.Note, nothingToSet},
	{"version", report.Note, nothingToSet},
	{"dryRun", report.Note, nothingToSet},
	{"enableTCP6", report.Note, nothingToSet},
}

const nothingToSet = "there is nothing to set here"

const streamAggregation = "stream aggregation is the processor's `cardinality`, whose rules with `aggregate` need none of it"

// switches are flags that take a value only after an equals sign.
var switches = []string{
	"dryRun", "enableMetadata", "enableMultitenancyViaHeaders", "enableMultitenantHandlers", "enableTCP6", "envflag.enable",
	"promscrape.config.dryRun", "promscrape.config.strictParse", "promscrape.disableCompression", "promscrape.disableKeepAlive",
	"promscrape.dropOriginalLabels", "promscrape.noStaleMarkers", "promscrape.streamParse", "promscrape.suppressDuplicateScrapeTargetErrors",
	"promscrape.suppressScrapeErrors", "promscrape.kubernetes.attachNamespaceMetadataAll", "promscrape.kubernetes.attachNodeMetadataAll",
	"promscrape.kubernetes.useHTTP2Client", "remoteWrite.dropSamplesOnOverload", "remoteWrite.keepDanglingQueues", "remoteWrite.shardByURL",
	"remoteWrite.showURL", "remoteWrite.disableMetadata", "remoteWrite.disableOnDiskQueue", "remoteWrite.forcePromProto",
	"remoteWrite.forceVMProto", "remoteWrite.mdx.enable", "remoteWrite.tlsInsecureSkipVerify", "remoteWrite.aws.useSigv4",
	"remoteWrite.streamAggr.dropInput", "remoteWrite.streamAggr.keepInput", "remoteWrite.streamAggr.ignoreOldSamples",
	"remoteWrite.streamAggr.enableWindows", "sortLabels", "streamAggr.dropInput", "streamAggr.keepInput", "streamAggr.ignoreOldSamples",
	"streamAggr.enableWindows", "usePromCompatibleNaming", "http.disableCORS", "http.disableKeepAlive", "http.disableResponseCompression",
	"loggerDisableTimestamps", "metrics.exposeMetadata", "fs.disableMmap", "tls", "version",
}
