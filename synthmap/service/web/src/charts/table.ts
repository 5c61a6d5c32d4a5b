import { h } from "../dom";
import { difference, figure } from "../format";
import type { Analysis, Figure, Row } from "../types";
import { reading } from "./ranked";

/** All rows of an analysis, each figure with its expected error, and its segments beside it. */
export function table(analysis: Analysis, named: (row: Row) => string): HTMLElement {
  const change = analysis.rows.some((row) => row.before && row.after);
  const heads = [
    "",
    ...(change ? ["before", "after", "difference"] : ["workers"]),
    ...analysis.segments,
    "read it as",
  ];
  const cell = (one: Figure | undefined, told = figure): HTMLElement =>
    h("td", { class: "number" }, one ? told(one.workers, one.expected_error) : "");
  // noisier than the row's total: how to read it stands beside it
  const segment = (one: Figure | undefined): HTMLElement => {
    const found = cell(one, change ? difference : figure);
    if (one?.trust !== "weak" && one?.trust !== "noise") return found;
    found.classList.add(one.trust);
    found.title = reading(one);
    found.append(h("div", { class: "soft" }, one.trust));
    return found;
  };
  const rows = analysis.rows.map((row) =>
    h(
      "tr",
      { class: row.trust },
      h("th", { scope: "row" }, named(row)),
      change && cell(row.before),
      change && cell(row.after),
      cell(row, change ? difference : figure),
      ...analysis.segments.map((name) => segment(row.segments[name])),
      h("td", { class: "soft" }, reading(row)),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": `${analysis.analysis_title}, all figures` },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...heads.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, ...rows),
    ),
  );
}
