// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// This file does what Prometheus' scrape package does, which would link a Kubernetes client.

// Found is a target as discovery names it: its own labels and those of its group.
type Found struct {
	own, group model.LabelSet
}

// Labels returns the labels before relabelling in this job.
func (f Found) Labels(job *config.ScrapeConfig) labels.Labels {
	builder := labels.NewBuilder(labels.EmptyLabels())
	f.populate(builder, job)
	return builder.Labels()
}

func (f Found) get(name model.LabelName) model.LabelValue {
	if value, ok := f.own[name]; ok {
		return value
	}
	return f.group[name]
}

// populate fills the builder with what discovery and the job say, in this order.
func (f Found) populate(builder *labels.Builder, job *config.ScrapeConfig) {
	builder.Reset(labels.EmptyLabels())
	for name, value := range f.group {
		builder.Set(string(name), string(value))
	}
	for name, value := range f.own {
		builder.Set(string(name), string(value))
	}
	setDefault := func(name, value string) {
		if builder.Get(name) == "" {
			builder.Set(name, value)
		}
	}
	setDefault(model.JobLabel, job.JobName)
	setDefault(model.ScrapeIntervalLabel, job.ScrapeInterval.String())
	setDefault(model.ScrapeTimeoutLabel, job.ScrapeTimeout.String())
	setDefault(model.MetricsPathLabel, job.MetricsPath)
	setDefault(model.SchemeLabel, job.Scheme)
	setDefault(customLabel, strconv.FormatBool(job.ConvertClassicHistogramsToNHCBEnabled()))
	setDefault(classicLabel, strconv.FormatBool(job.AlwaysScrapeClassicHistogramsEnabled()))
	setDefault(nativeLabel, strconv.FormatBool(job.ScrapeNativeHistogramsEnabled()))
	for name, values := range job.Params {
		if len(values) > 0 {
			setDefault(model.ParamLabelPrefix+name, values[0])
		}
	}
}

// errDropped means that relabelling dropped the target.
var errDropped = errors.New("dropped")

// relabel makes a populated builder's labels the target's. It returns errDropped, or what is wrong with them.
func relabelTarget(builder *labels.Builder, job *config.ScrapeConfig) (labels.Labels, error) {
	none := labels.EmptyLabels()
	if !relabel.ProcessBuilder(builder, job.RelabelConfigs...) {
		return none, errDropped
	}
	address := builder.Get(model.AddressLabel)
	if address == "" {
		return none, errors.New("no address")
	}
	if err := config.CheckTargetAddress(model.LabelValue(address)); err != nil {
		return none, err
	}
	interval, timeout, err := times(builder.Get)
	if err != nil {
		return none, err
	}
	if timeout > interval {
		return none, fmt.Errorf("scrape timeout %s is greater than scrape interval %s", timeout, interval)
	}
	for _, name := range pageLabels {
		if value := builder.Get(name); value != "" {
			if _, err := strconv.ParseBool(value); err != nil {
				return none, fmt.Errorf("cannot read %s: %w", name, err)
			}
		}
	}
	builder.Range(func(l labels.Label) {
		if strings.HasPrefix(l.Name, model.MetaLabelPrefix) {
			builder.Del(l.Name)
		}
	})
	if builder.Get(model.InstanceLabel) == "" {
		builder.Set(model.InstanceLabel, address)
	}
	final := builder.Labels()
	return final, final.Validate(func(l labels.Label) error {
		if !model.LabelValue(l.Value).IsValid() {
			return fmt.Errorf("invalid value of label %q: %q", l.Name, l.Value)
		}
		return nil
	})
}

// times returns the interval and the timeout that labels give.
func times(get func(name string) string) (interval, timeout time.Duration, err error) {
	read := func(name string) time.Duration {
		d, fault := model.ParseDuration(get(name))
		if fault == nil && d == 0 {
			fault = errors.New("must not be 0")
		}
		if fault != nil && err == nil {
			err = fmt.Errorf("cannot read %s: %w", name, fault)
		}
		return time.Duration(d)
	}
	return read(model.ScrapeIntervalLabel), read(model.ScrapeTimeoutLabel), err
}

// targetURL returns the URL that labels and the job's parameters make. A label stands for a parameter's first value.
func targetURL(final labels.Labels, job *config.ScrapeConfig) string {
	params := url.Values{}
	maps.Copy(params, job.Params)
	final.Range(func(l labels.Label) {
		name, isParam := strings.CutPrefix(l.Name, model.ParamLabelPrefix)
		if !isParam {
			return
		}
		values := []string{l.Value}
		if len(params[name]) > 1 {
			values = append(values, params[name][1:]...)
		}
		params[name] = values
	})
	u := url.URL{
		Scheme:   final.Get(model.SchemeLabel),
		Host:     final.Get(model.AddressLabel),
		Path:     final.Get(model.MetricsPathLabel),
		RawQuery: params.Encode(),
	}
	return u.String()
}
