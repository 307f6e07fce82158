# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Makes the user. A new service waits for its administrator; one that runs is started again.
name={{.Name}}
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers "$name.conf"
elif ! grep -q "^$name:" /etc/passwd; then
	useradd --system --user-group --no-create-home --home-dir "/var/lib/$name" --shell /usr/sbin/nologin "$name"
fi
# Credentials are in these files: they are for root to write, for the service to read, and for nobody else. An upgrade puts those that nobody has
# changed in place anew, as root's.
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
