# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Creates the user. It does not start a new service, which is up to the administrator, but restarts a running one.
name={{.Name}}
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers "$name.conf"
elif ! grep -q "^$name:" /etc/passwd; then
	useradd --system --user-group --no-create-home --home-dir "/var/lib/$name" --shell /usr/sbin/nologin "$name"
fi
# These files may contain credentials: root writes them, the service reads them, and nobody else may. An upgrade
# replaces unchanged ones, with root as their group.
for file in config.yaml "$name.conf"; do
	[ "$(stat -c %g "/etc/$name/$file")" != 0 ] || chgrp "$name" "/etc/$name/$file"
done
command -v systemctl >/dev/null || exit 0
if [ "$1" = 1 ]; then
	systemctl --no-reload preset "$name.service" || :
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || :
	[ "$1" = 1 ] || systemctl try-restart "$name.service" || :
fi
