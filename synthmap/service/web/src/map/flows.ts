import { MapboxOverlay } from "@deck.gl/mapbox";
import type { ScaleState } from "@flowmap.gl/data";
import { FlowmapLayer, PickingType } from "@flowmap.gl/layers";
import type { Map as MapLibre } from "maplibre-gl";
import { isDark, onScheme, palette } from "./colors";
import { Counted } from "./picking";

export interface Place {
  id: string;
  name: string;
  lon: number;
  lat: number;
}

export interface Flow {
  origin: string;
  destination: string;
  count: number;
  error?: number | undefined;
}

/** Flows as they are drawn. */
export interface Drawn {
  level: string;
  places: Place[];
  flows: Flow[];
  /** Workers whose other end is not on the map. */
  elsewhere: number;
  /** Whether these are all the flows there are, not only the largest. */
  whole: boolean;
}

export interface Hovered {
  x: number;
  y: number;
  from: string;
  to: string;
  count: number;
  error: number | null;
}

/**
 * The layer of flows: width tells workers, arrows the direction.
 *
 * Flows that are all there are joined by the layer where they would overlap; a choice of the largest is drawn as it is,
 * since sums over a choice would be too small.
 */
export class Flows {
  drawn: Drawn | null = null;
  scale: ScaleState["flowThickness"];
  readonly #overlay = new MapboxOverlay({
    interleaved: false,
    layers: [],
    pickingRadius: 3, // pixels: many flows are thin
    onLoad: () => this.#overlay.getCanvas()?.setAttribute("tabindex", "-1"), // the keyboard is for the map's own canvas
  });

  constructor(
    map: MapLibre,
    private readonly hovered: (over: Hovered | null) => void,
    private readonly scaled: () => void,
  ) {
    map.addControl(this.#overlay);
    onScheme(() => this.draw(this.drawn));
  }

  draw(drawn: Drawn | null): void {
    this.drawn = drawn;
    if (!drawn?.flows.length) this.scale = undefined;
    this.hovered(null);
    this.#overlay.setProps({ layers: drawn?.flows.length ? [this.#layer(drawn)] : [] });
    this.scaled();
  }

  #layer(drawn: Drawn): FlowmapLayer<Place, Flow> {
    const places = new Map(drawn.places.map((one) => [one.id, one.name]));
    return new FlowmapLayer<Place, Flow>({
      id: "flows",
      data: { locations: drawn.places, flows: drawn.flows },
      getLocationId: (place) => place.id,
      getLocationName: (place) => place.name,
      getLocationLat: (place) => place.lat,
      getLocationLon: (place) => place.lon,
      getFlowOriginId: (flow) => flow.origin,
      getFlowDestId: (flow) => flow.destination,
      getFlowMagnitude: (flow) => flow.count,
      clusteringEnabled: drawn.whole,
      locationsEnabled: false,
      locationTotalsEnabled: false,
      locationLabelsEnabled: false,
      adaptiveScalesEnabled: true,
      fadeEnabled: true,
      fadeOpacityEnabled: true,
      fadeAmount: 35,
      darkMode: isDark(),
      colorScheme: isDark() ? ["#26323d", "#5d7f8f", "#9fd3c7"] : ["#cfdbe0", "#5f8f98", "#0a4f57"],
      highlightColor: palette().chosen,
      maxTopFlowsDisplayNum: drawn.flows.length,
      flowEndpointsInViewportMode: "any",
      pickable: true,
      extensions: [new Counted()],
      onScaleChange: (state) => {
        this.scale = state?.flowThickness;
        this.scaled();
      },
      onHover: (info) => {
        if (info?.object?.type !== PickingType.FLOW) {
          this.hovered(null);
          return;
        }
        const { origin, dest, count } = info.object;
        const flow = info.object.flow as Partial<Flow>;
        const name = (place: unknown, id: string | number): string =>
          (place as Partial<Place> | undefined)?.name ?? places.get(String(id)) ?? String(id);
        this.hovered({
          x: info.x,
          y: info.y,
          from: name(origin, flow.origin ?? ""),
          to: name(dest, flow.destination ?? ""),
          count,
          error: flow.error ?? null,
        });
      },
    });
  }
}
