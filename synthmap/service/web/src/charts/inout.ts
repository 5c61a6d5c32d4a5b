import { h, s } from "../dom";
import { figure } from "../format";
import type { Analysis, Row } from "../types";

const MOST = 34; // pixels of the widest arrow

/** Inflow and outflow as OnTheMap draws it: who comes in, who stays, who goes out; widths tell workers. */
export function inout(analysis: Analysis): HTMLElement {
  const of = (name: string): Row | undefined => analysis.rows.find((row) => row.figure === name);
  const [inward, inside, outward] = [of("in_commuters"), of("live_and_work"), of("out_commuters")];
  const most = Math.max(1, ...[inward, inside, outward].map((row) => row?.workers ?? 0));
  const width = (row?: Row): number => Math.max(1.5, (MOST * (row?.workers ?? 0)) / most);
  const told = (row?: Row): string => (row ? figure(row.workers, row.expected_error) : "–");
  const text = (x: number, y: number, words: string, anchor = "middle", strong = false): SVGElement =>
    s("text", { x, y, "text-anchor": anchor, class: strong ? "label strong" : "label" }, words);
  const label = `In: ${told(inward)}. Live and work: ${told(inside)}. Out: ${told(outward)}.`;
  return h(
    "figure",
    {},
    s(
      "svg",
      { viewBox: "0 0 360 190", role: "img", "aria-label": label, class: "inout" },
      s("circle", { cx: 180, cy: 88, r: 62, fill: "none", stroke: "var(--stroke)", "stroke-width": 1.5 }),
      arrow(8, 132, 88, width(inward), "var(--work)"),
      arrow(228, 352, 88, width(outward), "var(--home)"),
      s("circle", {
        cx: 180,
        cy: 88,
        r: Math.max(3, 40 * Math.sqrt((inside?.workers ?? 0) / most)),
        fill: "var(--chosen)",
        "fill-opacity": 0.3,
      }),
      text(8, 46, told(inward), "start", true),
      text(8, 60, "come in to work", "start"),
      text(352, 46, told(outward), "end", true),
      text(352, 60, "go out to work", "end"),
      text(180, 86, told(inside), "middle", true),
      text(180, 100, "live and work"),
      text(180, 172, "the area"),
    ),
  );
}

function arrow(start: number, end: number, y: number, width: number, colour: string): SVGElement {
  const head = Math.max(9, width * 0.8);
  const half = width / 2;
  const neck = end - head;
  const d = `M${start} ${y - half} H${neck} V${y - half - 5} L${end} ${y} L${neck} ${y + half + 5} V${y + half} H${start} Z`;
  return s("path", { d, fill: colour, "fill-opacity": 0.75 });
}
