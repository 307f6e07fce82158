// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package sink

// CountOTLP returns the account of an ExportMetricsServiceRequest, for a sender that needs to know what should arrive.
func CountOTLP(message []byte) (Stats, error) {
	e := newEntry(len(message))
	err := otlp(message, e)
	return e.stats, err
}

// CountRemoteWrite returns that of a remote write request, 2.0 or 1.0.
func CountRemoteWrite(second bool, message []byte) (Stats, error) {
	e, account := newEntry(len(message)), remoteWrite1
	if second {
		account = remoteWrite2
	}
	err := account(message, e)
	return e.stats, err
}
