// Copyright The Godwit Authors
// SPDX-License-Identifier: Apache-2.0

// Elements without a framework: a view describes the tree it wants, and sync() turns
// the tree on the page into it with the fewest changes, so that focus, selection and
// scrolling survive a refresh. Descriptions are compared with descriptions: the page is
// touched only where they differ. Text is only ever set as text.

export type Child = Tree | string | number | null | undefined | false | readonly Child[];

export interface Props {
  /** Pairs an element with the one on the page that stands for the same thing. */
  key?: string | undefined;
  style?: Record<string, string>;
  on?: Record<string, (event: any) => void>;
  /** Called once the element is on the page, and again at each refresh; its children are then its own. */
  mount?: (element: HTMLElement) => void;
  [attribute: string]: unknown;
}

/** What an element is to be. */
export interface Tree {
  readonly tag: string;
  readonly vector: boolean;
  readonly props: Props;
  readonly children: readonly Child[];
}

/** What stands on the page, and the description that it follows. */
interface Made {
  node: Node;
  wanted: Tree | string;
  children: Made[];
}

const svgNamespace = "http://www.w3.org/2000/svg";
const nothing: Props = {};
/** Not attributes of the element. */
const reserved = new Set(["key", "style", "on", "mount"]);
/** What somebody may have written into. */
const fields = new Set(["input", "textarea", "select"]);
/** What sync() has put into an element of the page. */
const contents = new WeakMap<Element, Made[]>();

export function h(tag: keyof HTMLElementTagNameMap, props?: Props | null, ...children: Child[]): Tree {
  return { tag, vector: false, props: props ?? nothing, children };
}

export function svg(tag: keyof SVGElementTagNameMap, props?: Props | null, ...children: Child[]): Tree {
  return { tag, vector: true, props: props ?? nothing, children };
}

/** Makes the children of `parent` those that are wanted. */
export function sync(parent: Element, ...wanted: Child[]): void {
  const focused = document.activeElement;
  const before = contents.get(parent);
  if (!before) parent.replaceChildren();
  contents.set(parent, arrange(parent, before ?? [], flat(wanted)));
  if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected && parent.contains(focused)) {
    focused.focus({ preventScroll: true });
  }
}

function flat(children: readonly Child[], into: (Tree | string)[] = []): (Tree | string)[] {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (typeof child === "object") {
      if ("tag" in child) into.push(child);
      else flat(child, into);
    } else into.push(String(child));
  }
  return into;
}

const keyOf = (wanted: Tree | string): string | undefined => (typeof wanted === "string" ? undefined : wanted.props.key);
const alike = (a: Tree | string, b: Tree | string): boolean => (typeof a === "string" ? typeof b === "string" : typeof b !== "string" && a.tag === b.tag && a.props.key === b.props.key);

// Those with a key stay who they are, wherever they go; the others follow in the order in which they stand.
function arrange(parent: Element, before: readonly Made[], wanted: readonly (Tree | string)[]): Made[] {
  const keys = new Set(wanted.map(keyOf));
  const keyed = new Map<string, Made>();
  for (const made of before) {
    const key = keyOf(made.wanted);
    if (key !== undefined) keyed.set(key, made);
  }
  const kept = new Set<Made>();
  const after: Made[] = [];
  let at = 0;
  const place = (): Node | null => {
    while (at < before.length && kept.has(before[at]!)) at++;
    return before[at]?.node ?? null;
  };
  for (const one of wanted) {
    for (place(); at < before.length && keyOf(before[at]!.wanted) !== undefined && !keys.has(keyOf(before[at]!.wanted)); place()) remove(parent, before[at++]!);
    const key = keyOf(one);
    const match = key === undefined ? before[at] : keyed.get(key);
    if (!match || kept.has(match) || !alike(match.wanted, one)) {
      const made = make(one);
      parent.insertBefore(made.node, place());
      mounted(made);
      after.push(made);
      continue;
    }
    kept.add(match);
    if (match !== before[at]) parent.insertBefore(match.node, place());
    patch(match, one);
    after.push(match);
  }
  for (; at < before.length; at++) if (!kept.has(before[at]!)) remove(parent, before[at]!);
  return after;
}

function remove(parent: Element, { node }: Made): void {
  if (node.parentNode === parent) parent.removeChild(node);
}

function make(wanted: Tree | string): Made {
  if (typeof wanted === "string") return { node: document.createTextNode(wanted), wanted, children: [] };
  const element = wanted.vector ? (document.createElementNS(svgNamespace, wanted.tag) as SVGElement) : document.createElement(wanted.tag);
  const children = flat(wanted.children).map(make);
  for (const child of children) element.appendChild(child.node);
  decorate(element, nothing, wanted.props);
  return { node: element, wanted, children };
}

// Newly inserted elements may hold mounts at any depth.
function mounted({ node, wanted, children }: Made): void {
  for (const child of children) mounted(child);
  if (typeof wanted !== "string") wanted.props.mount?.(node as HTMLElement);
}

function patch(made: Made, wanted: Tree | string): void {
  const before = made.wanted;
  if (before === wanted) return; // a step of the same drawing, or the same text
  made.wanted = wanted;
  if (typeof wanted === "string" || typeof before === "string") {
    if (before !== wanted) made.node.nodeValue = wanted as string;
    return;
  }
  const element = made.node as HTMLElement;
  decorate(element, before.props, wanted.props);
  if (wanted.props.mount) {
    wanted.props.mount(element);
    return;
  }
  made.children = arrange(element, made.children, flat(wanted.children));
  if (fields.has(wanted.tag)) hold(element, wanted);
}

// Attributes, styles and handlers: those that are no longer wanted go.
function decorate(element: HTMLElement | SVGElement, before: Props, after: Props): void {
  for (const name in before) if (!(name in after) && !reserved.has(name)) element.removeAttribute(name);
  for (const name in after) {
    const value = after[name];
    if (value === before[name] || reserved.has(name)) continue;
    if (name === "value" && "value" in element) {
      if (before === nothing || element instanceof HTMLOptionElement) element.value = String(value ?? ""); // of a field it is the reader's then: see hold()
    } else if (value === undefined || value === null || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  // Through the object model: a style attribute would be against the page's policy.
  for (const name in before.style) if (!(name in (after.style ?? {}))) element.style.removeProperty(name);
  for (const name in after.style) if (before.style?.[name] !== after.style[name]) element.style.setProperty(name, after.style[name]!);
  for (const type in before.on) if (!(type in (after.on ?? {}))) (element as any)[`on${type}`] = null;
  for (const type in after.on) (element as any)[`on${type}`] = after.on[type];
}

// What the reader is typing is the reader's; fields that have been left show what they stand for.
function hold(element: Element, { props, children }: Tree): void {
  if (element === document.activeElement) return;
  if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) {
    const value = String(props.value ?? (element.type === "checkbox" ? "on" : ""));
    if (element.value !== value) element.value = value;
    if (element instanceof HTMLInputElement) element.checked = !!props.checked;
  } else if (element instanceof HTMLSelectElement) {
    const options = flat(children).filter((c): c is Tree => typeof c !== "string");
    const value = (options.find((o) => o.props.selected) ?? options[0])?.props.value;
    if (value !== undefined && element.value !== String(value)) element.value = String(value);
  }
}
