type Child = Node | string | null | undefined | false;
type Props = Record<string, unknown>;

/**
 * Make an HTML element. Text stays text: nothing is ever read as HTML, so ids and names need no escaping.
 *
 * Properties that start with "on" are listeners; true sets an attribute without value, false, null and undefined none.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), props, children);
}

/** Make an SVG element, as `h` makes one of HTML. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

function fill<E extends Element>(element: E, props: Props, children: Child[]): E {
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children.filter((one): one is Node | string => one !== null && one !== undefined && one !== false),
  );
  return element;
}

/**
 * Put other children into an element.
 *
 * Where the keyboard was in it, it stays: at what is called the same, else at what took its place.
 */
export function show(element: Element, ...children: Child[]): void {
  const held = document.activeElement as HTMLElement | null;
  const place = held ? controls(element).indexOf(held) : -1;
  const name = held && place >= 0 ? called(held) : "";
  element.replaceChildren();
  fill(element, {}, children);
  if (place < 0) return;
  const found = controls(element);
  const next = found.find((one) => one === held) ?? found.find((one) => called(one) === name);
  const near =
    found[Math.min(place, found.length - 1)] ?? element.closest("details")?.querySelector("summary");
  (next ?? near)?.focus({ preventScroll: true });
}

/** What the keyboard reaches within an element. */
function controls(element: Element): HTMLElement[] {
  const found = element.querySelectorAll<HTMLElement>(
    "a[href], button, input, select, summary, textarea, [tabindex]",
  );
  return [...found].filter((one) => !one.matches(":disabled"));
}

function called(control: HTMLElement): string {
  const label = "labels" in control ? (control.labels as NodeListOf<HTMLElement> | null)?.[0] : null;
  return `${control.tagName} ${control.ariaLabel ?? label?.textContent ?? control.textContent}`;
}

let numbered = 0;

/** A label and its field, tied together. */
export function field(label: string, control: HTMLElement, hint = ""): HTMLElement {
  numbered += 1;
  control.id ||= `field-${numbered}`;
  const told = hint ? h("small", { id: `${control.id}-hint`, class: "soft" }, hint) : null;
  if (told) control.setAttribute("aria-describedby", told.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, told);
}

export interface Choice {
  value: string;
  text: string;
  disabled?: boolean;
}

/** A list to choose one from. */
export function select(
  choices: Choice[],
  chosen: string,
  changed: (value: string) => void,
): HTMLSelectElement {
  const found = h(
    "select",
    { onchange: () => changed(found.value) },
    ...choices.map((one) =>
      h("option", { value: one.value, selected: one.value === chosen, disabled: one.disabled }, one.text),
    ),
  );
  return found;
}

/** Radio buttons under one legend. */
export function radios(
  legend: string,
  choices: Choice[],
  chosen: string,
  changed: (value: string) => void,
): HTMLElement {
  numbered += 1;
  const name = `radio-${numbered}`;
  return h(
    "fieldset",
    { class: "radios" },
    h("legend", {}, legend),
    ...choices.map((one) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name,
          value: one.value,
          checked: one.value === chosen,
          onchange: () => changed(one.value),
        }),
        one.text,
      ),
    ),
  );
}

export function button(text: string, pressed: () => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick: pressed, ...props }, text);
}

/** Give the reader a file. */
export function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
