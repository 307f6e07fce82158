// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/internal/regularfile"
)

// maxRulesFile is far more than any readable rules.
const maxRulesFile = 4 << 20

// rulesFile is the content of a rules file. Its defaults override those of the configuration.
type rulesFile struct {
	Defaults  DefaultsConfig            `mapstructure:"defaults"`
	Exempt    []MatchConfig             `mapstructure:"exempt"`
	Overrides map[string]OverrideConfig `mapstructure:"overrides"`
	Rules     []RuleConfig              `mapstructure:"rules"`
}

// parseRules returns the configuration with the limits of a file.
func parseRules(cfg *Config, content []byte) (*Config, error) {
	raw := map[string]any{}
	if err := yaml.Unmarshal(content, &raw); err != nil {
		return nil, fmt.Errorf("cannot parse YAML: %w", err)
	}
	in := rulesFile{Defaults: cfg.Defaults}
	if err := confmap.NewFromStringMap(raw).Unmarshal(&in); err != nil {
		return nil, fmt.Errorf("cannot read rules: %w", err)
	}
	out := *cfg
	out.Defaults, out.Exempt, out.Overrides, out.Rules = in.Defaults, in.Exempt, in.Overrides, in.Rules
	return &out, out.ValidateLimits()
}

// readRules reads the whole file: it is small, and a rename or a changed link is noticed like any change.
func readRules(path string) ([]byte, error) {
	if err := regularfile.Check(path); err != nil {
		return nil, err
	}
	file, err := os.Open(path) //nolint:gosec // the path is the user's own configuration
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxRulesFile+1))
	if err == nil && len(content) > maxRulesFile {
		err = fmt.Errorf("file has more than %d bytes", maxRulesFile)
	}
	return content, errors.Join(err, file.Close())
}

// loadRules applies the rules of the file if they changed. Invalid ones change nothing.
func (p *cardinalityProcessor) loadRules() error {
	content, err := readRules(p.cfg.RulesFile)
	if err == nil {
		if p.rulesLoaded && bytes.Equal(content, p.rulesContent) {
			return p.rulesErr
		}
		var cfg *Config
		if cfg, err = parseRules(p.cfg, content); err == nil {
			p.Apply(cfg)
		}
		p.rulesLoaded, p.rulesContent = true, content
	}
	if err != nil {
		err = fmt.Errorf("cannot load `rules_file` %q: %w", p.cfg.RulesFile, err)
	}
	p.rulesErr = err
	return err
}

// pollRules checks whether the file changed, and logs changes of its state only.
func (p *cardinalityProcessor) pollRules() {
	before, generation := p.rulesErr, p.Rules.Policy.Generation
	err := p.loadRules()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		p.Rules.Failed.Add(1)
		p.Events.Add(p.Now(), "rules_failed", "", err.Error())
		p.Logger.Error("Bad rules: the old ones stay in force", zap.Error(err))
	case err == nil && (before != nil || p.Rules.Policy.Generation != generation):
		p.Logger.Info("Rules are in force", zap.String("rules_file", p.cfg.RulesFile), zap.Int("limits", len(p.Rules.Policy.Limits)))
	}
	if p.Rules.Policy.Generation != generation {
		p.Events.Add(p.Now(), "rules_applied", "", fmt.Sprintf("%d limits", len(p.Rules.Policy.Limits)))
		p.Rules.Applied.Add(1)
	}
	var fault *string
	if err != nil {
		text := err.Error()
		fault = &text
	}
	p.Rules.Fault.Store(fault)
}
