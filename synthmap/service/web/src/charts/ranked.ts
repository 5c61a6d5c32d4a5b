import { h } from "../dom";
import { difference, figure, percent } from "../format";
import type { Figure, Trust } from "../types";

export const TRUST: Record<Trust, string> = {
  exact: "exact",
  signal: "",
  weak: "weak: the error is above half of it",
  noise: "noise: the error is as large as it",
};

/** How to read a figure: a change by whether it is more than noise, unless it has none; others by their trust. */
export function reading(one: Figure & { within_noise?: boolean }): string {
  if (one.within_noise !== undefined && one.expected_error > 0)
    return one.within_noise ? "within noise" : "more than noise";
  return one.trust === "signal" ? "signal" : TRUST[one.trust];
}

export interface Bar extends Figure {
  label: string;
  share?: number;
  within_noise?: boolean;
}

/**
 * Bars as a table: the length tells workers, a whisker the expected error; noise is pale.
 *
 * Differences start in the middle: more to the right, fewer to the left.
 */
export function ranked(caption: string, bars: Bar[], change = false): HTMLElement {
  const most = Math.max(1, ...bars.map((one) => Math.abs(one.workers) + one.expected_error));
  const least = change ? -most : 0;
  const span = (element: HTMLElement, from: number, to: number): void => {
    const low = Math.max(least, from);
    element.style.left = `${(100 * (low - least)) / (most - least)}%`;
    element.style.width = `${(100 * (to - low)) / (most - least)}%`;
  };
  const told = change ? difference : figure;
  const rows = bars.map((one) => {
    const kind = one.within_noise ? "noise" : one.within_noise === false ? "signal" : one.trust;
    const bar = h("span", { class: `bar ${kind}${one.workers < 0 ? " negative" : ""}` });
    span(bar, Math.min(0, one.workers), Math.max(0, one.workers));
    const whisker = h("span", { class: "whisker" });
    span(whisker, one.workers - one.expected_error, one.workers + one.expected_error);
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, one.label),
      h(
        "td",
        { class: "drawn", "aria-hidden": "true" },
        h("span", { class: change ? "track change" : "track" }, bar, one.expected_error > 0 && whisker),
      ),
      h(
        "td",
        { class: "number", title: reading(one) },
        told(one.workers, one.expected_error),
        change && h("div", { class: "soft" }, reading(one)),
      ),
      !change && h("td", { class: "number soft" }, one.share === undefined ? "" : percent(one.share)),
    );
  });
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", { class: "ranked" }, h("caption", {}, caption), h("tbody", {}, ...rows)),
  );
}
