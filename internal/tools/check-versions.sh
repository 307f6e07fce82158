#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Fails if a module is missing from versions.yaml or go.work, if a go.mod or a manifest requires a version of ours that
# differs from versions.yaml, or if two modules require different versions of a dependency: then it and all that depends
# on it are compiled twice (docs/design/087). Distributions require what their components do; modules outside the
# workspace do not count.
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
		# These replace modules of others.
		internal/conntrack) want=github.com/mwitkow/go-conntrack ;;
		internal/httpsnoop) want=github.com/felixge/httpsnoop ;;
		internal/k8sinventory) want=github.com/open-telemetry/opentelemetry-collector-contrib/internal/k8sinventory ;;
		internal/kubernetes/*) want=k8s.io/${dir#internal/kubernetes/} ;;
		internal/xconfmap) want=go.opentelemetry.io/collector/confmap/xconfmap ;;
		*) want=$own/$dir ;;
		esac
		[ "$module" = "$want" ] || echo "$file: module $module, not $want"
		grep -q "^ *- $module\$" versions.yaml || echo "$file: not in versions.yaml"
		case $dir in
		internal/tools* | benchmarks* | packaging | e2e/oldcollector | internal/kubernetes/* | internal/httpsnoop | distributions/godwit-agent) ;;
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
	git ls-files -co --exclude-standard | grep -E '(^|/)go\.mod$' | grep -vE '^(internal/tools|benchmarks/rivals|e2e/oldcollector)/|/testdata/' | while read -r file; do
		[ ! -f "$file" ] || sed -n "s#^\\(require \|	\\)\\([^ ]*\\) \\(v[^ ]*\\).*#\\2 \\3 $file#p" "$file"
	done | grep -v "^$own" | sort -k1,1 -k2,2Vr | awk '
		$1 != dep { dep = $1; highest = $2 }
		$2 != highest && $3 !~ /^distributions\// { print $3 ": " dep " " $2 ", and elsewhere " highest ": ask for that here, too" }'
)
if [ -n "$faults" ]; then
	echo "$faults" >&2
	exit 1
fi
