// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// The JSON API. Addresses are relative to the page, so that it works behind a
// proxy that puts it under a path of its own.

const timeout = 15_000;

export class Failure extends Error {
  constructor(
    message: string,
    /** HTTP status, 0 when there was no answer. */
    readonly status: number,
  ) {
    super(message);
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export function address(path: string, query: Query | URLSearchParams = {}): string {
  const params = query instanceof URLSearchParams ? query : new URLSearchParams();
  if (!(query instanceof URLSearchParams)) {
    for (const [name, value] of Object.entries(query)) {
      if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
    }
  }
  const tail = params.toString();
  return `api/v1/${path}${tail ? `?${tail}` : ""}`;
}

export function get<T>(path: string, query?: Query | URLSearchParams, signal?: AbortSignal): Promise<T> {
  return exchange<T>(address(path, query), { method: "GET" }, signal);
}

export function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return exchange<T>(address(path), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }, signal);
}

async function exchange<T>(url: string, init: RequestInit, signal?: AbortSignal): Promise<T> {
  const limit = AbortSignal.timeout(timeout);
  let response: Response;
  try {
    response = await fetch(url, { ...init, credentials: "same-origin", cache: "no-store", signal: signal ? AbortSignal.any([signal, limit]) : limit });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failure(limit.aborted ? `No answer within ${timeout / 1000} s.` : "The collector does not answer.", 0);
  }
  const text = await response.text();
  if (!response.ok) throw new Failure(reason(text) || `The collector answered ${response.status} ${response.statusText}.`, response.status);
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new Failure("The collector's answer is not JSON.", response.status);
  }
}

function reason(text: string): string {
  try {
    const body = JSON.parse(text) as { error?: { message?: unknown } };
    if (typeof body.error?.message === "string") return sentence(body.error.message);
  } catch {
    // Not every server on the way speaks JSON.
  }
  return text.length < 300 && !text.startsWith("<") ? text.trim() : "";
}

function sentence(message: string): string {
  const start = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
