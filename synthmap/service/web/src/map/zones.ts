import type {
  ExpressionSpecification,
  FilterSpecification,
  GeoJSONFeature,
  GeoJSONSource,
  MapGeoJSONFeature,
  Map as MapLibre,
  PointLike,
} from "maplibre-gl";
import { address } from "../api";
import type { Area, End, View } from "../view";
import { hue, onScheme, palette } from "./colors";
import { nearest } from "./longitudes";

/** Pixels; the area of a circle, not its radius, tells the workers. */
const LARGEST = 28;
const SMALLEST = 1.5;
export const HEAT_OPACITY = 0.8;
const LAYERS = ["areas", "outlines", "thermal", "circles", "chosen-areas", "chosen-circles"];

/** A unit as tiles tell it. */
export interface Unit {
  id: string;
  level: string;
  living: number;
  /** What `living` is expected to be off by; `working` is exact. */
  livingError: number;
  working: number;
  zones: number;
  /** Its parents by level. */
  parents: Record<string, string>;
  at: [number, number];
}

/** Zones of a release, or what they are summed to at a zoom, with their totals. */
export class Zones {
  /** The largest total in view: what circles and heat are drawn by. */
  largest = 0;
  /** What is drawn at this zoom: zones, units of a level, or zones that are drawn together. */
  level = "";
  #drawn: { release: string; end: End } | null = null;
  #levels: string[] = [];

  constructor(
    private readonly map: MapLibre,
    private readonly scaled: () => void,
  ) {
    map.on("idle", () => this.#scale());
    onScheme(() => this.#recolour());
  }

  /** Draw a release. `levels` are its parent levels. */
  draw(view: View, levels: string[]): void {
    this.#levels = levels;
    if (this.#drawn?.release !== view.release || this.#drawn.end !== view.end) {
      this.#drawn = { release: view.release, end: view.end };
      this.largest = 0;
      this.#replace(view);
    }
    for (const [layer, totals] of [
      ["thermal", "thermal"],
      ["circles", "circles"],
    ] as const)
      this.map.setLayoutProperty(layer, "visibility", view.totals === totals ? "visible" : "none");
    this.choose(view.area);
  }

  /** Draw all anew the next time, with tiles that are asked for again. */
  forget(): void {
    this.#drawn = null;
  }

  /** Mark the units of an area. */
  choose(area: Area | null): void {
    if (!this.#drawn) return;
    const filter: FilterSpecification =
      area?.kind === "units" ? chosen(area.level, area.ids) : ["boolean", false];
    this.map.setFilter("chosen-areas", filter);
    this.map.setFilter("chosen-circles", filter);
  }

  /** The radius of a circle for so many workers, pixels: what the legend shows is what is drawn. */
  radius(workers: number): number {
    return this.largest ? Math.max(SMALLEST, LARGEST * Math.sqrt(workers / this.largest)) : 0;
  }

  /** The unit at a point of the screen: the smallest circle there, else the zone whose area it is. */
  at(point: { x: number; y: number }): Unit | null {
    if (!this.#drawn) return null;
    const box: [PointLike, PointLike] = [
      [point.x - 4, point.y - 4],
      [point.x + 4, point.y + 4],
    ];
    const layers = ["circles", "chosen-circles"].filter((one) => this.map.getLayer(one));
    const spots = this.map
      .queryRenderedFeatures(box, { layers })
      .sort((one, other) => total(one) - total(other));
    const found = spots[0] ?? this.map.queryRenderedFeatures([point.x, point.y], { layers: ["areas"] })[0];
    return found ? this.#unit(found) : null;
  }

  #unit(feature: MapGeoJSONFeature): Unit {
    const told = feature.properties as Record<string, string | number>;
    const point = feature.geometry.type === "Point" ? feature.geometry.coordinates : null;
    const parents = Object.fromEntries(
      this.#levels
        .filter((level) => typeof told[level] === "string")
        .map((level) => [level, String(told[level])]),
    );
    return {
      id: String(told.id),
      level: String(told.level),
      living: Number(told.out ?? 0),
      livingError: Number(told.out_error ?? 0),
      working: Number(told.in ?? 0),
      zones: Number(told.zones ?? 1),
      parents,
      at: (point as [number, number] | null) ?? [Number.NaN, Number.NaN],
    };
  }

  #replace(view: View): void {
    const { map } = this;
    for (const layer of LAYERS) if (map.getLayer(layer)) map.removeLayer(layer);
    if (map.getSource("zones")) map.removeSource("zones");
    const kind = view.end === "work" ? "destinations" : "origins";
    const tiles = address(["collections", `${view.release}.${kind}`, "tiles", "WebMercatorQuad"]);
    map.addSource("zones", { type: "vector", tiles: [`release://${tiles}/{z}/{y}/{x}`], maxzoom: 15 });
    const at = { source: "zones" };
    const none: FilterSpecification = ["boolean", false];
    map.addLayer({
      id: "areas",
      type: "fill",
      ...at,
      "source-layer": "areas",
      paint: { "fill-opacity": 0.12 },
    });
    map.addLayer({
      id: "outlines",
      type: "line",
      ...at,
      "source-layer": "areas",
      paint: { "line-width": 0.7 },
    });
    map.addLayer({
      id: "chosen-areas",
      type: "fill",
      ...at,
      "source-layer": "areas",
      filter: none,
      paint: { "fill-opacity": 0.45 },
    });
    map.addLayer({
      id: "thermal",
      type: "heatmap",
      ...at,
      "source-layer": "points",
      paint: { "heatmap-opacity": HEAT_OPACITY },
    });
    map.addLayer({
      id: "circles",
      type: "circle",
      ...at,
      "source-layer": "points",
      layout: { "circle-sort-key": ["-", ["get", "count"]] },
    });
    map.addLayer({ id: "chosen-circles", type: "circle", ...at, "source-layer": "points", filter: none });
    this.#recolour();
    this.#rescale();
  }

  /** See how large totals are in view, and draw by that. */
  #scale(): void {
    if (!this.#drawn || !this.map.getSource("zones")) return;
    const seen = this.#seen();
    const largest = nice(Math.max(0, ...seen.map(total)));
    const level = String(seen[0]?.properties.level ?? this.level); // one at a zoom
    if (!largest || (largest === this.largest && level === this.level)) return;
    this.largest = largest;
    this.level = level;
    this.#rescale();
    this.scaled();
  }

  /** What is in view. */
  #seen(): GeoJSONFeature[] {
    const bounds = this.map.getBounds();
    const middle = bounds.getCenter().lng;
    const seen = ([longitude, latitude]: number[]): boolean =>
      bounds.contains([nearest(longitude ?? 0, middle), latitude ?? 0]);
    return this.map
      .querySourceFeatures("zones", { sourceLayer: "points" })
      .filter((one) => one.geometry.type === "Point" && seen(one.geometry.coordinates));
  }

  #rescale(): void {
    const share: ExpressionSpecification = ["/", ["get", "count"], this.largest || 1e9]; // small until known
    const radius: ExpressionSpecification = ["max", SMALLEST, ["*", LARGEST, ["sqrt", share]]];
    this.map.setPaintProperty("circles", "circle-radius", radius);
    this.map.setPaintProperty("chosen-circles", "circle-radius", radius);
    this.map.setPaintProperty("thermal", "heatmap-weight", ["min", 1, share]);
    this.map.setPaintProperty("thermal", "heatmap-radius", 36);
    this.map.setPaintProperty("thermal", "heatmap-intensity", 2.5); // so that the largest alone reaches the end of the scale
  }

