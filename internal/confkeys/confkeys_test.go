// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package confkeys

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

type config struct {
	Endpoint string           `mapstructure:"endpoint"`
	Queue    queue            `mapstructure:"queue"`
	Rules    []rule           `mapstructure:"rules"`
	ByName   map[string]queue `mapstructure:"by_name"`
	Client   client           `mapstructure:",squash"`
}

type queue struct {
	Storage *string `mapstructure:"storage"`
}

type rule struct {
	MaxSeries int `mapstructure:"max_series"`
}

type client struct {
	Timeout string `mapstructure:"timeout"`
}

func (c *config) Unmarshal(conf *confmap.Conf) error { return Unmarshal(conf, c) }

func TestUnknownKeysComeWithTheNearest(t *testing.T) {
	for _, test := range []struct {
		keys map[string]any
		want string
	}{
		{map[string]any{"endpont": "a"}, "there is no key `endpont`: did you mean `endpoint`?"},
		{map[string]any{"timeoutt": "a", "plumage": 1}, "there is no key `plumage`; there is no key `timeoutt`: did you mean `timeout`?"},
		{map[string]any{"queue": map[string]any{"stroage": "a"}}, "in `queue` there is no key `stroage`: did you mean `storage`?"},
		{map[string]any{"rules": []any{map[string]any{"max_serie": 1}}}, "in `rules[0]` there is no key `max_serie`: did you mean `max_series`?"},
		{map[string]any{"storage": "a"}, "there is no key `storage` here: it belongs under `by_name` or `queue`"},
		{map[string]any{"queue": map[string]any{"endpoint": "a"}}, "in `queue` there is no key `endpoint` here"},
		{map[string]any{"queue": 1}, "`queue` must be a mapping, not a whole number"},
	} {
		require.ErrorContains(t, confmap.NewFromStringMap(test.keys).Unmarshal(&config{}), test.want)
	}
	var read config
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"endpoint": "a", "timeout": "1s"}).Unmarshal(&read))
	require.Equal(t, "1s", read.Client.Timeout)
}

func TestAllKeysAreKnown(t *testing.T) {
	require.Equal(t, []string{"by_name", "endpoint", "max_series", "queue", "rules", "storage", "timeout"},
		Of(reflect.TypeFor[*config](), "mapstructure"))
}
