import { button, h } from "./dom";

/** The page's frame: where everything stands. */
export interface Frame {
  map: HTMLElement;
  over: HTMLElement;
  panel: HTMLElement;
}

/** Lay the page out. */
export function frame(status: HTMLElement): Frame {
  const map = h("div", { class: "canvas" });
  const over = h("div", { class: "over" });
  const panel = h("div", { class: "panel", id: "panel" });
  const copied = h("span", { role: "status", class: "soft" });
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(location.href);
      copied.textContent = "copied";
    } catch {
      copied.textContent = "copy it from the address bar";
    }
    setTimeout(() => {
      copied.textContent = "";
    }, 4000);
  };
  document.body.append(
    h("a", { class: "skip", href: "#panel", onclick: skip }, "Skip to the controls"),
    h(
      "header",
      {},
      h("a", { class: "name", href: "./" }, "synthmap"),
      h("h1", {}, "Who commutes from where to where"),
      h("span", { class: "grow" }),
      copied,
      button("Copy link", () => void copy(), { title: "A link that restores this view" }),
    ),
    h(
      "main",
      {},
      h("section", { class: "map", "aria-label": "Map" }, map, over, status),
      h("aside", { "aria-label": "Controls and results" }, panel),
    ),
  );
  return { map, over, panel };

  // the part of the address behind # holds the view
  function skip(event: Event): void {
    event.preventDefault();
    panel.querySelector<HTMLElement>("select, input, button, summary")?.focus();
  }
}
