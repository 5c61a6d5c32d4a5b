import type { LngLatBounds } from "maplibre-gl";
import { type Paged, pages } from "../api";
import type { Levels } from "../types";
import type { End, View } from "../view";
import type { Drawn, Flow } from "./flows";
import { nearest, unwound } from "./longitudes";

/** Units in view at most: more flows between more places are a tangle. What the service reads beforehand fits it. */
const UNITS = 150;

interface Answer extends Paged {
  /** Workers of all flows that fit, not only of the largest. */
  sums: { between: number; within: number; elsewhere: number };
  features: {
    geometry: { type: string; coordinates: unknown } | null;
    properties: { origin: string; destination: string; count: number; expected_error?: number };
  }[];
}

/** The level that suits what is in view: the finest that has not too many units there. */
export function suitedLevel(levels: Levels, bounds: LngLatBounds): string {
  const [, south, , north] = levels.extent;
  const [west, east] = unwound(levels.extent, bounds.getCenter().lng);
  const width = Math.max(1e-9, Math.min(east, bounds.getEast()) - Math.max(west, bounds.getWest()));
  const height = Math.max(1e-9, Math.min(north, bounds.getNorth()) - Math.max(south, bounds.getSouth()));
  const share = Math.min(1, (width * height) / Math.max(1e-9, (east - west) * (north - south)));
  const fitting = levels.levels.filter((one) => one.units * share <= UNITS);
  return fitting.at(-1)?.id ?? levels.levels[0]?.id ?? "zone";
}

/** The largest flows between units whose chosen end is in view, at one level; how many others there are. */
export async function overview(
  view: View,
  level: string,
  levels: Levels,
  bounds: LngLatBounds,
  signal: AbortSignal,
): Promise<Drawn> {
  const query = {
    level,
    top: view.top,
    f: "geojson",
    bbox: box(levels.extent, bounds),
    bbox_end: view.end === "work" ? "destination" : "origin",
  };
  const largest = async (kind: string): Promise<Pick<Answer, "sums" | "features">> => {
    const asked = { query: { ...query, kind }, signal, headers: { Accept: "application/geo+json" } };
    const found = { sums: { between: 0, within: 0, elsewhere: 0 }, features: [] as Answer["features"] };
    for await (const page of pages<Answer>(["releases", view.release, "od"], asked)) {
      found.sums = page.sums;
      found.features.push(...page.features);
    }
    return found;
  };
  const [between, within] = await Promise.all([largest("between"), largest("within")]);
  const places = new Map<string, { id: string; name: string; lon: number; lat: number }>();
  const flows: Flow[] = [];
  const put = (name: string, [lon, lat]: number[]): void => {
    if (!places.has(name)) places.set(name, { id: name, name, lon: lon ?? 0, lat: lat ?? 0 });
  };
  for (const feature of between.features) {
    const ends = feature.geometry && endsOf(feature.geometry);
    if (!ends) continue;
    const flow = flowOf(feature);
    put(flow.origin, ends[0]);
    put(flow.destination, ends[1]);
    flows.push(flow);
  }
  return {
    level,
    places: [...places.values()],
    flows,
    elsewhere: { count: view.end === "work" ? between.sums.elsewhere : 0 }, // homes off the map are not in view
    within: { count: between.sums.within },
    inside: within.features.map(flowOf),
    whole: between.features.length < view.top,
  };
}

function flowOf({ properties }: Answer["features"][number]): Flow {
  const { origin, destination, count } = properties;
  return { origin, destination, count, error: properties.expected_error };
}

function endsOf(geometry: { type: string; coordinates: unknown }): [number[], number[]] | null {
  if (geometry.type === "Point") return [geometry.coordinates as number[], geometry.coordinates as number[]];
  const lines =
    geometry.type === "LineString"
      ? [geometry.coordinates as number[][]]
      : (geometry.coordinates as number[][][]);
  const start = lines[0]?.[0];
  const end = lines.at(-1)?.at(-1);
  return start && end ? [start, end] : null;
}

/** The box to ask for; nothing where all of a release is in view, so that the answer can be kept. */
function box(extent: Levels["extent"], bounds: LngLatBounds): string | undefined {
  const [, south, , north] = extent;
  const [west, east] = unwound(extent, bounds.getCenter().lng);
  const seen = [bounds.getWest(), bounds.getSouth(), bounds.getEast(), bounds.getNorth()] as const;
  const all = seen[0] <= west && seen[1] <= south && seen[2] >= east && seen[3] >= north;
  if (all || seen[2] - seen[0] >= 360) return undefined;
  const edges = [nearest(seen[0], 0), Math.max(-90, seen[1]), nearest(seen[2], 0), Math.min(90, seen[3])];
  return edges.map((edge) => edge.toFixed(4)).join(",");
}

/** What the end in a box is called. */
export const END_WORDS: Record<End, string> = { work: "workplaces", home: "homes" };
