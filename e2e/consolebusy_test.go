// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/rwserver"
	"github.com/godwit-otel/godwit/e2e/targets"
	"github.com/godwit-otel/godwit/e2e/wait"
)

const bystanders = `
extensions: {console: {endpoint: %[1]q}, health_check: {}}
receivers: {fastprometheus: {api_server: {enabled: true, server_config: {endpoint: %[1]q}}}}
service: {extensions: [health_check, console]}
`

// Components that only show something wait for a busy address; they do not keep the pipeline from starting.
func TestABusyAddressStopsNothing(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	server := rwserver.New(t, rwserver.Options{})
	good := targets.New(t, targets.Page{Body: goodPage})
	c := startCollector(t, fmt.Sprintf(scraping, server.URL(), jobs(job("good", good.Addr(), ""))), fmt.Sprintf(bystanders, busy.Addr()))
	wait.Until(t, firstSeries, func() (bool, string) { return len(server.Series("geese_flying")) > 0, "nothing is scraped" })
	c.WaitLog(firstWords, "The console is not served")
	c.WaitLog(firstWords, "The API is not served")

	require.NoError(t, busy.Close())
	c.WaitHTTP(firstWords, "http://"+busy.Addr().String()+"/", nil) // one of the two gets it: both were configured with the same address
	assert.Zero(t, c.Stop(syscall.SIGTERM, drainTime))
}
