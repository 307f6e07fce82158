// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package advice says in plain words what a reason means, and what to do about it.
package advice

import (
	"cmp"
	"slices"
	"strings"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/prose"
)

// ReasonStatus is the reason of targets that answer with an error status.
const ReasonStatus = "status"

// Failure returns the meaning of the reason why targets fail.
func Failure(reason string) string {
	if text, ok := failures[reason]; ok {
		return text
	}
	return prose.Reason(reason)
}

var failures = map[string]string{
	"body_size":    "the page is too large",
	"page_memory":  "the page would take too much memory",
	"connect":      "no connection",
	"credentials":  "credentials cannot be used",
	"dns":          "the name is not found",
	"encoding":     "the page does not decompress",
	"limit":        "beyond a limit of the job",
	"parse":        "the page cannot be read",
	"protocol":     "no proper HTTP",
	ReasonStatus:   "an HTTP error status",
	"target_limit": "too many targets",
	"timeout":      "no answer within scrape_timeout",
	"tls":          "no secure connection (TLS)",
}

// ForReason returns advice for targets that fail for a reason.
func ForReason(reason string) string {
	if next, ok := scrapes[reason]; ok {
		return next
	}
	return "Look at the last error of one of them, and at its live response."
}

// ForStatus returns advice for the status codes with which targets answer, and for no others.
func ForStatus(codes ...string) string {
	var said []string
	for _, next := range []struct{ first, last, text string }{
		{"401", "403", "401 and 403: check the job's credentials."},
		{"404", "404", "404: check metrics_path."},
		{"500", "599", "500 and above: see the target's own log."},
	} {
		if slices.ContainsFunc(codes, func(code string) bool { return next.first <= code && code <= next.last }) {
			said = append(said, next.text)
		}
	}
	return cmp.Or(strings.Join(said, " "), scrapes[ReasonStatus])
}

var scrapes = map[string]string{
	"body_size":          "Raise body_size_limit of the job, or have the target show less.",
	"page_memory":        "Raise max_page_memory of the receiver, or have the target show less.",
	"connect":            "See whether network, routes and firewalls let this host reach the targets.",
	"connection_refused": "See whether the processes behind these targets run, and listen at the port they are configured with.",
	"connection_reset":   "The other side hangs up: see its log, and whether it speaks TLS where http is configured, or the other way round.",
	"credentials":        "Check the files and settings of the job's credentials: they could not be read or used.",
	"dns":                "Check the names in the configuration, and the name server of this host.",
	"encoding":           "The page does not decompress: see what stands between, or set enable_compression to false.",
	"limit":              "The page is beyond a limit of the job (sample_limit, label limits): see what it has grown by, or raise the limit.",
	"parse":              "Look at the live response: the page is not in a format that is understood.",
	"protocol":           "The answer is not HTTP as it should be: check the port and the scheme.",
	ReasonStatus:         "401 and 403: check the job's credentials. 404: check metrics_path. 500 and above: see the target's own log.",
	"target_limit":       "There are more targets than target_limit allows: narrow down discovery, or raise it.",
	"timeout":            "Raise scrape_timeout if the targets are slow by nature, else find out what holds them up.",
	"tls":                "Check the scheme, and ca_file, server_name and the dates of the certificates.",
}

// ForLoss returns advice for data that is dropped for a reason.
func ForLoss(reason string) string {
	if next, ok := losses[reason]; ok {
		return next
	}
	return "The log says more about the first of them; its component's README explains the reason."
}

var losses = map[string]string{
	"ack_timeout":       "The destination does not acknowledge in time: see whether it is overloaded, or raise ack_timeout.",
	"corrupt":           "What was on disk cannot be read: check the disk of the storage.",
	"format":            "The destination takes no format that can express it, such as native histograms: use a newer one.",
	"histogram":         "Clients send histograms that make no sense: the last error names one of their series.",
	"labels":            "Clients send series without a name, with labels twice or with too many: the last error names one of them.",
	"max_age":           "It waited for too long: see why the destination is slow or down, or raise queue.max_age.",
	"max_elapsed_time":  "It was tried for too long: see why the destination is down, or raise retry_on_failure.max_elapsed_time.",
	"orphan_exemplar":   "Exemplars came without a sample of their series: let clients send both in one request.",
	"partial":           "The destination took a part only: its log says what it turned down.",
	"pipeline":          "A component behind the receiver refuses it for good: the last error says which and why.",
	"queue_full":        "The destination has been too slow for too long: see whether it is down; give the queue more room or a disk.",
	"refused":           "The pipeline did not take it: see whether a queue was full, or memory short, at that time.",
	"rejected":          "The destination will never take it: its answer is in the log. Samples out of order or too old are the usual cause.",
	"retries_exhausted": "It was tried for too long: see why the destination is down, or raise retry_on_failure.max_elapsed_time.",
	"shutdown":          "It was not sent before the process ended: use a storage, or more time to shut down.",
	"stream_lost":       "The streams broke, and sending again is off: see what cuts them.",
	"timestamp":         "Clients send times before 1970 or after 2262: see their clocks and units.",
	"tenant":            "It was stored for a tenant that the configuration of tenants no longer names: send it with the one before, or leave it.",
	"too_large":         "A single request is more than the destination takes: send smaller batches.",
	"unwritten":         "The destination says it wrote nothing: it may not speak the protocol that it accepts.",
}

// Throttled is advice for a destination that asks for a pause.
const Throttled = "Raise its limits, or send it less."

// ForClient returns advice for the last request that a receiver refused.
func ForClient(text string) string {
	switch {
	case text == "":
		return ""
	case strings.HasPrefix(text, "answered 400"), strings.HasPrefix(text, "answered 413"), strings.HasPrefix(text, "answered 415"):
		return Nonsense
	case strings.HasPrefix(text, "answered 429"), strings.HasPrefix(text, "answered 5"):
		return "Clients send it again: see whether a queue is full, a destination is down, or memory is short."
	}
	return "See the log of the client that it was answered to."
}

// Nonsense is advice for requests that the receiver cannot understand.
const Nonsense = "Clients do not send again what cannot be understood: see what this one sends, and with which protocol."

// ForAnswer returns advice for a destination that fails, by its last answer or the error without one.
func ForAnswer(text string) string {
	for _, known := range faults {
		if strings.Contains(text, known.text) {
			return known.next
		}
	}
	return "See whether the destination is up, and whether address, TLS and credentials are right."
}

var faults = []struct{ text, next string }{
	{"a web page answers", "Something on the way answers in the destination's place, such as a proxy that wants somebody to log in: check the exporter's endpoint and credentials."},
	{"answered 3", "Write where the destination leads to as the exporter's endpoint: redirects are not followed."},
	{"answered 401", "Check the exporter's credentials: the destination does not know them."},
	{"answered 403", "Check the exporter's credentials, and what they may do: the destination forbids it."},
	{"answered 404", "Check the path of the exporter's endpoint: there is nothing at it."},
	{"answered 429", "Raise the destination's limits, or send it less: it asks for a slower pace."},
	{"answered 4", "The destination rejects it as it is: its own log says why."},
	{"answered 5", "See the destination's own log: it answers, but has a fault of its own or of what is behind it."},
	{"connection refused", "See whether the destination runs, and listens at the port of the exporter's endpoint."},
	{"no such host", "Check the name in the exporter's endpoint, and the name server of this host."},
	{"x509:", "Check the exporter's ca_file and server_name, and the dates of the certificates."},
	{"tls:", "Check the scheme of the exporter's endpoint and its TLS settings."},
}
