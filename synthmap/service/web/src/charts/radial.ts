import { h, s } from "../dom";
import { count, figure, number } from "../format";
import { hue, palette } from "../map/colors";
import type { Analysis, Row } from "../types";

const SECTORS = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
const SIZE = 300;
const OUTER = 118;

/** Distance and direction as rings and sectors: the darker, the more workers; the same figures stand in the table. */
export function radial(analysis: Analysis): HTMLElement {
  const sectors = analysis.rows.filter((row) => SECTORS.includes(row.direction ?? ""));
  const starts = [...new Set(sectors.map((row) => row.from ?? 0))].sort((one, other) => one - other);
  const most = Math.max(1, ...sectors.map((row) => row.workers));
  const units = String(analysis.parameters.units ?? "");
  const end = analysis.parameters.end === "home" ? "home" : "work";
  const middle = SIZE / 2;
  const drawn = sectors.map((row) => {
    const ring = starts.indexOf(row.from ?? 0);
    const [inner, outer] = [ring, ring + 1].map((one) => (OUTER * one) / starts.length) as [number, number];
    const share = row.workers / most;
    return s(
      "path",
      {
        d: sector(middle, SECTORS.indexOf(row.direction ?? ""), inner, outer),
        fill: hue(end),
        "fill-opacity": row.workers ? (0.08 + 0.87 * share).toFixed(3) : "0",
        stroke: palette().line,
        "stroke-width": 0.7,
        "stroke-dasharray": row.trust === "noise" && row.workers ? "2 2" : null,
      },
      s("title", {}, `${row.direction}, ${band(row, units)}: ${figure(row.workers, row.expected_error)}`),
    );
  });
  const names = SECTORS.map((name, i) => {
    const angle = (Math.PI / 4) * i;
    const at = { x: middle + (OUTER + 16) * Math.sin(angle), y: middle - (OUTER + 16) * Math.cos(angle) + 4 };
    return s("text", { ...at, "text-anchor": "middle", class: "label" }, name);
  });
  const rings = starts
    .slice(1)
    .map((from, i) =>
      s(
        "text",
        { x: middle + 3, y: middle - (OUTER * (i + 1)) / starts.length + 11, class: "label ring" },
        number(from),
      ),
    );
  const label = `Commuters by direction and distance (${units}): ${count(most)} in the fullest sector`;
  const steps = [0, 0.5, 1].map((one) => h("span", {}, count(Math.round(one * most))));
  const ramp = h("div", { class: "ramp" });
  ramp.style.background = `linear-gradient(to right, color-mix(in srgb, ${hue(end)} 8%, transparent), color-mix(in srgb, ${hue(end)} 95%, transparent))`;
  return h(
    "figure",
    {},
    s(
      "svg",
      { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": label, class: "radial" },
      ...drawn,
      ...names,
      ...rings,
    ),
    h(
      "figcaption",
      {},
      `Rings: ${units}, from the area. Dashed: noise outweighs the figure.`,
      ramp,
      h("p", { class: "ends" }, ...steps),
    ),
  );
}

/** A distance band in words. */
export function band(row: Row, units: string): string {
  if (row.to === null || row.to === undefined) return row.from ? `over ${number(row.from)} ${units}` : "";
  return row.from ? `${number(row.from)} to ${number(row.to)} ${units}` : `under ${number(row.to)} ${units}`;
}

function sector(middle: number, index: number, inner: number, outer: number): string {
  const [start, end] = [index - 0.5, index + 0.5].map((one) => (Math.PI / 4) * one) as [number, number];
  const at = (radius: number, angle: number): string =>
    `${(middle + radius * Math.sin(angle)).toFixed(2)} ${(middle - radius * Math.cos(angle)).toFixed(2)}`;
  if (inner === 0)
    return `M${middle} ${middle} L${at(outer, start)} A${outer} ${outer} 0 0 1 ${at(outer, end)} Z`;
  return `M${at(inner, start)} L${at(outer, start)} A${outer} ${outer} 0 0 1 ${at(outer, end)} L${at(inner, end)} A${inner} ${inner} 0 0 0 ${at(inner, start)} Z`;
}
