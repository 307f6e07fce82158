// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// What a reader prefers stays in the browser; without storage it lasts as long as the page.

export type Theme = "auto" | "light" | "dark";

export function theme(): Theme {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || chosen === "light" ? chosen : "auto";
}

export function setTheme(next: Theme): void {
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    if (next === "auto") localStorage.removeItem("godwit.theme");
    else localStorage.setItem("godwit.theme", next);
  } catch {
    // Private windows may refuse storage.
  }
}

/** A colour or length of the style sheet, as it is in the theme of the moment. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
