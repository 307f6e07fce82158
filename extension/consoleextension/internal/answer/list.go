// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"encoding/csv"
	"strconv"
	"strings"
)

// MaxRows is how many rows of a list one may ask for.
const MaxRows = 1000

// List is the list, never nil: in JSON it is a list, too, if it is empty.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Table is a list as CSV. No cell of it is a formula.
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
		_ = w.Write(row) // Error has it
	}
	w.Flush()
	return &File{"text/csv; charset=utf-8", name + ".csv", []byte(out.String())}, w.Error()
}

// Decimal is a number in a cell.
func Decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
