# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Makes the user. A new service waits for its administrator; one that runs is started again.
name={{.Name}}
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers "$name.conf"
elif ! grep -q "^$name:" /etc/passwd; then
	useradd --system --user-group --no-create-home --home-dir "/var/lib/$name" --shell /usr/sbin/nologin "$name"
fi
if [ "$1" = 1 ]; then
	# Credentials are in these files: they are for root to write, for the service to read, and for nobody else.
	chgrp "$name" "/etc/$name/config.yaml" "/etc/$name/$name.conf"
	chmod 0640 "/etc/$name/config.yaml" "/etc/$name/$name.conf"
fi
command -v systemctl >/dev/null || exit 0
if [ "$1" = 1 ]; then
	systemctl --no-reload preset "$name.service" || :
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || :
	[ "$1" = 1 ] || systemctl try-restart "$name.service" || :
fi
