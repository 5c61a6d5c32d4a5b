import {
  AttributionControl,
  addProtocol,
  type ErrorEvent,
  Map as MapLibre,
  NavigationControl,
  ScaleControl,
  setWorkerUrl,
} from "maplibre-gl";
import "maplibre-gl/dist/maplibre-gl.css";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?url";
import { ask, outdated, words } from "../api";
import type { Status } from "../status";
import type { PageSettings } from "../types";
import type { Store } from "../view";
import { onScheme, palette } from "./colors";

setWorkerUrl(workerUrl);
const MILES = navigator.language === "en-US";

/** Make the map without a release: paper, a base map where the operator set one, and its controls; `again` asks for missing tiles. */
export async function makeMap(
  container: HTMLElement,
  store: Store,
  status: Status,
  settings: PageSettings,
  again: () => void,
): Promise<MapLibre> {
  let failed = 0;
  addProtocol("release", async ({ url }, { signal }) => {
    const asked = performance.now();
    try {
      const answer = await ask(url.slice("release://".length), { signal });
      if (asked > failed) status.done("tiles");
      return { data: answer.status === 204 ? new ArrayBuffer(0) : await answer.arrayBuffer() };
    } catch (fault) {
      if (!outdated(fault)) {
        failed = performance.now();
        status.fail("tiles", words(fault), again);
      }
      throw fault;
    }
  });
  const at = store.view.at;
  const map = new MapLibre({
    container,
    style: { version: 8, sources: {}, layers: [] },
    attributionControl: false,
    center: at?.center ?? [0, 20],
    zoom: at?.zoom ?? 1,
    maxZoom: 17,
    dragRotate: false,
    pitchWithRotate: false,
    touchPitch: false,
    fadeDuration: 0,
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  map.addControl(new NavigationControl({ showCompass: false }), "top-right");
  map.addControl(new ScaleControl({ unit: MILES ? "imperial" : "metric" }), "bottom-right");
  map.getCanvas().setAttribute("aria-label", "Map of commuting. Arrow keys move it, plus and minus zoom.");
  await new Promise<void>((loaded) => {
    map.once("load", () => loaded());
  });
  map.addLayer({ id: "paper", type: "background", paint: { "background-color": palette().paper } });
  onScheme(() => map.setPaintProperty("paper", "background-color", palette().paper));
  if (settings.tiles) {
    map.addSource("base", { type: "raster", tiles: [settings.tiles], tileSize: 256, maxzoom: 19 });
    map.addLayer({
      id: "base",
      type: "raster",
      source: "base",
      paint: { "raster-saturation": -0.6, "raster-opacity": 0.7 },
    });
    const escaped = new Option(settings.attribution).innerHTML;
    map.addControl(new AttributionControl({ compact: true, customAttribution: escaped }), "bottom-right");
  }
  map.on("error", ({ error, ...about }: ErrorEvent & { sourceId?: string }) => {
    if (about.sourceId !== "base") console.error(error);
    else status.tell("base", "The base map is not all there: its server does not answer as it should.");
  });
  map.on("render", () => status.working("map"));
  // others that hear of it may draw anew
  map.on("idle", () => setTimeout(() => map.loaded() && status.rested("map")));
  map.on("moveend", () => {
    if (!store.view.release) return; // there is nothing to come back to
    const { lng, lat } = map.getCenter();
    store.set({ at: { center: [lng, lat], zoom: map.getZoom() } });
  });
  return map;
}
