// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package console looks at the console's page in a real Chromium, as a reader does.
//
// A browser belongs to its test and is gone with it. Whatever a page complains about,
// and whatever it asks of others than its own server, fails the test that opened it.
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

// Chromium names the environment variable that says where the browser is when it is
// not on the path.
const Chromium = "GODWIT_CHROMIUM"

// Browsers start slowly on machines that have other work.
const startTimeout = 2 * time.Minute

// Browser is a Chromium without a window.
type Browser struct {
	t   testing.TB
	ctx context.Context
}

// Open starts a browser, and skips the test where none is installed.
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
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses root, which containers run as
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
