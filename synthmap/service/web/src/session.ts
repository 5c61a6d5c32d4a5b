import type { Map as MapLibre } from "maplibre-gl";
import { json, outdated, words } from "./api";
import { onSecret } from "./key";
import { Flows } from "./map/flows";
import { Legend } from "./map/legend";
import { overview, suitedLevel } from "./map/overview";
import { Tooltip } from "./map/tooltip";
import { outline, Zones } from "./map/zones";
import type { Frame } from "./page";
import { DisplayPanel } from "./panel/display";
import { ReleasePanel } from "./panel/release";
import { section } from "./panel/section";
import type { Status } from "./status";
import type { Levels, PageSettings, Release } from "./types";
import type { Store } from "./view";

/** Holds a release, the map and the panel together. */
export class Session {
  #releases: Release[] = [];
  #current: Release | null = null;
  #levels: Levels | null = null;
  #asked = new AbortController();
  #timer = 0;
  readonly #zones: Zones;
  readonly #flows: Flows;
  readonly #legend: Legend;
  readonly #tooltip = new Tooltip();
  readonly #releasePanel: ReleasePanel;
  readonly #displayPanel: DisplayPanel;

  constructor(
    parts: Frame,
    private readonly store: Store,
    private readonly map: MapLibre,
    private readonly status: Status,
    _settings: PageSettings,
  ) {
    const scaled = (): void => this.#legend?.draw(store.view);
    this.#zones = new Zones(map, scaled);
    this.#flows = new Flows(map, (over) => (over ? this.#tooltip.flow(over) : this.#tooltip.hide()), scaled);
    this.#legend = new Legend(this.#zones, this.#flows);
    this.#releasePanel = new ReleasePanel(store);
    this.#displayPanel = new DisplayPanel(store);
    outline(map, null);
    parts.over.append(this.#legend.element, this.#tooltip.element);
    parts.panel.append(
      this.#releasePanel.element,
      section("Show", this.#displayPanel.element, { open: true }),
    );
    store.watch(["release"], () => void this.#open());
    store.watch(["end", "totals", "area"], () => this.#draw());
    store.watch(["end", "level", "top", "area", "at"], () => this.#later());
    map.on("mousemove", (event) => this.#hover(event.point));
    map.on("mouseout", () => this.#tooltip.hide());
    onSecret(() => void this.start());
  }

  /** Read which releases there are, and open the one that the address names, or the newest. */
  async start(): Promise<void> {
    this.status.busy("releases", "Loading the releases…");
    try {
      this.#releases = (await json<{ releases: Release[] }>(["releases"])).releases;
      this.status.done("releases");
    } catch (fault) {
      this.status.fail("releases", words(fault), () => void this.start());
      return;
    }
    const whole = this.#releases.filter((one) => one.status === "available");
    const wanted = this.store.view.release;
    const found = whole.find((one) => one.id === wanted) ?? whole[0];
    if (wanted && found?.id !== wanted)
      this.status.tell("missing", `There is no release ${wanted}: the newest is shown.`);
    this.#releasePanel.draw(this.#releases, null);
    if (found && found.id !== wanted) this.store.set({ release: found.id });
    else if (found) await this.#open();
  }

  async #open(): Promise<void> {
    const { release } = this.store.view;
    this.#current = this.#releases.find((one) => one.id === release) ?? null;
    this.#releasePanel.draw(this.#releases, this.#current);
    this.#flows.draw(null);
    this.status.busy("release", "Opening the release…");
    try {
      const levels = await json<Levels>(["releases", release, "levels"]);
      if (this.store.view.release !== release) return;
      this.#levels = levels;
      this.status.done("release");
    } catch (fault) {
      this.status.fail("release", words(fault), () => void this.#open());
      return;
    }
    this.#displayPanel.draw(this.#levels);
    if (!this.store.view.at) this.#fit(this.#levels);
    this.#draw();
    this.#later(0);
  }

  #fit({ extent: [west, south, east, north] }: Levels): void {
    const across = east < west ? 360 : 0;
    this.map.fitBounds([west, south, east + across, north], { padding: 30, animate: false, maxZoom: 14 });
  }

  #draw(): void {
    if (!this.#levels) return;
    this.#zones.draw(this.store.view, this.#levels.levels.map((one) => one.id).slice(0, -1));
    this.#legend.draw(this.store.view);
  }

  /** Load the flows once the view stands still. */
  #later(wait = 250): void {
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => void this.#load(), wait);
  }

  async #load(): Promise<void> {
    const { view } = this.store;
    const levels = this.#levels;
    this.#asked.abort();
    if (!levels || !view.top) {
      this.#flows.draw(null);
      return;
    }
    this.#asked = new AbortController();
    this.status.busy("flows", "Loading flows…");
    try {
      const bounds = this.map.getBounds();
      const level = view.level || suitedLevel(levels, bounds);
      const drawn = await overview(view, level, levels, bounds, this.#asked.signal);
      this.#flows.draw(drawn);
      this.status.done("flows");
    } catch (fault) {
      if (!outdated(fault)) this.status.fail("flows", words(fault), () => void this.#load());
    }
  }

  #hover(point: { x: number; y: number }): void {
    const unit = this.#zones.at(point);
    this.map.getCanvas().style.cursor = unit ? "pointer" : "";
    if (unit) this.#tooltip.unit(point, unit);
    else this.#tooltip.hide();
  }
}
