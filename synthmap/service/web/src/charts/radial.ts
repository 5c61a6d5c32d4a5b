import { h, s } from "../dom";
import { count, difference, figure, number } from "../format";
import type { Analysis, Row } from "../types";

const SECTORS = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
const SIZE = 300;
const OUTER = 118;

/**
 * Distance and direction as rings and sectors: the darker, the more workers; the same figures stand in the table.
 *
 * Of two releases, it shows differences: more in one hue, fewer in the other.
 */
export function radial(analysis: Analysis): HTMLElement {
  const sectors = analysis.rows.filter((row) => SECTORS.includes(row.direction ?? ""));
  const starts = [...new Set(sectors.map((row) => row.from ?? 0))].sort((one, other) => one - other);
  const most = Math.max(1, ...sectors.map((row) => Math.abs(row.workers)));
  const change = analysis.analysis === "time";
  const told = change ? difference : figure;
  const units = String(analysis.parameters.units ?? "");
  const end = analysis.parameters.end === "home" ? "home" : "work";
  const [more, fewer] = change ? ["var(--work)", "var(--home)"] : [`var(--${end})`, `var(--${end})`];
  const middle = SIZE / 2;
  const drawn = sectors.map((row) => {
    const ring = starts.indexOf(row.from ?? 0);
    const [inner, outer] = [ring, ring + 1].map((one) => (OUTER * one) / starts.length) as [number, number];
    const share = Math.abs(row.workers) / most;
    const noise = change ? row.within_noise : row.trust === "noise";
    return s(
      "path",
      {
        d: sector(middle, SECTORS.indexOf(row.direction ?? ""), inner, outer),
        fill: row.workers < 0 ? fewer : more,
        "fill-opacity": row.workers ? (0.08 + 0.87 * share).toFixed(3) : "0",
        stroke: "var(--stroke)",
        "stroke-width": 0.7,
        "stroke-dasharray": noise && row.workers ? "2 2" : null,
      },
      s("title", {}, `${row.direction}, ${band(row, units)}: ${told(row.workers, row.expected_error)}`),
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
  const label = change
    ? `Change by direction and distance (${units}): at most ${count(most)} more or fewer in a sector`
    : `Commuters by direction and distance (${units}): ${count(most)} in the fullest sector`;
  const steps = change
    ? [difference(-most, 0), "0", difference(most, 0)]
    : [0, 0.5, 1].map((one) => count(Math.round(one * most)));
  const ramp = h("div", { class: "ramp" });
  const pale = (colour: string, share: number): string =>
    `color-mix(in srgb, ${colour} ${share}%, transparent)`;
  const colours = change
    ? [pale(fewer, 95), `${pale(fewer, 8)} 50%`, `${pale(more, 8)} 50%`, pale(more, 95)]
    : [pale(more, 8), pale(more, 95)];
  ramp.style.background = `linear-gradient(to right, ${colours.join(", ")})`;
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
      `Rings: ${units}, from the area. Dashed: ${change ? "within noise" : "noise outweighs the figure"}.`,
      ramp,
      h("p", { class: "ends" }, ...steps.map((one) => h("span", {}, one))),
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
