// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package remotewriteexporter

import (
	"fmt"
	"strings"
	"time"
)

// Keys are the names of keys that errors advise to change, in a component with other keys. An empty one does not exist
// there.
type Keys struct {
	QueueSize    string
	OnFull       string
	BlockTimeout string
}

var ownKeys = Keys{QueueSize: "queue.size", OnFull: "queue.on_full", BlockTimeout: "queue.block_timeout"}

// full adds to an error about a full queue what can be done.
func (k Keys) full(err error) error {
	var ways []string
	if k.QueueSize != "" {
		ways = append(ways, "raise `"+k.QueueSize+"`")
	}
	if k.OnFull != "" {
		ways = append(ways, "choose another `"+k.OnFull+"`")
	}
	if len(ways) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.Join(ways, ", or "))
}

// after adds to an error how long the caller had waited.
func (k Keys) after(err error, limit time.Duration) error {
	if k.BlockTimeout == "" {
		return fmt.Errorf("%w, %v", err, limit)
	}
	return fmt.Errorf("%w, %v of `%s`", err, limit, k.BlockTimeout)
}
