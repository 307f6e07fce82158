// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godwit-otel/godwit/e2e/repository"
	"github.com/godwit-otel/godwit/e2e/wait"
)

// The longest time of one action on a page, and until a page reaches an expected state.
const (
	lookTimeout = 2 * time.Minute
	Patience    = 2 * time.Minute
)

// Look is a screen size and a theme.
type Look struct {
	Width, Height int
	Dark          bool
}

// Wide and Narrow are the screens of a desktop and of a phone.
var (
	Wide   = Look{Width: 1440, Height: 900}
	Narrow = Look{Width: 400, Height: 800}
)

// Page is a tab.
type Page struct {
	t    testing.TB
	ctx  context.Context
	look Look
	home string

	mu         sync.Mutex
	complaints []string // guarded by mu
	forgiven   bool     // guarded by mu
}

// Page opens a tab, with its own storage, at a view of the console. home must end in a slash; hash names the view.
func (b *Browser) Page(t testing.TB, look Look, home, hash string) *Page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &Page{t: t, ctx: ctx, look: look, home: home}
	require.NoError(t, chromedp.Listen(ctx, p.hear))
	scheme := "light"
	if look.Dark {
		scheme = "dark"
	}
	call(p, cdplog.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme},
		{Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	p.do(chromedp.EmulateViewport(int64(look.Width), int64(look.Height)), chromedp.Navigate(home+hash))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		assert.Empty(t, p.complaints, "the page complains")
	})
	return p
}

// hear records errors and foreign requests of the page. It must not call the browser.
func (p *Page) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.complain(fmt.Sprintf("exception: %s %s", e.ExceptionDetails.Text, describe(e.ExceptionDetails.Exception)))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.complain("console: " + describe(e.Args...))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Source == cdplog.EntrySourceSecurity {
			p.complain(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || !strings.HasPrefix(e.Request.URL, p.home) && u.Scheme != "about" {
			p.complain("asked elsewhere: " + e.Request.URL)
		}
	}
}

func (p *Page) complain(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forgiven && strings.Contains(what, "net::ERR_") || p.forgiven && strings.Contains(what, "Failed to load resource") {
		return
	}
	p.complaints = append(p.complaints, what)
}

// Forgive allows failing requests from now on, because the test causes them.
func (p *Page) Forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgiven = true
}

func (p *Page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, lookTimeout)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, actions...))
}

func run[T any](p *Page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, lookTimeout)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	require.NoError(p.t, err)
	return result
}

func call[P, R any](p *Page, command cdp.Command[P, R], params P) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, lookTimeout)
	defer cancel()
	_, err := chromedp.Call(ctx, command, params)
	require.NoError(p.t, err)
}

func describe(objects ...*runtime.RemoteObject) string {
	var words []string
	for _, o := range objects {
		if o != nil {
			words = append(words, o.Description, string(o.Value))
		}
	}
	return strings.Join(words, " ")
}

// Eval evaluates a JavaScript expression in the page.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](expression))
}

// Do evaluates an expression for its side effects.
func (p *Page) Do(expression string) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](expression))
}

