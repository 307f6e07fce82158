// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger returns a logger whose messages and texts, errors included, are without the secrets that Text recognises.
func Logger(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return cleaning{core} }))
}

type cleaning struct{ zapcore.Core }

func (c cleaning) With(fields []zapcore.Field) zapcore.Core {
	return cleaning{c.Core.With(cleanFields(fields))}
}

// Check asks the core, which may sample, and has what it wants to write written without secrets.
func (c cleaning) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if wanted := c.Core.Check(entry, nil); wanted != nil {
		return to.AddCore(entry, writing{c, wanted})
	}
	return to
}

func (c cleaning) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	entry.Message = Text(entry.Message)
	return c.Core.Write(entry, cleanFields(fields))
}

// writing is the core for one entry.
type writing struct {
	cleaning

	wanted *zapcore.CheckedEntry
}

func (w writing) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	entry.Message = Text(entry.Message)
	w.wanted.Entry = entry // with its caller and stack
	w.wanted.Write(cleanFields(fields)...)
	return nil
}

// cleanFields returns fields without secrets: those given, if they have none.
func cleanFields(fields []zapcore.Field) []zapcore.Field {
	copied := false
	for i := range fields {
		clean, changed := cleanField(fields[i])
		if !changed {
			continue
		}
		if !copied {
			fields, copied = slices.Clone(fields), true
		}
		fields[i] = clean
	}
	return fields
}

func cleanField(f zapcore.Field) (clean zapcore.Field, changed bool) {
	var text string
	switch value := f.Interface.(type) {
	case error:
		if f.Type != zapcore.ErrorType {
			return f, false
		}
		clean := Error(value)
		changed = errors.As(clean, new(*cleaned))
		return zap.NamedError(f.Key, clean), changed
	case fmt.Stringer:
		if f.Type != zapcore.StringerType {
			return f, false
		}
		text = fmt.Sprint(value) // which survives a nil
	case []byte:
		if f.Type != zapcore.ByteStringType {
			return f, false
		}
		text = string(value)
	default:
		if f.Type != zapcore.StringType {
			return f, false
		}
		text = f.String
	}
	if value := Text(text); value != text {
		return zap.String(f.Key, value), true
	}
	return f, false
}
