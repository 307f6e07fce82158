// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Runs before the page is painted, so that a chosen theme does not flash the other.

const chosen = (() => {
  try {
    return localStorage.getItem("godwit.theme");
  } catch {
    return null;
  }
})();
if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
