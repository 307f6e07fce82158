# Copyright The Godwit Authors
# SPDX-License-Identifier: Apache-2.0

# Keeps the queues and the user, who owns them.
[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
