// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/wait"
)

const badPage = `<!doctype html><title>bad</title>
<p style="color: #bbb; background: #fff">hardly seen</p>
<button></button><table><tr><th>a</th></tr></table><div id="twice"></div><div id="twice"></div>
<input id="field" onkeydown="if (event.key === 'x') event.preventDefault()">
<div style="width: 3000px; height: 1px">wide</div>`

func TestHarnessFindsFaults(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, badPage)
	}))
	t.Cleanup(server.Close)
	p := Open(t).Page(t, Narrow, server.URL+"/", "")

	faults := strings.Join(Eval[[]string](p, accessible), "\n")
	for _, want := range []string{"0 of h1", "0 of main", "no name: <button>", "no scope", "no caption", "twice: #twice", "contrast 1.9"} {
		assert.Contains(t, faults, want)
	}
	assert.NotEmpty(t, Eval[[]string](p, tooWide(Narrow.Width)))

	p.Do(`document.querySelector("#field").focus()`)
	p.Keys("axb" + kb.Backspace + "c")
	assert.Equal(t, "ac", Eval[string](p, `document.querySelector("#field").value`))

	// All faults are reported, once the browser has sent its events.
	p.Do(`fetch("http://127.0.0.1:9/elsewhere").catch(() => {}); setTimeout(() => { throw new Error("thrown") }); console.error("said")`)
	heard := func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		return strings.Join(p.complaints, "\n")
	}
	for _, want := range []string{"asked elsewhere: http://127.0.0.1:9/elsewhere", "thrown", "said"} {
		wait.Until(t, Patience, func() (bool, string) {
			return strings.Contains(heard(), want), "no complaint of " + want + " in " + heard()
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = nil
}
