#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Creates the user, and starts the service, or restarts it after an upgrade. If DPKG_ROOT is set, it works on that
# directory.
set -e
name={{.Name}}
root=${DPKG_ROOT:-}

[ "$1" = configure ] || exit 0

if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers --root="$root/" "$name.conf"
elif ! grep -q "^$name:" "$root/etc/passwd"; then
	useradd --root "$root/" --system --user-group --no-create-home --home-dir "/var/lib/$name" --shell /usr/sbin/nologin "$name"
fi

# These files may contain credentials: root writes them, the service reads them, and nobody else may.
if [ -z "$2" ]; then
	gid=$(sed -n "s/^$name:[^:]*:\([0-9]*\):.*/\1/p" "$root/etc/group")
	chgrp "$gid" "$root/etc/$name/config.yaml" "$root/etc/$name/$name.conf"
fi

command -v systemctl >/dev/null || exit 0
if [ -z "$2" ]; then
	systemctl --root="$root/" --quiet enable "$name.service"
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if systemctl --quiet is-enabled "$name.service"; then
		invoke=systemctl
		! command -v deb-systemd-invoke >/dev/null || invoke=deb-systemd-invoke # it obeys policy-rc.d
		$invoke restart "$name.service" || echo "$name does not start: see journalctl -u $name" >&2
	fi
fi