  #recolour(): void {
    if (!this.#drawn) return;
    const { map } = this;
    const { line, chosen: mark, paper, heat } = palette();
    const colour = hue(this.#drawn.end);
    map.setPaintProperty("areas", "fill-color", colour);
    map.setPaintProperty("outlines", "line-color", line);
    map.setPaintProperty("chosen-areas", "fill-color", mark);
    for (const [layer, paint] of [
      ["circles", colour],
      ["chosen-circles", mark],
    ] as const) {
      map.setPaintProperty(layer, "circle-color", paint);
      map.setPaintProperty(layer, "circle-opacity", 0.45);
      map.setPaintProperty(layer, "circle-stroke-color", paper);
      map.setPaintProperty(layer, "circle-stroke-width", 0.5);
    }
    const steps = heat.flatMap((one, i) => [(i + 1) / heat.length, one]);
    const ramp = ["interpolate", ["linear"], ["heatmap-density"], 0, `${heat[0]}00`, ...steps];
    map.setPaintProperty("thermal", "heatmap-color", ramp as ExpressionSpecification);
  }
}

/** Outline of an area that is not made of units: drawn, uploaded, or around something. */
export function outline(map: MapLibre, geometry: GeoJSON.Geometry | null): void {
  const data: GeoJSON.FeatureCollection = {
    type: "FeatureCollection",
    features: geometry ? [{ type: "Feature", geometry, properties: {} }] : [],
  };
  const source = map.getSource("outline") as GeoJSONSource | undefined;
  if (source) {
    source.setData(data);
    return;
  }
  map.addSource("outline", { type: "geojson", data });
  map.addLayer({
    id: "outline-fill",
    type: "fill",
    source: "outline",
    filter: ["==", ["geometry-type"], "Polygon"],
    paint: { "fill-opacity": 0.15 },
  });
  map.addLayer({ id: "outline", type: "line", source: "outline", paint: { "line-width": 2.5 } });
  const recolour = (): void => {
    map.setPaintProperty("outline", "line-color", palette().chosen);
    map.setPaintProperty("outline-fill", "fill-color", palette().chosen);
  };
  recolour();
  onScheme(recolour);
}

function chosen(level: string, ids: string[]): FilterSpecification {
  const own = ["all", ["==", ["get", "level"], level], ["in", ["get", "id"], ["literal", ids]]];
  return (
    level === "zone" ? own : ["any", own, ["in", ["get", level], ["literal", ids]]]
  ) as FilterSpecification;
}

function total(feature: { properties: Record<string, unknown> }): number {
  return Number(feature.properties.count ?? 0);
}

/** The next round number, so that scales do not change with every move. */
function nice(value: number): number {
  if (value <= 0) return 0;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 1.5, 2, 3, 5, 7.5, 10].find((one) => one * power >= value) ?? 10);
}
