#!/bin/sh
# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Stops the service before its files are removed. During an upgrade it runs until the new files are there.
set -e
name={{.Name}}

[ "$1" = remove ] || exit 0
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl stop "$name.service"
fi
