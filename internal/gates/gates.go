// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package gates knows the feature gates of components that ours replace.
//
// A collector does not start with a command line that names an unregistered gate.
// So a drop-in registers those of its original, honours the ones that it
// supports, and reports that the others do nothing. If the
// original is in the same program the gates are its own.
package gates

import (
	"go.opentelemetry.io/collector/featuregate"
	"go.uber.org/zap"
)

// Gate is a feature gate of another component.
type Gate struct {
	ID    string
	Stage featuregate.Stage
	// Description is what it does here, for the list of all gates.
	Description string
	// Changed is the warning if it is not set to its default; empty for none.
	Changed string
}

// Known are the gates of a component.
type Known []Gate

// Register registers gates for the command line. Call it when a package is initialised.
func Register(all ...Gate) Known {
	for _, g := range all {
		_, _ = featuregate.GlobalRegistry().Register(g.ID, g.Stage, featuregate.WithRegisterDescription(g.Description)) // an error means that it is registered already
	}
	return all
}

// Enabled reports whether a gate is enabled.
func Enabled(id string) (enabled bool) {
	featuregate.GlobalRegistry().VisitAll(func(g *featuregate.Gate) { enabled = enabled || g.ID() == id && g.IsEnabled() })
	return enabled
}

// Warn logs a warning for each gate that was changed but has no effect.
func (k Known) Warn(log *zap.Logger) {
	for _, g := range k {
		if byDefault := g.Stage == featuregate.StageBeta || g.Stage == featuregate.StageStable; g.Changed != "" && Enabled(g.ID) != byDefault {
			log.Warn("feature gate has no effect: "+g.Changed, zap.String("gate", g.ID))
		}
	}
}
