import { h, s, show } from "../dom";
import { count, figure } from "../format";
import type { View } from "../view";
import { hue, palette } from "./colors";
import type { Flows, Left } from "./flows";
import { END_WORDS } from "./overview";
import { HEAT_OPACITY, type Zones } from "./zones";

/** What the drawn widths, circles and colours mean: made from the very scales that are drawn by. */
export class Legend {
  readonly #body = h("div", {});
  readonly element = h(
    "details",
    { class: "legend", hidden: true, open: window.matchMedia("(min-width: 48rem)").matches },
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
    if (!drawn || !view.top) return null;
    const { elsewhere, within } = drawn;
    if (drawn.flows.length ? !scale : !elsewhere.count && !within.count) return null;
    const samples = (scale?.samples ?? []).filter((one) => one.magnitude > 0);
    const rows = samples.map(({ magnitude, thickness: width, color }) => {
      const [red, green, blue, opacity] = color;
      const arrow = s("path", {
        d: `M1 0 V${width} H${57 - 3 * width} V${2 * width} L57 0 Z`, // half an arrow, as on the map
        fill: `rgba(${red},${green},${blue},${(opacity ?? 255) / 255})`,
      });
      return h(
        "li",
        {},
        s(
          "svg",
          {
            width: 58,
            height: Math.max(12, 2 * width),
            "aria-hidden": "true",
            "data-width": width.toFixed(2),
          },
          arrow,
        ),
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
      told(within, view.area ? "live and work in the area" : `live and work in the same ${drawn.level}`),
      told(elsewhere, "more come from off the map"),
      h("ul", {}, ...rows),
    );
  }

  #totals(view: View): HTMLElement | null {
    const { largest, level } = this.zones;
    if (!largest || view.totals === "none") return null;
    const places = level === "grid" ? "several zones together" : `by ${level}`;
    const title = h("h3", {}, `${view.end === "work" ? "Work here" : "Live here"}, ${places}`);
    if (view.totals === "thermal") {
      const bar = h("div", { class: "ramp" });
      const heat = palette().heat.map(
        (one) => `color-mix(in srgb, ${one} ${100 * HEAT_OPACITY}%, transparent)`,
      );
      bar.style.background = `linear-gradient(to right, transparent, ${heat.join(", ")}), ${palette().paper}`;
      return h(
        "div",
        { "data-legend": "thermal" },
        title,
        bar,
        h("p", { class: "ends" }, h("span", {}, count(0)), h("span", {}, `${count(largest)} and more`)),
        h("p", { class: "soft" }, "Workers at one place; neighbours add up."),
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

/** What no arrow tells, where there is any of it. */
function told({ count: workers, error }: Left, how: string): HTMLElement | false {
  return workers > 0 && h("p", { class: "soft" }, `${figure(workers, error ?? 0)} ${how}.`);
}
