import type { GeoJSONSource, Map as MapLibre, MapMouseEvent } from "maplibre-gl";
import { button, h } from "../dom";
import type { Point } from "../view";
import { onScheme, palette } from "./colors";

const TOUCH = window.matchMedia("(pointer: coarse)");

/**
 * Draws an area: a click for each corner, or, from the keyboard, a corner at the middle of the map, which the arrow
 * keys move.
 */
export class Draw {
  readonly element = h("div", { class: "draw", role: "group", "aria-label": "Draw an area", hidden: true });
  readonly #cross = h("div", { class: "cross", "aria-hidden": "true" });
  readonly #told = h("p", { role: "status" });
  readonly #finish: HTMLButtonElement;
  #corners: Point[] = [];
  #before: Element | null = null;

  constructor(
    private readonly map: MapLibre,
    private readonly drawn: (ring: Point[]) => void,
  ) {
    this.#finish = button("Finish", () => this.#end(true), { class: "main" });
    this.element.append(
      this.#cross,
      h(
        "div",
        { class: "tools" },
        this.#told,
        h(
          "div",
          { class: "buttons" },
          button("Add a corner", () => this.#add(map.getCenter().toArray())),
          button("Undo", () => this.#undo()),
          this.#finish,
          button("Cancel", () => this.#end(false)),
        ),
      ),
    );
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this.#end(false));
    map.getCanvas().addEventListener("keydown", (event) => {
      if (!this.active) return;
      if (event.key === "Enter") this.#add(map.getCenter().toArray());
      if (event.key === "Escape") this.#end(false);
    });
    map.on("click", (event: MapMouseEvent) => this.active && this.#add(event.lngLat.toArray()));
    map.addSource("drawing", { type: "geojson", data: { type: "FeatureCollection", features: [] } });
    map.addLayer({
      id: "drawing-line",
      type: "line",
      source: "drawing",
      paint: { "line-width": 2.5, "line-dasharray": [2, 1] },
    });
    map.addLayer({
      id: "drawing-corners",
      type: "circle",
      source: "drawing",
      paint: { "circle-radius": 4.5 },
    });
    this.#colour();
    onScheme(() => this.#colour());
  }

  get active(): boolean {
    return !this.element.hidden;
  }

  start(): void {
    this.#corners = [];
    this.#before = document.activeElement;
    this.element.hidden = false;
    this.#show();
    for (const layer of ["drawing-line", "drawing-corners"]) this.map.moveLayer(layer);
    this.map.doubleClickZoom.disable();
    this.map.getCanvas().focus();
  }

  #end(finished: boolean): void {
    const ring = this.#corners;
    this.#corners = [];
    this.#show();
    const { activeElement } = document;
    const held = this.element.contains(activeElement) || activeElement === this.map.getCanvas();
    this.element.hidden = true;
    if (held && this.#before instanceof HTMLElement) this.#before.focus({ preventScroll: true });
    this.map.doubleClickZoom.enable();
    if (finished && ring.length >= 3) this.drawn(ring.map(written));
  }

  #add(corner: number[]): void {
    const [longitude, latitude] = corner as Point;
    const last = this.#corners.at(-1);
    if (last && last[0] === longitude && last[1] === latitude) return;
    this.#corners.push([longitude, latitude]);
    this.#show();
  }

  #undo(): void {
    this.#corners.pop();
    this.#show();
  }

  #show(): void {
    const number = this.#corners.length;
    this.#finish.disabled = number < 3;
    this.#told.textContent =
      number === 0
        ? TOUCH.matches
          ? "Tap the corners, or move the map and add one at the cross."
          : "Click the corners, or move the map with the arrow keys and press Enter for a corner at the cross."
        : `${number} ${number === 1 ? "corner" : "corners"}${number < 3 ? ", at least 3 are needed" : ""}.`;
    const line = number > 2 ? [...this.#corners, this.#corners[0] as Point] : this.#corners;
    const source = this.map.getSource("drawing") as GeoJSONSource;
    source.setData({
      type: "FeatureCollection",
      features: [
        ...(number > 1 ? [feature({ type: "LineString", coordinates: line })] : []),
        ...this.#corners.map((coordinates) => feature({ type: "Point", coordinates })),
      ],
    });
  }

  #colour(): void {
    this.map.setPaintProperty("drawing-line", "line-color", palette().chosen);
    this.map.setPaintProperty("drawing-corners", "circle-color", palette().chosen);
  }
}

/** A corner as a link writes it, so that who follows one gets the same area. */
function written(corner: Point): Point {
  return corner.map((one) => Number(one.toFixed(5))) as Point;
}

function feature(geometry: GeoJSON.Geometry): GeoJSON.Feature {
  return { type: "Feature", geometry, properties: {} };
}
