import type { LngLatBounds } from "maplibre-gl";
import { type Paged, pages } from "../api";
import type { Levels } from "../types";
import type { End, View } from "../view";
import type { Drawn } from "./flows";
import { nearest, unwound } from "./longitudes";

/** Units in view at most: more flows between more places are a tangle. What the service reads beforehand fits it. */
const UNITS = 150;

interface Answer extends Paged {
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

/** The largest flows whose chosen end is in view, at one level. */
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
  const features: Answer["features"] = [];
  const headers = { Accept: "application/geo+json" };
  for await (const page of pages<Answer>(["releases", view.release, "od"], { query, signal, headers }))
    features.push(...page.features);
  const places = new Map<string, { id: string; name: string; lon: number; lat: number }>();
  const flows: Drawn["flows"] = [];
  let elsewhere = 0;
  const put = (name: string, [lon, lat]: number[]): string => {
    if (!places.has(name)) places.set(name, { id: name, name, lon: lon ?? 0, lat: lat ?? 0 });
    return name;
  };
  for (const { geometry, properties } of features) {
    const ends = geometry ? endsOf(geometry) : null;
    if (!ends) elsewhere += properties.count;
    else if (properties.origin !== properties.destination)
      flows.push({
        origin: put(properties.origin, ends[0]),
        destination: put(properties.destination, ends[1]),
        count: properties.count,
        error: properties.expected_error,
      });
  }
  return { level, places: [...places.values()], flows, elsewhere, whole: features.length < view.top };
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
