# `make help` lists the verbs. Each verb of Makefile.Common fans out to all modules.

ROOT  := $(CURDIR)
TOOLS := $(ROOT)/.tools
GO    ?= go
export PATH := $(TOOLS):$(PATH)
# Build with the machine's Go toolchain: make downloads none.
export GOTOOLCHAIN ?= local
# Tools, distributions and linted packages are built with the same settings, so that they share the build cache.
export CGO_ENABLED := 0

DISTRIBUTIONS := godwit godwit-agent godwit-gateway
manifest = $(if $(filter godwit,$1),builder-config.yaml,distributions/$1/manifest.yaml)

# Modules with our code: those of the workspace, without the root (documentation) and those that ocb generates.
MODULES := $(filter-out distributions/% .,$(patsubst ./%,%,$(shell sed -n 's/^\t\(\.[^ ]*\)$$/\1/p' go.work)))
# Replacements of others' modules, only for the agent (docs/design/025 and 065). In the workspace they would replace them
# everywhere, so they and the agent's module are outside of it.
REPLACEMENTS := internal/httpsnoop internal/kubernetes/api internal/kubernetes/apimachinery internal/kubernetes/client-go
# Modules outside the workspace, so that their dependencies do not change the versions of ours. Two of them, and the
# replacements above, have code to test.
APART   := benchmarks benchmarks/rivals/prometheus e2e/oldcollector internal/tools internal/tools/ci internal/tools/lint packaging $(REPLACEMENTS)
ALL     := $(MODULES) benchmarks packaging $(REPLACEMENTS)

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

##@ Use

.PHONY: run
run: bin/godwit-agent ## Build and start the agent on its own config; ctrl-C drains and stops it
	@mkdir -p run/targets
	@echo "Targets: drop file_sd files (*.yaml, *.yml, *.json) into run/targets/."
	@GODWIT_TARGETS=run/targets GODWIT_DATA=run/data exec bin/godwit-agent --config distributions/godwit-agent/config.yaml

.PHONY: build
build: $(DISTRIBUTIONS:%=bin/%) ## Build the three distributions into bin/ (DISCOVERY="dns" links that service discovery only, beside file, http and static)

##@ Check

CHECKS := check-versions check-headers check-words check-workflows check-changelog check-generate check-tidy

.PHONY: test
test: tools ## Run everything CI runs: unit and end-to-end tests, lint, generated files, docs
	@rm -rf bin/tests
	@$(MAKE) --no-print-directory unit lint e2e $(CHECKS) || { internal/tools/failed-tests.sh bin/tests; exit 1; }
	@$(MAKE) --no-print-directory count

.PHONY: check
check: lint $(CHECKS) ## Run the checks that are not tests

.PHONY: unit
unit: $(patsubst %,test/%,$(filter-out e2e,$(ALL))) ## Run the tests of every module, each on its own

.PHONY: e2e
e2e: build bin/packaging .tools/.ci test/e2e ## Run the built binaries as processes and test them from outside

.PHONY: e2e-prometheus
e2e-prometheus: bin/godwit-agent ## Build a Prometheus server, send to it and check what arrived (PROMETHEUS=path takes another, VICTORIAMETRICS=path adds one)
	@$(if $(PROMETHEUS),,$(MAKE) --no-print-directory -C benchmarks $(ROOT)/bin/rivals/prometheus)
	@cd e2e && PROMETHEUS=$(abspath $(or $(PROMETHEUS),bin/rivals/prometheus)) GOWORK=off $(GO) test -run 'Prometheus$$|VictoriaMetrics$$' -count 1 -v .

.PHONY: e2e-kubernetes
e2e-kubernetes: build ## Build kube-apiserver, the operator and its target allocator once (etcd is Debian's), and discover, elect and allocate there (CHART=folder renders our values with helm)
	@$(MAKE) --no-print-directory -C benchmarks $(ROOT)/bin/rivals/kube-apiserver $(ROOT)/bin/rivals/target-allocator $(ROOT)/bin/rivals/operator-manager $(if $(CHART),$(ROOT)/bin/rivals/helm)
	@cd e2e && GODWIT_KUBERNETES=1 CHART=$(if $(CHART),$(abspath $(CHART))) GOWORK=off $(GO) test -run 'Kubernetes$$|^TestAllocator|^TestManifests|^TestHelm|^TestOperator|^TestFollowsPodsThatRoll$$|^TestChart' -count 1 -parallel 2 -timeout 30m -v .

