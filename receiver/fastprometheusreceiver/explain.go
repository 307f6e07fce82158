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
)

const (
	globalSection = "global"
	jobsSection   = "scrape_configs"
	jobNameKey    = "job_name"
	// maxBlamed bounds how many jobs an error is about.
	maxBlamed = 5
)

// explain says where in a configuration its fault is. Prometheus tells it by a line of YAML that is not the user's, or not at
// all. So its parts are read one by one until the smallest is found that is refused by itself.
func explain(tree map[string]any, fault error) error {
	if global, ok := tree[globalSection]; ok {
		if err := tryLoad(map[string]any{globalSection: global}); err != nil {
			return blame(globalSection, global, nil, err, func(part any) error { return tryLoad(map[string]any{globalSection: part}) })
		}
	}
	jobs, _ := tree[jobsSection].([]any)
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
		return inWords(fault) // only the whole is refused, as are two jobs of one name
	}
	return errors.Join(errs...)
}

// blame finds the key of a part that is refused by itself, or with what no part can be without, and the element where that is
// a list.
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
		where, fault := fmt.Sprintf("%s, `%s`", where, key), err
		if list, ok := keys[key].([]any); ok && len(list) > 1 {
			for i, element := range list {
				if err := only(key, []any{element}); err != nil {
					where, fault = fmt.Sprintf("%s, element %d", where, i+1), err
					break
				}
			}
		}
		return fmt.Errorf("%s: %w", where, inWords(fault))
	}
	return fmt.Errorf("%s: %w", where, inWords(fault))
}

func tryLoad(tree map[string]any) error {
	text, err := yaml.Marshal(tree)
	if err != nil {
		return err
	}
	_, err = promconfig.Load(string(text), slog.New(slog.DiscardHandler))
	return err
}

// asMap is a mapping of YAML, of which the keys may be of any type.
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
	wrongKind    = regexp.MustCompile("(?s)^yaml: unmarshal errors:\n  line \\d+: cannot unmarshal !!(\\w+)( `.*?`)? into \\S+$")
	kinds        = map[string]string{"str": "the text", "int": "the number", "float": "the number", "bool": "the word", "seq": "a list", "map": "a mapping"}
)

// inWords names unknown keys, and those that were meant, instead of lines and types that nobody has written.
func inWords(fault error) error {
	found := unknownField.FindAllStringSubmatch(fault.Error(), -1)
	if found == nil {
		if kind := wrongKind.FindStringSubmatch(fault.Error()); kind != nil {
			return fmt.Errorf("it cannot be %s%s", cmp.Or(kinds[kind[1]], kind[1]), kind[2])
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

// discoveries are those of Prometheus, which a build may leave out.
var discoveries = strings.Fields("aws azure consul digitalocean dns docker dockerswarm ec2 eureka gce hetzner http ionos kubernetes kuma lightsail " +
	"linode marathon nerve nomad openstack ovhcloud puppetdb scaleway serverset stackit triton uyuni vultr xds")

// knownKeys are those of Prometheus' configuration that is about scraping.
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
