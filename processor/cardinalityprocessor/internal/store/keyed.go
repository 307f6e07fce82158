// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/godwit-otel/godwit/processor/cardinalityprocessor/internal/siphash"
)

// The key of fingerprints is random, made by the first process. What is saved is useless without it, so it is saved,
// too: as secret as the storage is, and before anything else. All saved values begin with the key's mark: those of
// another key, or of a version without one, are ignored.
//
//	magic | key | CRC-32
const (
	SnapshotKeyOf = "key"
	KeyMagic      = "godwit cardinality key 1\n"
	KeyMarkSize   = 8
)

// NewKey returns a random key.
func NewKey() siphash.Key {
	var b [siphash.KeySize]byte
	_, _ = rand.Read(b[:]) // never fails
	return siphash.NewKey(b)
}

// AppendKey appends a key in its saved form.
func AppendKey(dst []byte, key siphash.Key) []byte {
	begin, secret := len(dst), key.Bytes()
	dst = append(append(dst, KeyMagic...), secret[:]...)
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[begin:]))
}

func parseKey(saved []byte) (key siphash.Key, ok bool) {
	n := len(KeyMagic) + siphash.KeySize
	if len(saved) != n+crc32.Size || string(saved[:len(KeyMagic)]) != KeyMagic ||
		crc32.ChecksumIEEE(saved[:n]) != binary.LittleEndian.Uint32(saved[n:]) {
		return siphash.Key{}, false
	}
	return siphash.NewKey([siphash.KeySize]byte(saved[len(KeyMagic):n])), true
}

// Keyed is a storage of values that belong to one key.
type Keyed struct {
	storage.Client

	Key  siphash.Key
	mark [KeyMarkSize]byte

	mu    sync.Mutex
	saved bool // the key was saved

	Foreign int // number of values of another key; used while loading
	Later   int // values that a later version has saved; they are kept
}

// Open reads the key. If there is no valid one, it uses the given key.
func Open(ctx context.Context, client storage.Client, key siphash.Key) (*Keyed, error) {
	saved, err := client.Get(ctx, SnapshotKeyOf)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key: %w", err)
	}
	k := &Keyed{Client: client, Key: key}
	if found, ok := parseKey(saved); ok {
		k.Key, k.saved = found, true
	} else if err = k.keepLater(ctx, SnapshotKeyOf, saved, saved, KeyMagic); err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(k.mark[:], k.Key.String(KeyMagic))
	return k, nil
}

// Get returns nothing for a value of another key.
func (k *Keyed) Get(ctx context.Context, name string) ([]byte, error) {
	value, err := k.Client.Get(ctx, name)
	if err != nil || len(value) == 0 {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(value, k.mark[:])
	if !ok {
		k.Foreign++
		rest = value[min(KeyMarkSize, len(value)):]
	}
	if err := k.keepLater(ctx, name, value, rest, Magic); err != nil {
		return nil, err
	}
	if !ok || isLater(rest, Magic) {
		return nil, nil
	}
	return rest, nil
}

// laterSuffix is added to the name of what a later version has saved, when this one writes its own there.
const laterSuffix = ".later"

// keepLater keeps a value beside, if its content was saved by a later version. Whoever has gone back to this one may want to go there again.
func (k *Keyed) keepLater(ctx context.Context, name string, value, content []byte, magic string) error {
	if !isLater(content, magic) {
		return nil
	}
	if err := k.Client.Set(ctx, name+laterSuffix, value); err != nil {
		return fmt.Errorf("cannot keep what a later version has saved as %q: %w", name, err)
	}
	k.Later++
	return nil
}

// isLater reports whether something begins with a magic of a greater number: that at its end.
func isLater(saved []byte, magic string) bool {
	at := strings.LastIndexByte(magic, ' ') + 1
	line, _, ok := bytes.Cut(saved, []byte{'\n'})
	if !ok || len(line) <= at || string(line[:at]) != magic[:at] {
		return false
	}
	now, _ := strconv.ParseUint(magic[at:len(magic)-1], 10, 32)
	other, err := strconv.ParseUint(string(line[at:]), 10, 32)
	return err == nil && other > now
}

// Set saves the key first, if needed.
func (k *Keyed) Set(ctx context.Context, name string, value []byte) error {
	if err := k.saveKey(ctx); err != nil {
		return err
	}
	return k.Client.Set(ctx, name, append(k.mark[:len(k.mark):len(k.mark)], value...))
}

// SetAll saves several values at once.
func (k *Keyed) SetAll(ctx context.Context, values map[string][]byte) error {
	if err := k.saveKey(ctx); err != nil {
		return err
	}
	var all []*storage.Operation
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, storage.SetOperation(name, append(k.mark[:len(k.mark):len(k.mark)], values[name]...)))
	}
	return k.Batch(ctx, all...)
}

func (k *Keyed) saveKey(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.saved {
		return nil
	}
	if err := k.Client.Set(ctx, SnapshotKeyOf, AppendKey(nil, k.Key)); err != nil {
		return fmt.Errorf("cannot save the key: %w", err)
	}
	k.saved = true
	return nil
}
