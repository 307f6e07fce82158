#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Keeps configuration and queues until the package is purged. The user stays, because it may own files elsewhere.
set -e
name={{.Name}}
root=${DPKG_ROOT:-}

case $1 in
remove)
	if [ -z "$root" ] && [ -d /run/systemd/system ]; then
		systemctl daemon-reload
	fi
	;;
purge)
	rm -f "$root/etc/systemd/system/multi-user.target.wants/$name.service"
	rm -rf "$root/var/lib/$name"
	;;
esac
