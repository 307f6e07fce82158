# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Stops the service before its files are removed. During an upgrade it runs until the new files are there.
name={{.Name}}
if [ "$1" = 0 ] && command -v systemctl >/dev/null; then
	systemctl --no-reload disable "$name.service" || :
	[ ! -d /run/systemd/system ] || systemctl stop "$name.service" || :
fi
