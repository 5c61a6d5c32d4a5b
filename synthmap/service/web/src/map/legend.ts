import { h, s, show } from "../dom";
import { count } from "../format";
import type { View } from "../view";
import { hue, palette } from "./colors";
import type { Flows } from "./flows";
import { END_WORDS } from "./overview";
import type { Zones } from "./zones";

/** What the drawn widths, circles and colours mean: made from the very scales that are drawn by. */
export class Legend {
  readonly #body = h("div", {});
  readonly element = h(
    "details",
    { class: "legend", open: window.matchMedia("(min-width: 48rem)").matches },
    h("summary", {}, "Legend"),
    this.#body,
  );

  constructor(
    private readonly zones: Zones,
    private readonly flows: Flows,
  ) {}

  draw(view: View): void {
    show(this.#body, this.#flows(view), this.#totals(view));
    this.element.hidden = !this.#body.childElementCount;
  }

  #flows(view: View): HTMLElement | null {
    const { drawn, scale } = this.flows;
    if (!drawn || !scale || !view.top) return null;
    const samples = scale.samples.filter((one) => one.magnitude > 0);
    const rows = samples.map(({ magnitude, thickness, color }) => {
      const width = Math.max(1, thickness);
      const [red, green, blue, opacity] = color;
      const line = s("line", {
        x1: 2,
        x2: 46,
        y1: 12,
        y2: 12,
        stroke: `rgba(${red},${green},${blue},${(opacity ?? 255) / 255})`,
        "stroke-width": width,
      });
      const head = s("path", { d: "M46 4 L56 12 L46 20 Z", fill: `rgb(${red},${green},${blue})` });
      return h(
        "li",
        {},
        s("svg", { width: 58, height: 24, "aria-hidden": "true" }, line, head),
        count(magnitude),
      );
    });
    const which = view.area
      ? view.end === "work"
        ? "From where they come"
        : "Where they work"
      : `Largest flows, ${END_WORDS[view.end]} in view`;
    return h(
      "div",
      { "data-legend": "flows" },
      h("h3", {}, `Workers, home → work, by ${drawn.level}`),
      h("p", { class: "soft" }, `${which}: ${count(drawn.flows.length)} drawn.`),
      drawn.elsewhere > 0 &&
        h("p", { class: "soft" }, `${count(drawn.elsewhere)} more come from off the map.`),
      h("ul", {}, ...rows),
    );
  }

  #totals(view: View): HTMLElement | null {
    const largest = this.zones.largest;
    if (!largest || view.totals === "none") return null;
    const title = h("h3", {}, view.end === "work" ? "Work here" : "Live here");
    if (view.totals === "thermal") {
      const bar = h("div", { class: "ramp" });
      bar.style.background = `linear-gradient(to right, transparent, ${palette().heat.join(", ")})`;
      return h(
        "div",
        { "data-legend": "thermal" },
        title,
        bar,
        h("p", { class: "ends" }, h("span", {}, "few"), h("span", {}, "many")),
      );
    }
    const values = [largest, largest / 5, largest / 50].map((one) => Math.max(1, Math.round(one)));
    const rows = [...new Set(values)].map((value) => {
      const radius = this.zones.radius(value);
      const circle = s("circle", {
        cx: 29,
        cy: radius + 1,
        r: radius,
        fill: hue(view.end),
        "fill-opacity": 0.45,
        stroke: hue(view.end),
      });
      const size = 2 * radius + 2;
      return h(
        "li",
        {},
        s(
          "svg",
          { width: 58, height: size, "aria-hidden": "true", "data-radius": radius.toFixed(2) },
          circle,
        ),
        count(value),
      );
    });
    return h("div", { "data-legend": "circles" }, title, h("ul", {}, ...rows));
  }
}
