// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package fastprometheusreceiver

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/common/promslog"
	promconfig "github.com/prometheus/prometheus/config"
)

// failureLogs are the open files of scrape_failure_log_file, by path. Jobs may share one. Each change of the
// configuration opens them again, so that log rotation may move them away.
type failureLogs map[string]*os.File

// logger returns the one for the job, nil if it has none.
func (l failureLogs) logger(cfg *promconfig.ScrapeConfig) (*slog.Logger, error) {
	path := cfg.ScrapeFailureLogFile
	if path == "" {
		return nil, nil
	}
	file := l[path]
	if file == nil {
		var err error
		file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666) //nolint:gosec // for who may read it, the umask
		if err != nil {
			return nil, fmt.Errorf("cannot open `scrape_failure_log_file`: %w", err)
		}
		l[path] = file
	}
	format := promslog.NewFormat()
	if err := format.Set("json"); err != nil {
		return nil, err
	}
	return promslog.New(&promslog.Config{Format: format, Writer: file}).With("job_name", cfg.JobName), nil
}

func (l failureLogs) close() error {
	var errs []error
	for _, file := range l {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
