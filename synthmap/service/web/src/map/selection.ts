import { analyse, around } from "../analysis";
import type { Analysis, Row } from "../types";
import type { Area, View } from "../view";
import type { Drawn, Flow, Place } from "./flows";

/** The other ends of an area's commuters: an analysis, and the same as flows to draw. */
export interface Selected {
  analysis: Analysis;
  drawn: Drawn;
}

/** Where those come from who work in the area, or where those work who live in it. */
export async function selected(
  view: View,
  area: Area,
  level: string,
  signal: AbortSignal,
): Promise<Selected> {
  const name = view.end === "work" ? "origins" : "destinations";
  const query = { by: level, top: view.top || 10, ...around(view) };
  const analysis = await analyse({ release: view.release, name, area, query }, signal);
  return { analysis, drawn: flowsOf(analysis, view, area, level) };
}

function flowsOf(analysis: Analysis, view: View, area: Area, level: string): Drawn {
  const units = analysis.rows.filter((row) => row.group === "unit");
  const placed = units.filter((row) => row.longitude !== null && row.longitude !== undefined);
  const own = new Set(area.kind === "units" && area.level === level ? area.ids : []);
  const inside = placed.filter((row) => own.has(row.id ?? ""));
  const here = { id: "\u0000area", name: "the area", ...middle(analysis, inside) };
  const others = placed.filter((row) => !own.has(row.id ?? "") && row.workers > 0);
  const places: Place[] = others.map((row) => ({
    id: row.id ?? "",
    name: `${level} ${row.id}`,
    lon: row.longitude ?? 0,
    lat: row.latitude ?? 0,
  }));
  const off = units.filter((row) => !placed.includes(row)).reduce((sum, row) => sum + row.workers, 0);
  const rest = analysis.rows.find((row) => row.group === "others");
  return {
    level,
    places: [here, ...places],
    flows: others.map((row) => flow(row, view, here.id)),
    elsewhere: off,
    whole: !rest?.workers,
  };
}

/** Where flows of the area start or end: at its own unit where it is one, else in the middle of its box. */
function middle(analysis: Analysis, own: Row[]): { lon: number; lat: number } {
  const [only] = own;
  if (only && own.length === 1) return { lon: only.longitude ?? 0, lat: only.latitude ?? 0 };
  const [west, south, east, north] = analysis.areas[0]?.bbox ?? [0, 0, 0, 0];
  return { lon: (west + (east < west ? east + 360 : east)) / 2, lat: (south + north) / 2 };
}

function flow(row: Row, view: View, here: string): Flow {
  const there = row.id ?? "";
  const [origin, destination] = view.end === "work" ? [there, here] : [here, there];
  return { origin, destination, count: row.workers, error: row.expected_error };
}
