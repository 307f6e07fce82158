// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const description = "openapi.json"

// pathTo returns the path, in the API description, of the schema of a 200 response.
func pathTo(method, path string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace
	return fmt.Sprintf("%s#/paths/%s/%s/responses/200/content/%s/schema", description, escape(path), method, escape("application/json"))
}

// The responses of a running agent that has a problem in every view match the API description that it serves.
func TestConsoleAnswersAsItDescribes(t *testing.T) {
	t.Parallel()
	a := startConsoleAgent(t)
	a.destination.Always(rwserver.Step{Status: 400})
	api := a.home + "api/v1/"
	var described any
	require.NoError(t, yaml.Unmarshal(ask(t, api+"openapi.yaml"), &described))
	text, err := json.Marshal(described) // through JSON, for its types of numbers and times
	require.NoError(t, err)
	described, err = jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource(description, described))

	ids := map[string]string{} // by method: get uses a failing target, post a healthy one
	wait.Until(t, firstSeries, func() (bool, string) {
		for method, query := range map[string]string{"get": "state=failing&job=ill", "post": "state=healthy"} {
			var list struct {
				Targets []struct {
					ID string `json:"id"`
				} `json:"targets"`
			}
			require.NoError(t, json.Unmarshal(ask(t, api+"targets?"+query), &list))
			for _, target := range list.Targets {
				ids[method] = target.ID
			}
		}
		overview, delivery := string(ask(t, api+"overview")), string(ask(t, api+"delivery"))
		return len(ids) == 2 && strings.Contains(overview, "flocks") && strings.Contains(delivery, `"dropping"`), overview + delivery
	})
	queries := map[string]string{"cardinality/metric": "?name=sightings", "cardinality/whatif": "?drop=ring_id"}
	bodies := map[string]string{"live": `{"node": "processor/cardinality"}`, "relabel": `{"labels":[{"name":"a","value":"b"}],"rules":"- {source_labels: [a], target_label: c}\n- {action: drop}"}`}
	for path, methods := range described.(map[string]any)["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			name := strings.TrimPrefix(path, "/api/v1/")
			address := api + strings.ReplaceAll(name, "{id}", ids[method]) + queries[name]
			var got any
			if method == "post" {
				body := bodies[name]
				if body == "" {
					body = "{}"
				}
				got = post(t, address, body)
			} else if got, err = jsonschema.UnmarshalJSON(bytes.NewReader(ask(t, address))); err != nil {
				require.NoError(t, err, address)
			}
			schema, err := compiler.Compile(pathTo(method, path))
			require.NoError(t, err, path)
			assert.NoError(t, schema.Validate(got), "%s: %v", address, got)
		}
	}
	schema, err := compiler.Compile(pathTo("get", "/api/v1/overview"))
	require.NoError(t, err)
	assert.Error(t, schema.Validate(map[string]any{"health": "fine"}), "it would tell")
}

func post(t *testing.T, url, body string) any {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", url, data)
	got, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return got
}
