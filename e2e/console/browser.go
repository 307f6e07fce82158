// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package console opens the console's page in a real Chromium, as a reader does.
//
// A browser ends with its test. Errors that a page logs, and requests to any other server, fail the test that opened
// it.
package console

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Chromium names the environment variable with the browser's path, if that is not in PATH.
const Chromium = "GODWIT_CHROMIUM"

// Browsers start slowly on busy machines.
const startTimeout = 2 * time.Minute

// Browser is a headless Chromium.
type Browser struct {
	t   testing.TB
	ctx context.Context
}

// Open starts a browser, and skips the test if none is installed.
func Open(t testing.TB) *Browser {
	t.Helper()
	path := find()
	if path == "" {
		t.Skipf("no Chromium on this machine: install the package chromium, or set %s to its path", Chromium)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.WSURLReadTimeout(startTimeout),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("lang", "en-US"),
		chromedp.Flag("font-render-hinting", "none"),
		chromedp.Env("TZ=UTC"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox does not run as root, which containers often do
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx), "cannot start %s", path)
	return &Browser{t: t, ctx: ctx}
}

func find() string {
	if path := os.Getenv(Chromium); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
