// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/alecthomas/units"
	"github.com/cespare/xxhash/v2"
	commonconfig "github.com/prometheus/common/config"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v2"

	"github.com/godwit-otel/godwit/internal/memlimit"
	"github.com/godwit-otel/godwit/internal/redact"
	"github.com/godwit-otel/godwit/internal/regularfile"
)

// Prometheus is a Prometheus configuration as Prometheus itself reads it. The zero value has no jobs.
type Prometheus struct { //nolint:recvcheck // only what writes to it takes a pointer
	loaded *promconfig.Config
	// foreign names the sections that are set and govern other parts of Prometheus than scraping.
	foreign []string
}

var (
	_ confmap.Unmarshaler = (*Prometheus)(nil)
	_ confmap.Marshaler   = (*Prometheus)(nil)
)

// sections are the top-level keys that this receiver supports.
var sections = []string{"global", "scrape_configs", "scrape_config_files"}

// LoadPrometheus reads a configuration from YAML. Relative paths in it are relative to the working directory.
func LoadPrometheus(text []byte) (Prometheus, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return Prometheus{}, fmt.Errorf("cannot read `config`: %w", err)
	}
	loaded, err := promconfig.Load(string(text), slog.New(slog.DiscardHandler))
	if err != nil {
		return Prometheus{}, fmt.Errorf("cannot read `config`: %w", explain(tree, err))
	}
	p := Prometheus{loaded: loaded}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if value := reflect.ValueOf(tree[name]); !slices.Contains(sections, name) && value.IsValid() && !isEmpty(value) {
			p.foreign = append(p.foreign, name)
		}
	}
	return p, nil
}

func isEmpty(v reflect.Value) bool {
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// Unmarshal implements [confmap.Unmarshaler] by way of YAML, which is what Prometheus's types read.
func (p *Prometheus) Unmarshal(conf *confmap.Conf) error {
	tree := conf.ToStringMap()
	if len(tree) == 0 {
		return nil
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return fmt.Errorf("cannot write `config` as YAML: %w", err)
	}
	loaded, err := LoadPrometheus(text)
	if err != nil {
		return err
	}
	*p = loaded
	return nil
}

// Marshal implements [confmap.Marshaler]. Secrets come out as placeholders.
func (p Prometheus) Marshal(conf *confmap.Conf) error {
	if p.loaded == nil {
		return nil
	}
	text, err := yaml.Marshal(p.loaded)
	if err != nil {
		return fmt.Errorf("cannot write `config` as YAML: %w", err)
	}
	retrieved, err := confmap.NewRetrievedFromYAML(text)
	if err != nil {
		return fmt.Errorf("cannot read `config` as YAML: %w", err)
	}
	tree, err := retrieved.AsConf()
	if err != nil {
		return fmt.Errorf("cannot read `config` as YAML: %w", err)
	}
	return conf.Merge(tree)
}

// Validate reports sections that this receiver does not honour, and faults of the jobs.
func (p Prometheus) Validate() error {
	var errs []error
	for _, name := range p.foreign {
		errs = append(errs, fmt.Errorf("`%s` is not supported: the receiver only scrapes, remove it", name))
	}
	_, err := p.read(0)
	return errors.Join(append(errs, err)...)
}

func (p Prometheus) hasJobs() bool {
	return p.loaded != nil && (len(p.loaded.ScrapeConfigs) > 0 || len(p.loaded.ScrapeConfigFiles) > 0)
}

func (p Prometheus) hasFiles() bool {
	return p.loaded != nil && len(p.loaded.ScrapeConfigFiles) > 0
}

func (p Prometheus) external() labels.Labels { return p.global().ExternalLabels }

func (p Prometheus) global() promconfig.GlobalConfig {
	if p.loaded == nil {
		return promconfig.DefaultGlobalConfig
	}
	return p.loaded.GlobalConfig
}

// text returns the configuration as YAML, with jobs besides its own. Secrets come out as placeholders, also in URLs.
func (p Prometheus) text(others []*promconfig.ScrapeConfig) string {
	shown := promconfig.Config{GlobalConfig: p.global()}
	if p.loaded != nil {
		shown = *p.loaded
	}
	shown.ScrapeConfigs = slices.Concat(shown.ScrapeConfigs, others)
	return redact.URLs(shown.String())
}

// A reading is the scrape configurations as they were at some moment.
type reading struct {
	jobs []*promconfig.ScrapeConfig
	sum  uint64 // of the names and contents of scrape_config_files
}

// read returns the scrape configurations, those of scrape_config_files read anew, with a limit for bodies
// where they have none. Even with an error the sum is right.
func (p Prometheus) read(maxBody int64) (reading, error) {
	if p.loaded == nil {
		return reading{}, nil
	}
	sum, err := p.sumFiles()
	out := reading{sum: sum}
	if err == nil {
		err = p.checkSizes()
	}
	if err != nil {
		return out, fmt.Errorf("cannot read `scrape_config_files`: %w", err)
	}
	found, err := p.loaded.GetScrapeConfigs()
	if err != nil {
		return out, fmt.Errorf("cannot read the scrape configurations: %w", err)
	}
	var errs []error
	for _, job := range found {
		complete, err := complete(job, maxBody)
		out.jobs = append(out.jobs, complete)
		errs = append(errs, err)
	}
	return out, errors.Join(errs...)
}

// complete returns a job with what this receiver's jobs have by default.
func complete(job *promconfig.ScrapeConfig, maxBody int64) (*promconfig.ScrapeConfig, error) {
	own := *job
	if own.ScrapeFallbackProtocol == "" {
		// A target with a bad Content-Type is read as text, as the Collector's receiver does.
		own.ScrapeFallbackProtocol = promconfig.PrometheusText0_0_4
	}
	if own.BodySizeLimit == 0 {
		own.BodySizeLimit = units.Base2Bytes(maxBody)
	}
	if err := errors.Join(checkFiles(&own), checkIntervals(&own)); err != nil {
		return &own, fmt.Errorf("cannot use job %q: %w", own.JobName, err)
	}
	return &own, nil
}

// sumFiles sums up the names and contents of scrape_config_files. It returns an error for those that cannot be read
// without waiting.
func (p Prometheus) sumFiles() (uint64, error) {
	var errs []error
	var sum xxhash.Digest
	sum.Reset()
	for _, pattern := range p.loaded.ScrapeConfigFiles {
		names, _ := filepath.Glob(pattern) // a bad pattern is an error of read
		for _, name := range names {
			if err := regularfile.Check(name); err != nil {
				_, _ = fmt.Fprintln(&sum, name, err)
				errs = append(errs, err)
				continue
			}
			_, _ = fmt.Fprintln(&sum, name)
			size, err := copyFile(&sum, name)
			_, _ = fmt.Fprintln(&sum, size, err)
		}
	}
	return sum.Sum64(), errors.Join(errs...)
}

// maxJobFile limits a file of scrape_config_files, in bytes. A job takes about one kilobyte.
const maxJobFile = 64 << 20

// copyFile copies a file, or as much of it as it may have and a byte.
func copyFile(to io.Writer, name string) (int64, error) {
	file, err := os.Open(name) //nolint:gosec // the configuration names it
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(to, io.LimitReader(file, maxJobFile+1))
	return size, errors.Join(err, file.Close())
}

// checkSizes finds scrape_config_files that are too large to be read.
func (p Prometheus) checkSizes() error {
	for _, pattern := range p.loaded.ScrapeConfigFiles {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			if info, err := os.Stat(name); err == nil && info.Size() > maxJobFile {
				return fmt.Errorf("%s is larger than %s", name, memlimit.Size(maxJobFile))
			}
		}
	}
	return nil
}

