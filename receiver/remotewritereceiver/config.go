// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewritereceiver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/godwit-otel/godwit/internal/confkeys"
	"github.com/godwit-otel/godwit/receiver/remotewritereceiver/internal/replicas"
)

// Config is the configuration of the remotewrite receiver.
type Config struct {
	// HTTP is the server: endpoint (default localhost:19291), tls, auth, timeouts, and max_request_body_size, the
	// limit on a body as received (default 20 MiB). A larger one is answered with 413.
	HTTP confighttp.ServerConfig `mapstructure:",squash"`

	// Path is the path that accepts writes. Default /api/v1/write.
	Path string `mapstructure:"path"`

	// MaxDecodedBodySize limits a body after decompression, in bytes. A larger one is answered with 413. Default 32 MiB,
	// which is Prometheus's own limit.
	MaxDecodedBodySize int `mapstructure:"max_decoded_body_size"`

	// MaxMemory limits, in bytes, the memory of all requests in flight together: an eighth of it for compressed bodies, a
	// quarter for decompressed ones, the rest for decoded metrics. A request that alone needs more is answered with 413;
	// others wait their turn, and are answered with 503 after ten seconds. Default 0, which is a quarter of the memory
	// that the process may use: the least of GOMEMLIMIT, the limits of its cgroup, and the host's.
	MaxMemory int `mapstructure:"max_memory"`

	// ScopesFromLabels turns labels otel_scope_* into instrumentation scopes, and removes them from points. Default false: they
	// are attributes of points like others.
	ScopesFromLabels bool `mapstructure:"scopes_from_labels"`

	// TargetInfo is for the series target_info.
	TargetInfo TargetInfoConfig `mapstructure:"target_info"`

	// Replicas is for data that several replicas of one Prometheus send.
	Replicas ReplicasConfig `mapstructure:"replicas"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// ReplicasConfig is for Prometheus servers that scrape and send the same, so that one may fail: the data of one is
// accepted, as Mimir does.
type ReplicasConfig struct {
	// Deduplicate accepts the data of one replica of each cluster. Default false: all data is accepted.
	Deduplicate bool `mapstructure:"deduplicate"`
	// ClusterLabel and ReplicaLabel identify the sender of a series; the second is removed from it. Series without one of them are
	// accepted unchanged. Default cluster and __replica__.
	ClusterLabel string `mapstructure:"cluster_label"`
	ReplicaLabel string `mapstructure:"replica_label"`
	// FailoverTimeout is how long the elected replica must be silent before another one is elected. Default 30s.
	FailoverTimeout time.Duration `mapstructure:"failover_timeout"`
	// MaxClusters limits the clusters of all tenants together. Series of further ones are refused with 400. Default 1000.
	MaxClusters int `mapstructure:"max_clusters"`
	// TenantHeader is the request header that names the tenant: clusters of the same name in different tenants are different.
	// Default X-Scope-OrgID.
	TenantHeader string `mapstructure:"tenant_header"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func (c *ReplicasConfig) rules() *replicas.Rules {
	return &replicas.Rules{ClusterLabel: c.ClusterLabel, ReplicaLabel: c.ReplicaLabel, Failover: c.FailoverTimeout, MaxClusters: c.MaxClusters}
}

func (c *ReplicasConfig) validate() error {
	if !c.Deduplicate {
		return nil
	}
	var errs []error
	check := func(key, label string) {
		switch label {
		case "":
			errs = append(errs, fmt.Errorf("`replicas.%s` must be the name of a label", key))
		case labelName, labelJob, labelInstance:
			errs = append(errs, fmt.Errorf("`replicas.%s` must not be %s, which is of the target: choose one that the sender adds", key, label))
		}
	}
	check("cluster_label", c.ClusterLabel)
	check("replica_label", c.ReplicaLabel)
	if c.ClusterLabel == c.ReplicaLabel && c.ClusterLabel != "" {
		errs = append(errs, fmt.Errorf("`replicas.cluster_label` and `replicas.replica_label` must differ, both are %s", c.ClusterLabel))
	}
	if c.FailoverTimeout <= 0 {
		errs = append(errs, fmt.Errorf("`replicas.failover_timeout` must be positive, got %s", c.FailoverTimeout))
	}
	if c.MaxClusters <= 0 {
		errs = append(errs, fmt.Errorf("`replicas.max_clusters` must be positive, got %d", c.MaxClusters))
	}
	return errors.Join(errs...)
}

// minMemory is the least that can be configured: enough for requests of a few thousand samples.
const minMemory = 16 << 20

// Unmarshal reports unknown keys with suggestions.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return confkeys.Unmarshal(conf, c) }

// Validate reports all faults of the configuration.
func (c *Config) Validate() error {
	var errs []error
	if c.HTTP.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("`endpoint` must be set, for example to localhost:19291"))
	}
	if len(c.HTTP.CompressionAlgorithms) > 0 {
		errs = append(errs, errors.New("`compression_algorithms` must not be set: the protocol says which there are"))
	}
	if !strings.HasPrefix(c.Path, "/") {
		errs = append(errs, fmt.Errorf("`path` must begin with a slash, got %q", c.Path))
	}
	if c.MaxDecodedBodySize <= 0 {
		errs = append(errs, fmt.Errorf("`max_decoded_body_size` must be positive, got %d", c.MaxDecodedBodySize))
	}
	if c.MaxMemory != 0 && c.MaxMemory < minMemory {
		errs = append(errs, fmt.Errorf("`max_memory` must be 0 or at least %d, got %d", minMemory, c.MaxMemory))
	}
	errs = append(errs, c.Replicas.validate(), c.TargetInfo.validate())
	return errors.Join(errs...)
}
