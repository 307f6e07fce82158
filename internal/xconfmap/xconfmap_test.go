// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package xconfmap

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

type config struct {
	Inner inner `mapstructure:"inner"`
}

type inner struct {
	Name secret `mapstructure:"name"`
}

func (*inner) Validate() error { return errors.New("no") }

func (i *inner) Unmarshal(conf *confmap.Conf) error {
	type plain inner
	if err := conf.Unmarshal((*plain)(i)); err != nil {
		return err
	}
	i.Name += " read"
	return nil
}

type secret string

func TestValidatesWhatIsInside(t *testing.T) {
	assert.ErrorContains(t, Validate(&config{}), "inner: no")
}

// An inner configuration is read by its own method if that is forced.
func TestForcesUnmarshalers(t *testing.T) {
	var i inner
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"name": "x"}).Unmarshal(&i, WithForceUnmarshaler()))
	assert.Equal(t, secret("x read"), i.Name)
}

func TestWritesValues(t *testing.T) {
	conf := confmap.New()
	require.NoError(t, conf.Marshal(&config{inner{"x"}}, WithUnredacted()))
	assert.Equal(t, map[string]any{"inner": map[string]any{"name": secret("x")}}, ToStringMapRaw(conf))
}
