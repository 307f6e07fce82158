// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinalityprocessor

import "github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/policy"

type (
	// Config is the configuration of the cardinality processor.
	Config = policy.Config
	// AdaptiveConfig divides the series of a group among parties.
	AdaptiveConfig = policy.AdaptiveConfig
	// AggregateConfig makes few series of many: those that are the same but for some labels become one.
	AggregateConfig = policy.AggregateConfig
	// DefaultsConfig holds for every metric beside the rules.
	DefaultsConfig = policy.DefaultsConfig
	// ExceedConfig says what becomes of points that find no room.
	ExceedConfig = policy.ExceedConfig
	// MatchConfig selects points.
	MatchConfig = policy.MatchConfig
	// MemoryConfig bounds what is remembered.
	MemoryConfig = policy.MemoryConfig
	// OverflowConfig is for all series that are made here.
	OverflowConfig = policy.OverflowConfig
	// OverrideConfig are the limits of one tenant.
	OverrideConfig = policy.OverrideConfig
	// PriorityConfig weighs parties by the value of an attribute.
	PriorityConfig = policy.PriorityConfig
	// RuleConfig limits the points it matches, in groups.
	RuleConfig = policy.RuleConfig
	// RuleOverrideConfig are the limits of a rule for one tenant.
	RuleOverrideConfig = policy.RuleOverrideConfig
	// StatisticsConfig is for what the console shows.
	StatisticsConfig = policy.StatisticsConfig
	// TenantConfig says where the tenant of a point is found.
	TenantConfig = policy.TenantConfig
)
