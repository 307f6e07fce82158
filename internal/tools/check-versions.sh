#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Fails when a module is missing from versions.yaml or go.work, or when a
# go.mod or a manifest asks for another version of ours than versions.yaml says.
set -eu

own=github.com/godwit-otel/godwit
version=$(sed -n 's/^    version: //p' versions.yaml)
faults=$(
	git ls-files -co --exclude-standard | grep -E '(^|/)go\.mod$' | while read -r file; do
		[ -f "$file" ] || continue
		dir=$(dirname "$file")
		module=$(sed -n 's/^module //p' "$file")
		case $dir in
		.) want=$own ;;
		# These stand in for others.
		internal/conntrack) want=github.com/mwitkow/go-conntrack ;;
		internal/k8sinventory) want=github.com/open-telemetry/opentelemetry-collector-contrib/internal/k8sinventory ;;
		internal/kubernetes/*) want=k8s.io/${dir#internal/kubernetes/} ;;
		internal/xconfmap) want=go.opentelemetry.io/collector/confmap/xconfmap ;;
		*) want=$own/$dir ;;
		esac
		[ "$module" = "$want" ] || echo "$file: module $module, not $want"
		grep -q "^ *- $module\$" versions.yaml || echo "$file: not in versions.yaml"
		case $dir in
		internal/tools* | benchmarks* | packaging | e2e/oldcollector | internal/kubernetes/* | distributions/godwit-agent) ;;
		.) grep -q '^	\.$' go.work || echo "$file: not in go.work" ;;
		*) grep -q "^	\./$dir\$" go.work || echo "$file: not in go.work" ;;
		esac
		grep -E "^(require |	)$own/[^ ]* v" "$file" | sed 's/^require //' | while read -r dep got _; do
			[ "$got" = "$version" ] || echo "$file: $dep $got, not $version"
		done
	done
	for file in builder-config.yaml distributions/*/manifest.yaml; do
		grep -oE "gomod: $own/[^ ]* v[^ ]*" "$file" | while read -r _ dep got; do
			[ "$got" = "$version" ] || echo "$file: $dep $got, not $version"
		done
		[ "v$(sed -n 's/^  version: //p' "$file")" = "$version" ] || echo "$file: dist.version is not ${version#v}"
	done
)
if [ -n "$faults" ]; then
	echo "$faults" >&2
	exit 1
fi
