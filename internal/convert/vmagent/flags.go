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
	"github.com/godwit-otel/godwit/internal/convert/lazyregexp"
	"github.com/godwit-otel/godwit/internal/convert/report"
)

// A flagValue is one that was given to vmagent.
type flagValue struct {
	name, value string
	line        int
}

// flags are vmagent's. What is read is claimed.
type flags struct {
	in      *input.Input
	file    string
	all     []flagValue
	claimed map[string]bool
	// variables are those that are seen, of the environment that vmagent has.
	variables []envVariable
}

var errNoFlags = errors.New("there are no flags of vmagent in it")

// readFlags finds the flags: in arguments, a unit of systemd, a manifest of Kubernetes, a list in YAML, or a file with
// one or more on a line. It returns nil for a scrape configuration.
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
			in.Mounts = composeMounts(service)
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

// unfilled tells of what a shell or Compose would put in a value's place, and nobody does here: other forms of variables, and what commands write. A file of flags
// may have variables that something else fills in.
func (f *flags) unfilled() {
	for _, given := range f.all {
		found := substitution().FindString(given.value)
		if found == "" || given.name == "promscrape.cluster.memberNum" { // which is told of where it is read
			continue
		}
		f.in.Report.Add(report.Finding{
			Kind: report.Changed, File: f.file, Line: given.line, Path: "-" + given.name,
			Text: found + " stays as it is, and is text: write what it stands for, or ${env:NAME}, in the result",
		})
	}
}

var substitution = lazyregexp.New("\\$\\{[^}]*\\}?|\\$\\([^)]*\\)?|`[^`]+`")

// none says of a text without flags of vmagent what to convert instead.
func (f *flags) none(elsewhere *string) error {
	for _, given := range f.all {
		if given.name == "config.file" || given.name == "config" { // Prometheus' and a collector's
			return fmt.Errorf("%w: convert the file that it names, %s", errNoFlags, given.value)
		}
	}
	if elsewhere != nil && *elsewhere != "" {
		return fmt.Errorf("%w: they may be in %s: give them as arguments, after `--`", errNoFlags, *elsewhere)
	}
	return errNoFlags
}

// IsUnit tells a unit of systemd.
func IsUnit(text string) bool { return strings.Contains(text, "[Service]") }

// readText reads a unit of systemd, a command line, lines of flags, or a script or a file of variables with one of these, from a line on.
func (f *flags) readText(text string, first int) {
	unit := IsUnit(text)
	for began, line := range joinedLines(text) {
		command := line
		if unit {
			key, value := setting(line)
			if key != "ExecStart" {
				continue
			}
			if command = value; command == "" { // what is above holds no more, as a drop-in has it
				f.all = nil
			}
		}
		if !unit && listed().MatchString(command) {
			command = listComma().ReplaceAllString(listed().ReplaceAllString(command, " $1"), "$1 $2")
			command = listEnd().ReplaceAllString(command, "$1")
		}
		assigned := assignment().FindStringSubmatch(line)
		switch {
		case unit: // $NAME and ${NAME} are systemd's own
			command = strings.TrimLeft(command, execPrefixes)
			command = f.specified(composeValue(command))
		case assigned != nil:
			command = shellValue(assigned[1]) + assigned[2]
		case !strings.HasPrefix(line, "-"): // a shell's
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
			if unit && from == len(args) { // all of them may be in variables
				from = min(1, from)
			}
			args, lines = args[from:], lines[from:]
		}
		f.add(args, lines)
		if assigned != nil { // its flags are taken up, wherever it is used
			name, _, _ := strings.Cut(line, "=")
			f.variables = append(f.variables, envVariable{name: name[strings.LastIndexAny(name, " \t")+1:]})
		}
	}
}

// Flags in a list of texts, as Terraform, Nomad, a Dockerfile and programs have them: how one begins, what is between two, and what is behind the last.
var (
	listed    = lazyregexp.New(`(?:^\s*|\[\s*)(["']-)`)
	listComma = lazyregexp.New(`(["'])\s*,\s*(["']-)`)
	listEnd   = lazyregexp.New(`(["'])\s*,?\s*\]?\s*,?\s*(?:(?:#|//).*)?$`)
)

// execPrefixes may come before the program of an ExecStart and say how systemd starts it.
const execPrefixes = "@-:+!|"

// joinedLines are the lines of a text by their numbers, without comments. What a backslash continues is one line, also where the text ends with
// the backslash, as a piece of a longer command does.
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

// assignment is a variable of a shell or of systemd's EnvironmentFile, whose value has flags in quotes.
var assignment = lazyregexp.New(`^(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*=(?:"((?s:.*))"|'((?s:.*))')$`)

// program is where in a command line vmagent's flags begin: behind its name, or the name of its image. There is none in other commands.
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

// unitSpecifier is what systemd itself fills in in a unit; two per cent signs are one.
var unitSpecifier = lazyregexp.New(`%[%A-Za-z]`)

// specified has what systemd fills in as variables, where these can be given to a unit.
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

// words splits a command line as a shell does, without its variables, and tells in which of its lines each word begins, from 0 on.
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
		case escaped && r == '\n': // the line goes on
			escaped = false
		case escaped:
			begin()
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) { // between these quotes, a backslash escapes nothing else
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

// add takes flags up as the package flag of Go would, with the lines that they are in. What is none, such as the program's name, is passed over before
// them, and said to be lost behind them.
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

// close reports the flags that nobody has claimed.
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

// A flagText says what becomes of flags that begin so.
type flagText struct {
	prefix string
	kind   report.Outcome
	text   string
}

// knownFlags says what becomes of flags that are not converted, by how they begin.
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

// switches are flags that take no value but after an equals sign.
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
