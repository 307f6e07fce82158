// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// The whole state of a view is in the address, behind the hash: whoever gets the
// link sees the same. #/targets/3f2a?state=down&sort=-samples

export interface Route {
  view: string;
  /** What the view shows in particular, such as one target. */
  id: string;
  params: URLSearchParams;
}

export type Changes = Record<string, string | number | null | undefined>;

export function parse(hash: string): Route {
  const [path = "", query = ""] = split(hash.replace(/^#\/?/, ""), "?");
  const [view, id] = split(path, "/");
  return { view: view || "overview", id: decode(id), params: new URLSearchParams(query) };
}

function split(text: string, at: string): [string, string] {
  const i = text.indexOf(at);
  return i < 0 ? [text, ""] : [text.slice(0, i), text.slice(i + 1)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a view; empty parameters are left out. */
export function href(view: string, id = "", params?: Changes | URLSearchParams): string {
  const tail = (params instanceof URLSearchParams ? params : params && apply(new URLSearchParams(), params))?.toString(); // each row of a list has a link
  return `#/${view}${id ? `/${encodeURIComponent(id)}` : ""}${tail ? `?${tail}` : ""}`;
}

/** The address of this view with some parameters changed. */
export function changed(route: Route, changes: Changes): string {
  return href(route.view, route.id, apply(new URLSearchParams(route.params), changes));
}

/** Goes to what the address shows now with some parameters changed: a view may have been drawn for the address before. */
export function change(changes: Changes, replace = false): void {
  go(changed(parse(location.hash), changes), replace);
}

function apply(params: URLSearchParams, changes: Changes): URLSearchParams {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") params.delete(name);
    else params.set(name, String(value));
  }
  return params;
}

/** Goes there. Typing in a search box replaces the address: "back" leaves the view and not a letter. */
export function go(address: string, replace = false): void {
  if (address === location.hash) return;
  if (replace) {
    history.replaceState(null, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = address;
  }
}
