// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestALineThatRepeatsIsLoggedOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zapcore.DebugLevel)
		root := slog.New(newWithoutRepeats(zapslog.NewHandler(core)))
		files, dns := root.With("discovery", "file"), root.With("discovery", "dns")

		for i := range 12 * 90 { // an hour and a half
			files.Error("cannot watch", "path", "a", "err", fmt.Errorf("read 10.0.0.1:%d->10.0.0.2:53: refused", 4000+i))
			files.Info("looked again")
			time.Sleep(5 * time.Second)
		}
		require.Equal(t, 2, logged.FilterMessage("cannot watch").Len(), "at first, and after an hour")
		require.Equal(t, 12*90, logged.FilterMessage("looked again").Len(), "this is no fault")

		files.Error("cannot watch", "path", "b", "err", "read 10.0.0.2:53: refused")
		dns.Error("cannot watch", "path", "a", "err", "read 10.0.0.2:53: refused")
		require.Equal(t, 4, logged.FilterMessage("cannot watch").Len(), "another path, and another mechanism")

		time.Sleep(pause)
		files.Error("cannot watch", "path", "b", "err", "read 10.0.0.2:53: refused")
		require.Equal(t, 5, logged.FilterMessage("cannot watch").Len(), "it was over meanwhile")
	})
}

func TestFewLinesAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zapcore.DebugLevel)
		handler := newWithoutRepeats(zapslog.NewHandler(core)).(withoutRepeats)
		log := slog.New(handler)
		for i := range 2 * maxLines {
			log.Warn("another", "number", i)
		}
		require.Equal(t, 2*maxLines, logged.Len())
		require.Len(t, handler.said.all, maxLines)

		time.Sleep(pause)
		log.Warn("one more")
		require.Len(t, handler.said.all, 1)
	})
}