.PHONY: e2e-old
e2e-old: bin/godwit-agent bin/godwit-gateway ## Build a Collector of 2021, which knows gzip alone, and put it at either end of a stream
	@mkdir -p bin/rivals
	@cd e2e/oldcollector && GOWORK=off $(GO) build -trimpath -buildvcs=false -o $(ROOT)/bin/rivals/oldcollector .
	@cd e2e && GOWORK=off $(GO) test -run 'Of2021$$' -count 1 -v .

.PHONY: fuzz
fuzz: $(ALL:%=fuzz/%) ## Run each fuzz test for FUZZTIME (default 20s); make test runs only their seeds

.PHONY: soak
soak: bin/godwit-agent bin/godwit-gateway ## Keep the agent under churn, rollouts, faults and outages for DURATION (default 30m), and kill both ends CRASHES (default 300) times
	@cd e2e && GODWIT_SOAK=$(or $(DURATION),30m) GODWIT_CRASHES=$(or $(CRASHES),300) GOWORK=off \
		$(GO) test -run '^TestSoak$$|^TestRollouts$$|^TestRemoteWriteQueue|^TestStreamSurvivesCrashes$$|^TestStreamEndsInOrder|^TestStreamOutlivesWhateverHappens$$|^TestTenThousandStreams' -count 1 -parallel 3 -timeout 0 -v .

.PHONY: matrix
matrix: build ## Run agent and gateway with every option away from its default, then COUNT (default 500) random configurations, and as many wild ones
	@cd e2e && GODWIT_MATRIX=$(or $(COUNT),500) GOWORK=off $(GO) test -run '^TestMatrix$$|^TestWildConfigurations$$' -count 1 -parallel 3 -timeout 0 -v .

.PHONY: hostile
hostile: bin/godwit-agent bin/godwit-gateway ## Run every bad target, client, allocator and file beside a healthy one, for DURATION (default 5s) a stretch
	@cd e2e && GODWIT_HOSTILE=$(or $(DURATION),5s) GOWORK=off $(GO) test -run '^TestHostile|^TestAllocatorsWriteNoFiles$$' -count 1 -parallel 2 -timeout 0 -v .

.PHONY: lives
lives: ## Run the cardinality processor's random tests with COUNT (default 800) new seeds each; an hour or more
	@cd processor/cardinalityprocessor && GODWIT_LIVES=$(or $(COUNT),800) CGO_ENABLED=0 GOWORK=off $(GO) test -count 1 -timeout 0 .

.PHONY: race
race: build bin/packaging .tools/.ci $(ALL:%=race/%) ## Run all tests with the race detector, which takes hours, and fail where there is no C compiler

.PHONY: lint
lint: .tools/.lint lint/benchmarks lint/packaging $(REPLACEMENTS:%=lint/%) ## Run golangci-lint, once for the workspace, and for each module outside it
	@$(GO) list -deps work >/dev/null # it resolves as a whole
	@$(MAKE) --no-print-directory -f Makefile.Common lint GOWORK=$(ROOT)/go.work PACKAGES="$(MODULES:%=./%/...)"

.PHONY: count
count: ## Print how many tests the last run had
	@internal/tools/count-tests.sh bin/tests

##@ Change

.PHONY: fmt
fmt: $(ALL:%=fmt/%) ## Format Go sources

.PHONY: generate
generate: tools $(MODULES:%=generate/%) $(DISTRIBUTIONS:%=ocb/%) ## Regenerate component metadata and the distributions' sources

.PHONY: tidy
tidy: tools $(MODULES:%=tidy/%) $(DISTRIBUTIONS:%=tidy-distribution/%) $(APART:%=tidy-apart/%) ## Run go mod tidy in every module

.PHONY: web
web: ## Rebuild the console's page (node and npm): its assets are committed
	@$(MAKE) --no-print-directory -C extension/consoleextension/web

.PHONY: change
change: tools ## Start a changelog entry: make change NAME=short-name
	@chloggen new --config .chloggen/config.yaml --filename "$(or $(NAME),$(error NAME=short-name is needed))"

.PHONY: changelog
changelog: tools ## Fold the entries into CHANGELOG.md: make changelog VERSION=v0.1.0
	@chloggen update --config .chloggen/config.yaml --version "$(or $(VERSION),$(error VERSION=vX.Y.Z is needed))"

##@ Release

# The platforms of a release.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

.PHONY: release
release: check-release cross bin/packaging ## Build archives, packages, images, SBOMs and checksums in bin/release: make release VERSION=vX.Y.Z, the version in versions.yaml (GODWIT_SIGNING_KEY signs, PLATFORMS=linux/amd64 is for one)
	@bin/packaging -version $(VERSION) -commit "$$(git rev-parse HEAD)" -date "$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}" \
		-platforms $(subst $(empty) $(empty),$(comma),$(strip $(PLATFORMS)))
	@echo "bin/release:"; ls -l bin/release

