// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v2"

	"github.com/godwit-otel/godwit/internal/confkeys"
	"github.com/godwit-otel/godwit/internal/typo"
)

const (
	globalSection = "global"
	jobsSection   = "scrape_configs"
	jobNameKey    = "job_name"
	regexKey      = "regex"
	// maxBlamed limits how many jobs an error names.
	maxBlamed = 5
)

// explain finds the place of an error in a configuration. Prometheus reports a line of YAML that the user did not
// write, or none at all. So the parts of the configuration are loaded one by one, down to the smallest that fails by
// itself.
func explain(tree map[string]any, fault error) error {
	if global, ok := tree[globalSection]; ok {
		if err := tryLoad(map[string]any{globalSection: global}); err != nil {
			return blame(globalSection, global, nil, err, func(part any) error { return tryLoad(map[string]any{globalSection: part}) })
		}
	}
	jobs, isList := tree[jobsSection].([]any)
	if !isList && tree[jobsSection] != nil {
		return fmt.Errorf("`%s` must be a list of jobs, each of which begins with `- job_name:`%s", jobsSection, typo.PlaceOf(jobsSection))
	}
	var errs []error
	for i, job := range jobs {
		with := func(part any) error {
			return tryLoad(map[string]any{globalSection: tree[globalSection], jobsSection: []any{part}})
		}
		err := with(job)
		if err == nil {
			continue
		}
		if len(errs) == maxBlamed {
			errs = append(errs, errors.New("and more jobs"))
			break
		}
		keys := asMap(job)
		where, name := fmt.Sprintf("%s[%d]", jobsSection, i), "some"
		if given, ok := keys[jobNameKey].(string); ok && given != "" {
			where, name = fmt.Sprintf("job %q", given), given
		}
		errs = append(errs, blame(where, job, map[string]any{jobNameKey: name}, err, with))
	}
	if len(errs) == 0 {
		if name := sameName.FindStringSubmatch(fault.Error()); name != nil {
			return fmt.Errorf("two jobs have the name %q%s", name[1], strings.ReplaceAll(typo.PlaceIn(jobNameKey, name[1], jobNameKey), " or ", " and "))
		}
		return inWords(fault) // only the whole fails
	}
	return errors.Join(errs...)
}

// blame finds the key of a part that fails by itself, or together with what it always needs, and the element if it is a
// list.
func blame(where string, part any, needed map[string]any, fault error, try func(part any) error) error {
	keys := asMap(part)
	only := func(key string, value any) error {
		smaller := maps.Clone(needed)
		if smaller == nil {
			smaller = map[string]any{}
		}
		smaller[key] = value
		return try(smaller)
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		err := only(key, keys[key])
		if err == nil {
			continue
		}
		where, fault, path := fmt.Sprintf("%s, `%s`", where, key), err, []string{key}
		list, _ := keys[key].([]any)
		for i, element := range list {
			if err := only(key, []any{element}); err != nil {
				if fault, path = err, append(path, fmt.Sprintf("[%d]", i)); len(list) > 1 {
					where = fmt.Sprintf("%s, element %d", where, i+1)
				}
				break
			}
		}
		if !unknownField.MatchString(fault.Error()) { // these name their place
			name, _ := keys[jobNameKey].(string)
			where += placeOf(name, path, fault)
		}
		return fmt.Errorf("%s: %w", where, inWords(fault))
	}
	if name, _ := keys[jobNameKey].(string); name != "" && !unknownField.MatchString(fault.Error()) {
		where += typo.PlaceIn(jobNameKey, name, jobNameKey)
	}
	return fmt.Errorf("%s: %w", where, inWords(fault))
}