// Text returns the visible text of the first element that matches a selector, "" if there is none.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return Eval[string](p, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// Count returns the number of elements that match a selector.
func (p *Page) Count(selector string) int {
	p.t.Helper()
	return Eval[int](p, fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

// Reads waits until an element contains each of the texts, however its lines are broken.
func (p *Page) Reads(selector string, texts ...string) {
	p.t.Helper()
	wait.Until(p.t, Patience, func() (bool, string) {
		text := strings.Join(strings.Fields(p.Text(selector)), " ")
		for _, want := range texts {
			if !strings.Contains(text, want) {
				return false, fmt.Sprintf("%s does not read %q but %q", selector, want, text)
			}
		}
		return true, ""
	})
}

// Holds waits until an expression is true.
func (p *Page) Holds(expression string) {
	p.t.Helper()
	wait.Until(p.t, Patience, func() (bool, string) {
		return Eval[bool](p, "!!("+expression+")"), expression + " does not hold at " + Eval[string](p, "location.hash") + " in " + p.Text("body")
	})
}

// Go opens another view, as a link would.
func (p *Page) Go(hash string) {
	p.t.Helper()
	p.Do(fmt.Sprintf("location.hash = %q", hash))
}

// Click clicks the first element that matches.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// Keys types into the focused element. Each key is pressed in a single event, as on a keyboard: a page that handles it
// as a shortcut prevents the letter from being typed.
func (p *Page) Keys(keys string) {
	p.t.Helper()
	for _, r := range keys {
		key, ok := kb.Keys[r]
		require.True(p.t, ok, "no key writes %q", r)
		event := input.DispatchKeyEventParams{
			Type: input.DispatchKeyEventTypeRawKeyDown, Code: key.Code, Key: key.Key,
			NativeVirtualKeyCode: key.Native, WindowsVirtualKeyCode: key.Windows,
		}
		if key.Print {
			event.Type, event.Text, event.UnmodifiedText = input.DispatchKeyEventTypeKeyDown, key.Text, key.Unmodified
		}
		call(p, input.DispatchKeyEvent, event)
		event.Type, event.Text, event.UnmodifiedText = input.DispatchKeyEventTypeKeyUp, "", ""
		call(p, input.DispatchKeyEvent, event)
	}
}

// Tab moves the focus to the next element and returns its name.
func (p *Page) Tab() string {
	p.t.Helper()
	p.Keys(kb.Tab)
	return p.Focused()
}

// Focused returns the name of the focused element.
func (p *Page) Focused() string {
	p.t.Helper()
	return Eval[string](p, "(e => e.getAttribute('aria-label') ?? (e.tabIndex < 0 ? e.id : e.closest('label')?.querySelector('span')?.innerText || e.innerText?.trim() || e.id || e.nodeName))(document.activeElement)")
}

// Fill puts a text into a field, with the events of typing.
func (p *Page) Fill(selector, text string) {
	p.t.Helper()
	p.Do(fmt.Sprintf(
		`(e => { e.focus(); e.value = %q; e.dispatchEvent(new InputEvent("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); e.blur() })(document.querySelector(%q))`,
		text, selector,
	))
}

// Fits checks that nothing is wider than the screen.
func (p *Page) Fits() {
	p.t.Helper()
	assert.Empty(p.t, Eval[[]string](p, tooWide(p.look.Width)), "wider than the screen")
}

// An emulated innerWidth grows with a page that is too wide, so the width of the screen comes from the look.
func tooWide(width int) string {
	return fmt.Sprintf(`(width => document.documentElement.scrollWidth <= width ? [] : [document.documentElement.scrollWidth + " px of " + width,
	...[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > width + 1 && !e.closest(".scroll, nav, pre, .unseen"))
	.slice(0, 5).map(e => e.tagName + "." + e.getAttribute("class") + ": " + (e.textContent ?? "").slice(0, 60))])(%d)`, width)
}

// Picture saves a screenshot of the whole page with the results of the tests.
func (p *Page) Picture(name string) {
	p.t.Helper()
	p.Do("scrollTo(0, 0)") // sticky elements stay at the top
	p.keep(name, run(p, chromedp.FullScreenshot(100)))
}

// Screen saves a screenshot of the visible part.
func (p *Page) Screen(name string) {
	p.t.Helper()
	p.keep(name, run(p, chromedp.CaptureScreenshot()))
}

func (p *Page) keep(name string, png []byte) {
	p.t.Helper()
	dir := filepath.Join(repository.Root(p.t), "bin", "tests", "console")
	require.NoError(p.t, os.MkdirAll(dir, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600))
}

// Collect collects the page's garbage, so that only live memory is measured.
func (p *Page) Collect() {
	p.t.Helper()
	call(p, heapprofiler.CollectGarbage, cdp.Empty{})
}

// Await returns the result of a promise.
func Await[T any](p *Page, expression string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}
