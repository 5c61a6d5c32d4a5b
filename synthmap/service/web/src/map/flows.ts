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

/** Workers that no arrow tells, and what their number is expected to be off by, where that is told. */
export interface Left {
  count: number;
  error?: number | undefined;
}

/** Flows as they are drawn. */
export interface Drawn {
  level: string;
  places: Place[];
  flows: Flow[];
  /** Workers whose other end is not on the map. */
  elsewhere: Left;
  /** Workers who live and work in the same unit, or in the chosen area: no arrow leads from it to itself. */
  within: Left;
  /** Of these flows the largest: they are listed beside those that are drawn. */
  inside: Flow[];
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
    // the layer hands on none of a flow
    const errors = new Map(drawn.flows.map((one) => [pair(one.origin, one.destination), one.error]));
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
        const [from, to] = [origin as End, dest as End];
        const name = (place: End): string => place.name ?? places.get(place.id) ?? place.id;
        this.hovered({
          x: info.x,
          y: info.y,
          from: name(from),
          to: name(to),
          count,
          error: errors.get(pair(from.id, to.id)) ?? null, // none where flows are joined
        });
      },
    });
  }
}

/** A place, or several that the layer has joined. */
type End = Pick<Place, "id"> & Partial<Place>;

/** What tells a flow from others: its ends. */
function pair(origin: string, destination: string): string {
  return JSON.stringify([origin, destination]);
}