// placeOf is the place where the user wrote what is wrong with a job, or with the global section if there is no name.
func placeOf(job string, path []string, fault error) string {
	in := func(path []string) string {
		if job == "" {
			return typo.PlaceOf(append([]string{globalSection}, path...)...)
		}
		return typo.PlaceIn(jobNameKey, job, path...)
	}
	for text, key := range ruleFaults {
		if strings.Contains(fault.Error(), text) {
			if place := in(append(slices.Clip(path), key)); place != "" {
				return place
			}
		}
	}
	return in(path)
}

// ruleFaults are the keys of a relabel rule that faults are about.
var ruleFaults = map[string]string{"error parsing regexp": regexKey, "unknown relabel action": "action"}

func tryLoad(tree map[string]any) error {
	text, err := yaml.Marshal(tree)
	if err != nil {
		return err
	}
	_, err = promconfig.Load(string(text), slog.New(slog.DiscardHandler))
	return err
}

// asMap returns a mapping of YAML, whose keys may be of any type.
func asMap(v any) map[string]any {
	switch m := v.(type) {
	case map[string]any:
		return m
	case map[any]any:
		keys := map[string]any{}
		for key, value := range m {
			keys[fmt.Sprint(key)] = value
		}
		return keys
	}
	return nil
}

var (
	unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrongKind    = regexp.MustCompile("(?s)^yaml: unmarshal errors:\n  line \\d+: cannot unmarshal !!(\\w+)( `.*?`)? into (\\S+)$")
	sameName     = regexp.MustCompile(`found multiple scrape configs with job name "([^"]*)"`)
	ofJob        = regexp.MustCompile(` for scrape config with job name ".*"$`) // the job is already named
	kinds        = map[string]string{"str": "the text", "int": "the number", "float": "the number", "bool": "the word", "seq": "a list", "map": "a mapping"}
)

// inWords rewrites an error about unknown keys to name these and the keys that were likely meant, instead of line
// numbers and Go types.
func inWords(fault error) error {
	found := unknownField.FindAllStringSubmatch(fault.Error(), -1)
	if found == nil {
		kind := wrongKind.FindStringSubmatch(fault.Error())
		switch {
		case kind == nil:
		case strings.HasPrefix(kind[3], "[]"):
			return fmt.Errorf("it must be a list, not %s%s: in brackets, or each element on a line that begins with `- `", cmp.Or(kinds[kind[1]], kind[1]), kind[2])
		default:
			return fmt.Errorf("it cannot be %s%s", cmp.Or(kinds[kind[1]], kind[1]), kind[2])
		}
		if text := ofJob.ReplaceAllString(fault.Error(), ""); text != fault.Error() {
			return errors.New(text)
		}
		return fault
	}
	var parts []string
	for _, match := range found {
		key := match[1]
		if discovery, ok := strings.CutSuffix(key, "_sd_configs"); ok && slices.Contains(discoveries, discovery) {
			parts = append(parts, fmt.Sprintf("this build has no service discovery `%s`: the distribution godwit has it", key))
		} else {
			parts = append(parts, confkeys.Unknown(key, knownKeys()))
		}
	}
	return errors.New(strings.Join(parts, "; "))
}

// discoveries are the mechanisms of Prometheus that a build may leave out.
var discoveries = strings.Fields("aws azure consul digitalocean dns docker dockerswarm ec2 eureka gce hetzner http ionos kubernetes kuma lightsail " +
	"linode marathon nerve nomad openstack ovhcloud puppetdb scaleway serverset stackit triton uyuni vultr xds")

// knownKeys are the keys of Prometheus' configuration that are about scraping.
func knownKeys() []string {
	keys := []string{"static_configs", "file_sd_configs"}
	for _, discovery := range discoveries {
		keys = append(keys, discovery+"_sd_configs")
	}
	for _, t := range []reflect.Type{reflect.TypeFor[promconfig.GlobalConfig](), reflect.TypeFor[promconfig.ScrapeConfig](), reflect.TypeFor[relabel.Config]()} {
		keys = append(keys, confkeys.Of(t, "yaml")...)
	}
	return keys
}
