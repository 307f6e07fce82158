// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Package websocket is RFC 6455 without subprotocols and extensions, for
// streams of binary messages: clients send much, and servers answer little.
//
// What a client writes is copied once, into the buffer in which it is masked.
// What a server reads is copied once, out of the buffer that the kernel fills. Small messages
// share that buffer, and so a system call.
package websocket
