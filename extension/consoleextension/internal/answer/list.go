// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"encoding/csv"
	"strconv"
	"strings"
)

// MaxRows is the maximum number of rows in one answer.
const MaxRows = 1000

// List returns list, or an empty one for nil, so that JSON never contains null.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Table returns rows as CSV. No cell is a formula.
func Table(name string, rows [][]string) (*File, error) {
	var out strings.Builder
	w := csv.NewWriter(&out)
	for _, row := range rows {
		for i, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				if _, err := strconv.ParseFloat(cell, 64); err != nil {
					row[i] = "'" + cell
				}
			}
		}
		_ = w.Write(row) // Error returns it
	}
	w.Flush()
	return &File{"text/csv; charset=utf-8", name + ".csv", []byte(out.String())}, w.Error()
}

// Decimal formats a number for a cell.
func Decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