.PHONY: tags
tags: ## Tag the commit for each module of versions.yaml, and as a release: make tags VERSION=vX.Y.Z
	@internal/tools/tag.sh "$(or $(VERSION),$(error VERSION=vX.Y.Z is needed))"

.PHONY: vulncheck
vulncheck: build bin/packaging .tools/.ci ## Look up what is linked in Go's vulnerability database (STRICT=1 fails where it cannot be reached)
	@STRICT=$(STRICT) internal/tools/vulncheck.sh $(DISTRIBUTIONS:%=bin/%) bin/packaging

.PHONY: check-release
check-release:
	@internal/tools/check-release.sh "$(or $(VERSION),$(error VERSION=$(shell sed -n 's/^    version: //p' versions.yaml) is needed, the version in versions.yaml))"

.PHONY: push
push: bin/packaging ## Send the images of bin/release to a registry: make push REGISTRY=registry.example.com/godwit
	@bin/packaging push -to "$(or $(REGISTRY),$(error REGISTRY= is needed, such as registry.example.com/godwit))"

.PHONY: cross
cross: $(foreach p,$(PLATFORMS),$(DISTRIBUTIONS:%=bin/cross/$(subst /,_,$p)/%)) ## Build the distributions for PLATFORMS into bin/cross/<os>_<arch>/

.PHONY: bin/packaging
bin/packaging:
	@mkdir -p bin
	@cd packaging && GOWORK=off $(GO) build -trimpath -buildvcs=false -o $(ROOT)/$@ .

##@ Measure

# benchmarks/ is outside the workspace and has its own verbs; make's variables are passed on.
.PHONY: bench-scrape bench-repeat bench-growth bench-gogc bench-limit bench-relay bench-aggregate bench-stream bench-handoff bench-micro bench-scaling bench-compare report
bench-scrape: ## Measure scraping next to its rivals (VMAGENT=path adds vmagent); half an hour, WORKLOADS=node,ksm under 15 minutes
bench-repeat: ## Run one agent of each party twice in turn, and print how far the runs differ; 8 minutes
bench-growth: ## Measure how cost grows with targets, page size and churn; 20 minutes
bench-gogc: ## Measure what garbage collection costs our agent and our gateway, in CPU and in memory; under 15 minutes
bench-limit: ## Measure series limits on and off next to rivals (VMAGENT=path, SHORT=1); under 15 minutes
bench-relay: ## Measure relays next to rivals, remote write in and OTLP in (VMAGENT=path, SHORT=1); under 5 minutes
bench-aggregate: ## Measure aggregation next to vmagent's (VMAGENT=path, SHORT=1); under 8 minutes
bench-stream: ## Measure streaming next to unary OTLP, over 0 to 200 ms (SHORT=1 tries it out); under 15 minutes
bench-handoff: ## Compare a channel, a mutex and a ring between goroutines
bench-micro: ## Run every module's Go benchmarks, ready for benchstat
bench-scaling: ## Measure the limiter's time per point, with one processor and with two
bench-compare: ## Compare the Go benchmarks with another commit: make bench-compare BASE=rev
report: ## Render the results' tables and charts, and the README's
bench-scrape bench-repeat bench-growth bench-limit: build
bench-gogc bench-relay bench-aggregate: bin/godwit-agent bin/godwit-gateway
bench-stream: bin/godwit
bench-scrape bench-repeat bench-growth bench-gogc bench-limit bench-relay bench-aggregate bench-stream bench-handoff bench-micro bench-scaling bench-compare report: tools
	@$(MAKE) --no-print-directory -C benchmarks $@

.PHONY: bench-idle
bench-idle: tools ## Measure what each choice built into the agent costs while idle (Linux)
	@cd benchmarks && GOWORK=off $(GO) build -o $(ROOT)/bin/bench-idle ./idle
	@bin/bench-idle

##@ Keep honest (part of check)

.PHONY: check-generate
check-generate: ## Fail when make generate changes the tree
	@internal/tools/unchanged.sh $(MAKE) --no-print-directory generate

.PHONY: check-tidy
check-tidy: ## Fail when make tidy changes the tree
	@internal/tools/unchanged.sh $(MAKE) --no-print-directory tidy

.PHONY: check-versions
check-versions: ## Fail when versions.yaml, go.work, manifests and go.mod files disagree
	@internal/tools/check-versions.sh

.PHONY: check-words
check-words: ## Fail when user-visible text has a word of CONTRIBUTING.md's left column
	@internal/tools/check-words.sh

.PHONY: check-headers
check-headers: ## Fail when a source file lacks its SPDX header
	@internal/tools/check-headers.sh

