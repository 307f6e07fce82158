// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package websocket is RFC 6455 without subprotocols and extensions, for
// streams of binary messages: clients send much, and servers answer little.
//
// What a client writes is copied once, into the buffer it is masked in, and
// what a server reads once, out of the buffer the kernel fills. Small messages
// share that buffer, and so a system call.
package websocket
