// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/stretchr/testify/assert"

	"github.com/godwit-otel/godwit/e2e/repository"
)

// axeFile is where npm installs axe-core, which is a development dependency of the page.
const axeFile = "node_modules/axe-core/axe.min.js"

// axe is the text of axe-core, or why it is not available.
var axe struct {
	once sync.Once
	text string
	err  error
}

func loadAxe(root string) (string, error) {
	web := filepath.Join(root, "extension", "consoleextension", "web")
	if _, err := os.Stat(filepath.Join(web, axeFile)); err != nil {
		install := exec.Command("npm", "ci", "--silent")
		install.Dir = web
		if out, err := install.CombinedOutput(); err != nil {
			return "", fmt.Errorf("cannot install axe-core: %w: %s", err, out)
		}
	}
	text, err := os.ReadFile(filepath.Join(web, axeFile))
	return string(text), err
}

// Axe checks the page with all rules of axe-core. If neither axe-core nor npm is available, it logs that.
func (p *Page) Axe() {
	p.t.Helper()
	root := repository.Root(p.t)
	axe.once.Do(func() { axe.text, axe.err = loadAxe(root) })
	if axe.err != nil {
		p.t.Logf("axe-core does not look at this page: %v", axe.err)
		return
	}
	p.Do(axe.text)
	assert.Empty(p.t, Await[[]string](p, violations), "axe-core")
}

// The check is repeated if the page was reloading meanwhile: then its content is drawn paler.
const violations = `(async () => {
	const view = document.querySelector("#view");
	for (;;) {
		while (view?.hasAttribute("aria-busy")) await new Promise(done => setTimeout(done, 50));
		let busy = false;
		const watch = new MutationObserver(() => busy = true);
		if (view) watch.observe(view, {attributes: true, attributeFilter: ["aria-busy"]});
		const found = await axe.run(document, {resultTypes: ["violations"]});
		watch.disconnect();
		if (!busy) return found.violations;
	}
})().then(all =>
	all.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " (" + (n.failureSummary ?? "").replaceAll("\n", " ") + ")").join("; ")))`
