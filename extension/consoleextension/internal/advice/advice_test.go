// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatToDoAboutClients(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"answered 400 to 10.0.0.7: cannot decompress": Nonsense,
		"answered 503 to 10.0.0.7: no room":           "Clients send it again",
		"answered 429 to 10.0.0.7: slow down":         "Clients send it again",
		"answered 401 to 10.0.0.7: who are you":       "See the log of the client",
	} {
		require.Contains(t, ForClient(text), want, text)
		require.Equal(t, text == "", ForClient(text) == "")
	}
}

func TestAdviceIsAboutTheStatusesThatThereAre(t *testing.T) {
	require.Equal(t, "500 and above: see the target's own log.", ForStatus("503"))
	require.Equal(t, "401 and 403: check the job's credentials. 404: check metrics_path.", ForStatus("403", "404", "429"))
	require.Equal(t, ForReason(ReasonStatus), ForStatus("429"))
}

// An error of a proxy gets its own advice: its page is no error of the destination.
func TestWhatToDoAboutWhatStandsBetween(t *testing.T) {
	require.Contains(t, ForAnswer("answered 502: 200 OK: a web page answers, and no server of remote write"), "proxy that wants somebody to log in")
	require.Contains(t, ForAnswer("answered 302: Found"), "redirects are not followed")
	require.Contains(t, ForAnswer("answered 502: bad gateway"), "the destination's own log")
}
