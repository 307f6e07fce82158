// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Elements without a framework: a view builds the tree it wants, and sync() turns
// the tree on the page into it with the fewest changes, so that focus, selection
// and scrolling survive a refresh. Text is only ever set as text.

export type Child = Node | string | number | null | undefined | false | readonly Child[];

export interface Props {
  /** Pairs a node with the one on the page that stands for the same thing. */
  key?: string | undefined;
  style?: Record<string, string>;
  on?: Record<string, (event: any) => void>;
  /** Called once the node is on the page, and again at each refresh; its children are then its own. */
  mount?: (element: HTMLElement) => void;
  [attribute: string]: unknown;
}

interface Extras {
  key?: string | undefined;
  mount?: ((element: HTMLElement) => void) | undefined;
  on: Record<string, (event: Event) => void>;
}

const extras = new WeakMap<Node, Extras>();
const svgNamespace = "http://www.w3.org/2000/svg";
const none: Extras = { on: {} };

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props?: Props | null, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), props, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(tag: K, props?: Props | null, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(svgNamespace, tag), props, children);
}

function fill<E extends HTMLElement | SVGElement>(element: E, props: Props | null | undefined, children: readonly Child[]): E {
  const { key, style, on, mount, ...attributes } = props ?? {};
  if (key !== undefined || on || mount) {
    extras.set(element, { key, mount, on: on ?? {} });
    listen(element, on ?? {});
  }
  append(element, children);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "value" && "value" in element) element.value = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  // Through the object model: a style attribute would be against the page's policy.
  for (const [name, value] of Object.entries(style ?? {})) element.style.setProperty(name, value);
  return element;
}

function listen(element: Element, on: Extras["on"]): void {
  for (const [type, handler] of Object.entries(on)) (element as any)[`on${type}`] = handler;
}

function append(parent: Node, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else if (child instanceof Node) parent.appendChild(child);
    else parent.appendChild(document.createTextNode(String(child)));
  }
}

/** Makes the children of `parent` those of `wanted`. */
export function sync(parent: Element, ...wanted: Child[]): void {
  const focused = document.activeElement;
  const next = document.createDocumentFragment();
  append(next, wanted);
  children(parent, next);
  if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected && parent.contains(focused)) {
    focused.focus({ preventScroll: true });
  }
}

const keyOf = (node: Node): string | undefined => extras.get(node)?.key;

function children(old: Node, next: Node): void {
  const wanted = [...next.childNodes];
  const keys = new Set(wanted.map(keyOf));
  const keyed = new Map<string, Node>();
  for (const node of old.childNodes) {
    const key = keyOf(node);
    if (key !== undefined) keyed.set(key, node);
  }
  let cursor: Node | null = old.firstChild;
  for (const node of wanted) {
    while (cursor && keyOf(cursor) !== undefined && !keys.has(keyOf(cursor))) cursor = drop(cursor);
    const key = keyOf(node);
    let match: Node | null = key === undefined ? cursor : (keyed.get(key) ?? null);
    if (match && (match.nodeName !== node.nodeName || keyOf(match) !== key)) match = null;
    if (!match) {
      old.insertBefore(node, cursor);
      mounted(node);
      continue;
    }
    if (match === cursor) cursor = cursor.nextSibling;
    else old.insertBefore(match, cursor);
    patch(match, node);
  }
  while (cursor) cursor = drop(cursor);
}

function drop(node: Node): Node | null {
  const next = node.nextSibling;
  node.parentNode?.removeChild(node);
  return next;
}

// Newly inserted nodes may hold mounts at any depth.
function mounted(node: Node): void {
  for (const child of [...node.childNodes]) mounted(child);
  extras.get(node)?.mount?.(node as HTMLElement);
}

function patch(old: Node, next: Node): void {
  if (!(old instanceof Element) || !(next instanceof Element)) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return;
  }
  attributes(old, next);
  const before = extras.get(old) ?? none;
  const after = extras.get(next) ?? none;
  for (const type of Object.keys(before.on)) if (!(type in after.on)) (old as any)[`on${type}`] = null;
  listen(old, after.on);
  if (after !== none || before !== none) extras.set(old, after);
  if (after.mount) {
    after.mount(old as HTMLElement);
    return;
  }
  children(old, next);
  value(old, next);
}

function attributes(old: Element, next: Element): void {
  for (const { name } of [...old.attributes]) {
    // A dialog or a disclosure that the reader opened stays open.
    if (name !== "style" && !next.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const from = (next as HTMLElement).style;
  const to = (old as HTMLElement).style;
  if (to.cssText !== from.cssText) to.cssText = from.cssText;
}

// What the reader is typing is the reader's.
function value(old: Element, next: Element): void {
  if (old === document.activeElement) return;
  if (old instanceof HTMLInputElement && next instanceof HTMLInputElement) {
    if (old.value !== next.value) old.value = next.value;
    old.checked = next.checked;
  } else if (old instanceof HTMLSelectElement && next instanceof HTMLSelectElement) {
    if (old.value !== next.value) old.value = next.value;
  } else if (old instanceof HTMLTextAreaElement && next instanceof HTMLTextAreaElement) {
    if (old.value !== next.value) old.value = next.value;
  }
}
