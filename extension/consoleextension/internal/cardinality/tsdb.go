// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"net/http"

	"github.com/godwit-otel/godwit/extension/consoleextension/internal/answer"
)

// A statusTeller returns an answer like Prometheus' status/tsdb, in JSON.
type statusTeller interface {
	TSDBStatus(limit int) ([]byte, error)
}

// TSDB answers as Prometheus does, with data of a single moment.
func (v *View) TSDB(r *http.Request) (any, error) {
	s, err := v.processor(r)
	if err != nil {
		return nil, err
	}
	n, err := answer.Whole(r, "topN", 10, 1, answer.MaxRows)
	if err != nil {
		return nil, err
	}
	if n, err = answer.Whole(r, "limit", n, 1, answer.MaxRows); err != nil {
		return nil, err
	}
	teller, ok := s.Cardinality.(statusTeller)
	if !ok {
		return nil, answer.NotFound("%s does not answer as Prometheus does", s.Name())
	}
	data, err := teller.TSDBStatus(n)
	if err != nil {
		return nil, err
	}
	return answer.JSON(data), nil
}
