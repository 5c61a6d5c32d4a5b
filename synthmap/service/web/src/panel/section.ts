import { h } from "../dom";

/** A part of the panel that opens and closes; what it needs is loaded when it is first opened. */
export function section(
  title: string,
  body: HTMLElement,
  options: { open?: boolean; opened?: () => void } = {},
): HTMLElement {
  let first = true;
  const found = h(
    "details",
    {
      open: options.open,
      ontoggle: () => {
        if (found.open && first) {
          first = false;
          options.opened?.();
        }
      },
    },
    h("summary", {}, h("h2", {}, title)),
    body,
  );
  return found;
}
