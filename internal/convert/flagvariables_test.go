// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A flag whose value is in an environment variable: the result has the variable in the collector's form, or the report
// names the flag. Nothing is taken for a text with a percent sign.
func TestFlagsInVariables(t *testing.T) {
	const url, aggregate = "-remoteWrite.url=http://a", "[{interval: 1m, without: [a], outputs: [total]}]"
	f := func(flag string, beside ...string) {
		t.Helper()
		run := func(args ...string) (config, named string) {
			result := runVMAgent(t, map[string]string{"aggregate.yml": aggregate}, Source{Files: []string{"aggregate.yml"}, Args: slices.Concat([]string{url}, args, beside)})
			for _, finding := range result.Report.Findings {
				if strings.Contains(finding.String(), flag) {
					named += finding.String() + "\n"
				}
			}
			return string(result.Config), named
		}
		without, _ := run()
		config, named := run("-" + flag + "=%{VALUE}")
		assert.NotContains(t, config, "%{", flag)
		if config == without {
			assert.NotEmpty(t, named, "%s is lost without a word", flag)
		} else {
			assert.Contains(t, config, "${env:VALUE}", flag)
		}
	}
	for flag := range strings.FieldsSeq(`
		httpListenAddr loggerLevel loggerFormat enableMetadata promscrape.config promscrape.cluster.memberLabel promscrape.cluster.membersCount
		promscrape.seriesLimitPerTarget promscrape.noStaleMarkers promscrape.disableCompression promscrape.maxScrapeSize
		remoteWrite.relabelConfig remoteWrite.urlRelabelConfig remoteWrite.tmpDataPath remoteWrite.maxDiskUsagePerURL
		remoteWrite.disableOnDiskQueue remoteWrite.dropSamplesOnOverload remoteWrite.queues remoteWrite.rateLimit remoteWrite.flushInterval
		remoteWrite.maxRowsPerBlock remoteWrite.maxBlockSize remoteWrite.sendTimeout remoteWrite.retryMinInterval remoteWrite.retryMaxInterval
		remoteWrite.retryMaxTime remoteWrite.forcePromProto remoteWrite.forceVMProto remoteWrite.disableMetadata remoteWrite.maxHourlySeries
		remoteWrite.maxDailySeries remoteWrite.significantFigures remoteWrite.proxyURL remoteWrite.tlsCAFile remoteWrite.tlsServerName
		remoteWrite.tlsInsecureSkipVerify remoteWrite.headers remoteWrite.basicAuth.username remoteWrite.bearerToken remoteWrite.bearerTokenFile
		remoteWrite.aws.useSigv4 remoteWrite.streamAggr.config streamAggr.config`) {
		f(flag)
	}
	f("remoteWrite.label=a", "-remoteWrite.label=a=b")
	for _, flag := range []string{"region", "roleARN", "service"} {
		f("remoteWrite.aws."+flag, "-remoteWrite.aws.useSigv4")
	}
	for _, flag := range []string{"clientID", "clientSecret", "clientSecretFile", "tokenUrl", "scopes"} {
		f("remoteWrite.oauth2."+flag, "-remoteWrite.oauth2.clientID=a", "-remoteWrite.oauth2.tokenUrl=http://b", "-remoteWrite.oauth2.scopes=c")
	}
	f("remoteWrite.shardByURL", "-remoteWrite.url=http://b")
	for _, flag := range []string{"Replicas", ".labels", ".ignoreLabels"} {
		f("remoteWrite.shardByURL"+flag, "-remoteWrite.url=http://b", "-remoteWrite.shardByURL")
	}
	for _, flag := range []string{"keepInput", "dropInput", "dropInputLabels"} {
		f("streamAggr."+flag, "-streamAggr.config=aggregate.yml")
	}
	f("streamAggr.dedupInterval")
}

// Values of flags within other values.
func TestPartsOfFlagsInVariables(t *testing.T) {
	config := string(runVMAgent(t, nil, Source{Args: []string{
		"-remoteWrite.url=http://a", "-httpListenAddr=:%{PORT:-8429}", "-remoteWrite.tmpDataPath=/data/%{NAME}/$x",
		"-remoteWrite.oauth2.clientID=a", "-remoteWrite.oauth2.tokenUrl=http://b", `-remoteWrite.oauth2.endpointParams={"a": "%{B}$c"}`,
	}}).Config)
	assert.Contains(t, config, "endpoint: 0.0.0.0:${env:PORT:-8429}\n")
	assert.Contains(t, config, "directory: /data/${env:NAME}/$$x\n")
	assert.Contains(t, config, "a: ['${env:B}$$c']\n")
}
