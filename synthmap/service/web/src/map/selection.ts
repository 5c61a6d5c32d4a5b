import { analyse, around } from "../analysis";
import type { Query } from "../api";
import type { Analysis, Row } from "../types";
import type { Area, View } from "../view";
import type { Drawn, Flow, Left, Place } from "./flows";

const MOST = 1000; // units that an analysis ranks

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
  const own = new Set(area.kind === "units" && area.level === level && !view.buffer ? area.ids : []);
  const arrows = view.top || 10;
  const top = Math.min(MOST, arrows + own.size + 1); // one more: those from off the map are a row, too
  const ask = (one: string, query: Query): Promise<Analysis> =>
    analyse({ release: view.release, name: one, area, query: { ...query, ...around(view) } }, signal);
  const analysis = await ask(name, { by: level, top });
  const units = analysis.rows.filter((row) => row.group === "unit");
  const others = analysis.rows.find((row) => row.group === "others")?.workers ?? 0;
  const row = async (one: string, query: Query, is: (row: Row) => boolean): Promise<Left> =>
    left((await ask(one, query)).rows.find(is));

  const off = units.find((one) => !placed(one));
  const elsewhere =
    off || !others || view.end === "home"
      ? left(off)
      : await row("area-profile", { end: view.end }, (one) => one.group === "elsewhere");
  const inside = units.filter((one) => own.has(one.id ?? ""));
  const known = inside.length === own.size || !others;
  const within =
    known && inside.length < 2
      ? left(inside[0])
      : await row("inflow-outflow", {}, (one) => one.figure === "live_and_work");

  const here = { id: "\u0000area", name: "the area", ...middle(analysis, inside) };
  const there = units.filter((one) => placed(one) && !own.has(one.id ?? "") && one.workers > 0);
  const drawn = there.slice(0, arrows);
  const places: Place[] = drawn.map((one) => ({
    id: one.id ?? "",
    name: `${level} ${one.id}`,
    lon: one.longitude ?? 0,
    lat: one.latitude ?? 0,
  }));
  return {
    analysis,
    drawn: {
      level,
      places: [here, ...places],
      flows: drawn.map((one) => flow(one, view, here.id)),
      elsewhere,
      within,
      inside: within.count ? [{ origin: here.id, destination: here.id, ...within }] : [],
      whole: !others && drawn.length === there.length,
    },
  };
}

/** Whether a unit is on the map. */
function placed(row: Row): boolean {
  return row.longitude !== null && row.longitude !== undefined;
}

function left(row: Row | undefined): Left {
  return { count: row?.workers ?? 0, error: row?.expected_error };
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