// checkFiles finds credentials and certificates that are not there, of scraping and of service discovery.
func checkFiles(job *promconfig.ScrapeConfig) error {
	errs := []error{checkHTTPFiles(&job.HTTPClientConfig)}
	for _, mechanism := range job.ServiceDiscoveryConfigs {
		value := reflect.Indirect(reflect.ValueOf(mechanism))
		if value.Kind() != reflect.Struct {
			continue
		}
		if field := value.FieldByName("HTTPClientConfig"); field.IsValid() {
			if client, ok := field.Interface().(commonconfig.HTTPClientConfig); ok {
				errs = append(errs, checkHTTPFiles(&client))
			}
		}
	}
	return errors.Join(errs...)
}

// checkIntervals finds service discovery that would ask without a pause: Prometheus's panics.
func checkIntervals(job *promconfig.ScrapeConfig) error {
	for _, mechanism := range job.ServiceDiscoveryConfigs {
		if asksWithoutPause(reflect.Indirect(reflect.ValueOf(mechanism))) {
			return fmt.Errorf("`refresh_interval` of %s_sd_configs must be positive", mechanism.Name())
		}
	}
	return nil
}

// asksWithoutPause reports whether a mechanism's configuration has no refresh interval. That of aws_sd_configs may have
// it in the configuration for its role.
func asksWithoutPause(of reflect.Value) bool {
	if of.Kind() != reflect.Struct {
		return false
	}
	interval := of.FieldByName("RefreshInterval")
	if !interval.IsValid() || interval.Kind() != reflect.Int64 || interval.Int() > 0 {
		return false
	}
	for i := 0; interval.Int() == 0 && i < of.NumField(); i++ {
		if held := of.Field(i); of.Type().Field(i).Anonymous && held.Kind() == reflect.Pointer && !held.IsNil() {
			return asksWithoutPause(held.Elem())
		}
	}
	return true
}

func checkHTTPFiles(cfg *commonconfig.HTTPClientConfig) error {
	files := map[string]string{
		"tls_config.cert_file": cfg.TLSConfig.CertFile,
		"tls_config.key_file":  cfg.TLSConfig.KeyFile,
	}
	if cfg.Authorization != nil {
		files["authorization.credentials_file"] = cfg.Authorization.CredentialsFile
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(files)) {
		if files[key] == "" {
			continue
		}
		if _, err := os.Stat(files[key]); err != nil {
			errs = append(errs, fmt.Errorf("cannot find `%s`: %w", key, err))
		}
	}
	return errors.Join(errs...)
}
