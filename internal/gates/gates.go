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

// Gate is one of another component's.
type Gate struct {
	ID    string
	Stage featuregate.Stage
	// Description says what it does here, in the list of all gates.
	Description string
	// Changed is what to say where somebody has set it to other than its default; empty where there is nothing to say.
	Changed string
}

// Known are the gates of a component.
type Known []Gate

// Register makes gates known to the command line. Call it when a package is initialised.
func Register(all ...Gate) Known {
	for _, g := range all {
		_, _ = featuregate.GlobalRegistry().Register(g.ID, g.Stage, featuregate.WithRegisterDescription(g.Description)) // else it is there
	}
	return all
}

// Enabled reports whether a gate is.
func Enabled(id string) (enabled bool) {
	featuregate.GlobalRegistry().VisitAll(func(g *featuregate.Gate) { enabled = enabled || g.ID() == id && g.IsEnabled() })
	return enabled
}

// Warn says which gates that somebody has set do nothing.
func (k Known) Warn(log *zap.Logger) {
	for _, g := range k {
		if byDefault := g.Stage == featuregate.StageBeta || g.Stage == featuregate.StageStable; g.Changed != "" && Enabled(g.ID) != byDefault {
			log.Warn("feature gate has no effect: "+g.Changed, zap.String("gate", g.ID))
		}
	}
}