.PHONY: check-workflows
check-workflows: .tools/.ci ## Fail when a workflow of .github is malformed, or calls a verb that is not here
	@internal/tools/check-workflows.sh

.PHONY: check-changelog
check-changelog: tools ## Fail when a changelog entry is malformed
	@chloggen validate --config .chloggen/config.yaml

##@ Tools

.PHONY: tools
tools: .tools/.tools ## Build the pinned tools into .tools/

.tools/.tools: internal/tools/go.mod internal/tools/go.sum
	@echo "building tools"
	@cd internal/tools && GOBIN=$(TOOLS) GOWORK=off $(GO) install -trimpath tool
	@touch $@

.tools/.lint: internal/tools/lint/go.mod internal/tools/lint/go.sum
	@echo "building golangci-lint"
	@cd internal/tools/lint && GOBIN=$(TOOLS) GOWORK=off $(GO) install -trimpath tool
	@touch $@

.tools/.ci: internal/tools/ci/go.mod internal/tools/ci/go.sum
	@echo "building actionlint and govulncheck"
	@cd internal/tools/ci && GOBIN=$(TOOLS) GOWORK=off $(GO) install -trimpath tool
	@touch $@

.PHONY: clean
clean: ## Remove everything that make made
	@rm -rf bin .tools run

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# --- How the verbs reach the modules -------------------------------------------------------------

VERBS := $(foreach verb,test race fuzz lint fmt generate tidy,$(ALL:%=$(verb)/%))
.PHONY: $(VERBS)
$(VERBS): .tools/.tools
	@$(MAKE) --no-print-directory -C $(patsubst $(firstword $(subst /, ,$@))/%,%,$@) $(firstword $(subst /, ,$@))
$(ALL:%=lint/%): .tools/.lint

.PHONY: FORCE
# go build decides what to rebuild, so make always calls it.
$(DISTRIBUTIONS:%=bin/%): bin/%: FORCE
	@mkdir -p bin
	@$(call compile,$*,$@)

# compile builds a distribution into a file, for the platform in the environment.
compile = cd distributions/$1 && CGO_ENABLED=0 GOWORK=off $(GO) build -trimpath -buildvcs=false -ldflags "-s -w" \
	-tags "$(call tags,$1)" -o $(ROOT)/$2 .
# tags are the manifest's build tags; DISCOVERY, even if it is empty, replaces those of service discovery.
tags = $(if $(filter undefined,$(origin DISCOVERY)),$(call manifest_tags,$1),$(subst $(empty) $(empty),$(comma),$(strip \
	$(filter-out remove_all_sd enable_%_sd,$(subst $(comma), ,$(call manifest_tags,$1))) remove_all_sd $(DISCOVERY:%=enable_%_sd))))
manifest_tags = $(shell sed -n 's/^  build_tags: *//p' $(ROOT)/$(call manifest,$1))
comma := ,
empty :=

# bin/cross/<os>_<arch>/<name>, with .exe on Windows.
bin/cross/%: FORCE
	@mkdir -p $(@D)
	@echo "building $*"
	@GOOS=$(firstword $(subst _, ,$*)) GOARCH=$(lastword $(subst _, ,$(patsubst %/,%,$(dir $*)))); export GOOS GOARCH; \
		$(call compile,$(notdir $*),$@$(if $(findstring windows_,$*),.exe))

# ocb resolves paths from the repository's root, and runs go mod tidy itself. `plain`, in commands.go, makes a starting
# collector report errors in its configuration as `validate` does: cobra prints them, and only main.go can change that.
.PHONY: $(DISTRIBUTIONS:%=ocb/%)
$(DISTRIBUTIONS:%=ocb/%): ocb/%: .tools/.tools
	@echo "ocb: distributions/$*"
	@mkdir -p bin; builder --config $(call manifest,$*) --skip-compilation >bin/ocb-$*.log 2>&1 || { cat bin/ocb-$*.log; exit 1; }
	@sed 's/:= cmd\.Execute()/:= plain(cmd).Execute()/' distributions/$*/main.go >bin/main-$*.go
	@grep -q 'plain(cmd)' bin/main-$*.go && gofmt bin/main-$*.go >distributions/$*/main.go && rm bin/main-$*.go

.PHONY: $(DISTRIBUTIONS:%=tidy-distribution/%)
$(DISTRIBUTIONS:%=tidy-distribution/%): tidy-distribution/%:
	@cd distributions/$* && GOWORK=off $(GO) mod tidy -compat=1.25

.PHONY: $(APART:%=tidy-apart/%)
$(APART:%=tidy-apart/%): tidy-apart/%:
	@cd $* && GOWORK=off $(GO) mod tidy
