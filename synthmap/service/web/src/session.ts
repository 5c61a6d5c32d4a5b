import type { Map as MapLibre } from "maplibre-gl";
import { json, outdated, type Paged, pages, words } from "./api";
import { cautions } from "./charts/cautions";
import { picture } from "./charts/result";
import { CuratorPanel } from "./curator/panel";
import { button, h, show } from "./dom";
import { count, figure } from "./format";
import { onSecret } from "./key";
import { Draw } from "./map/draw";
import { type Drawn, Flows } from "./map/flows";
import { Legend } from "./map/legend";
import { unwound } from "./map/longitudes";
import { overview, suitedLevel } from "./map/overview";
import { Print } from "./map/print";
import { selected } from "./map/selection";
import { Tooltip } from "./map/tooltip";
import { outline, Zones } from "./map/zones";
import type { Frame } from "./page";
import { downloads, statement } from "./panel/about";
import { AnalysesPanel } from "./panel/analyses";
import { AreaPanel } from "./panel/area";
import { DisplayPanel } from "./panel/display";
import { DrawnPanel } from "./panel/drawn";
import { Reading } from "./panel/reading";
import { ReleasePanel } from "./panel/release";
import { section } from "./panel/section";
import type { Status } from "./status";
import type { Analysis, Levels, PageSettings, Release } from "./types";
import type { Store } from "./view";

/** Holds a release, the map and the panel together. */
export class Session {
  #releases: Release[] = [];
  /** Whether there are no more than these. */
  #all = false;
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
  readonly #drawn = new DrawnPanel();
  readonly #area: AreaPanel;
  readonly #draw: Draw;
  readonly #analyses: AnalysesPanel;
  readonly #readings: readonly Reading[];
  /** What of an area is shown, or asked for. */
  #shown = "";
  #turn = 0;

  constructor(
    parts: Frame,
    private readonly store: Store,
    private readonly map: MapLibre,
    private readonly status: Status,
    settings: PageSettings,
  ) {
    const scaled = (): void => this.#legend?.draw(store.view);
    this.#zones = new Zones(map, scaled);
    this.#flows = new Flows(map, (over) => this.#tooltip.flow(this.#draw?.active ? null : over), scaled);
    this.#legend = new Legend(this.#zones, this.#flows);
    this.#releasePanel = new ReleasePanel(store);
    this.#displayPanel = new DisplayPanel(store);
    this.#draw = new Draw(map, (ring) => store.set({ area: { kind: "drawn", ring } }));
    this.#area = new AreaPanel(store, status, settings, () => this.#draw.start());
    const known = (): { levels: Levels | null; releases: Release[] } => ({
      levels: this.#levels,
      releases: this.#releases,
    });
    this.#analyses = new AnalysesPanel(store, status, known);
    const curator = new CuratorPanel(
      store,
      status,
      () => this.#releases,
      () => void this.start(),
    );
    outline(map, null);
    const print = new Print(map, this.#legend.element);
    parts.over.append(print.element, this.#legend.element, this.#draw.element, this.#tooltip.element);
    const promise = new Reading(store, status, "statement", (release) => statement(release, status));
    const files = new Reading(store, status, "downloads", (release) => downloads(release, status));
    this.#readings = [promise, files];
    parts.panel.append(
      this.#releasePanel.element,
      section("Show", h("div", {}, this.#displayPanel.element, this.#drawn.element), { open: true }),
      section("Area", this.#area.element, { open: true }),
      section("Analyses", this.#analyses.element, { opened: () => void this.#analyses.open() }),
      section("Privacy statement", promise.element, { opened: () => void promise.open() }),
      section("Downloads", files.element, { opened: () => void files.open() }),
      section("Key and publishing", curator.element, { opened: () => curator.open() }),
    );
    store.watch(["release"], () => void this.#open());
    store.watch(["end", "totals", "area"], () => this.#show());
    store.watch(["end", "area", "buffer", "inner"], () => this.#forget());
    store.watch(["end", "level", "top", "area", "buffer", "inner", "at"], () => this.#later());
    store.follow(() => this.#follow());
    map.on("mousemove", (event) => this.#hover(event.point));
    map.on("mouseout", () => this.#tooltip.hide());
    map.on("click", (event) => {
      const unit = this.#draw.active ? null : this.#zones.at(event.point);
      if (unit) this.#area.pick(unit);
    });
    onSecret(() => void this.start());
  }

  /**
   * Read which releases there are, or whether there is one more, or a key shows more: newest first, page by page.
   *
   * The one that the address names, or else the newest, is opened as soon as it is told of.
   */
  async start(): Promise<void> {
    this.#turn += 1;
    const turn = this.#turn;
    const found: Release[] = [];
    if (this.#current) this.status.working("releases");
    else this.status.busy("releases", "Loading the releases…");
    try {
      for await (const { releases } of pages<Paged & { releases: Release[] }>(["releases"])) {
        if (turn !== this.#turn) return;
        found.push(...releases);
        const { release } = this.store.view;
        if (this.#current || (release && !found.some((one) => one.id === release))) continue;
        this.#releases = [...found];
        void this.#open();
      }
    } catch (fault) {
      if (turn === this.#turn) this.status.fail("releases", words(fault), () => void this.start());
      return;
    }
    if (turn !== this.#turn) return;
    this.#releases = found;
    this.#all = true;
    this.status.done("releases");
    if (!this.#current) await this.#open();
    else {
      this.#releasePanel.draw(found, this.#current);
      for (const one of this.#readings) void one.again(); // files and sums may be others, too
      this.#analyses.again(); // and what there is to compare with
    }
  }

  /** Ask for the tiles again. */
  again(): void {
    this.#zones.forget();
    this.#show();
  }

  async #open(): Promise<void> {
    const { release } = this.store.view;
    const whole = this.#releases.filter((one) => one.status === "available");
    this.#current = whole.find((one) => one.id === release) ?? null;
    this.#releasePanel.draw(this.#releases, this.#current);
    if (!this.#current) {
      this.#levels = null;
      this.#forget();
      if (release && !this.#all) return; // it may be among those that are still read
      const [newest] = whole;
      if (newest && release)
        this.status.tell("missing", `There is no release ${release}: the newest is shown.`);
      if (newest) this.store.set({ release: newest.id });
      return;
    }
    this.#levels = null;
    this.#forget();
    this.status.busy("release", "Opening the release…");
    try {
      const levels = await json<Levels>(["releases", release, "levels"]);
      if (this.store.view.release !== release) return;
      this.#levels = levels;
      this.status.done("release");
    } catch (fault) {
      if (this.store.view.release === release)
        this.status.fail("release", words(fault), () => void this.#open());
      return;
    }
    this.#panels(this.#levels);
    if (!this.store.view.at) this.#fit(this.#levels);
    this.#show();
    this.#later(0);
  }

  /** Show in the panel what the view says of a release. */
  #panels(levels: Levels): void {
    const { level } = this.store.view;
    if (level && !levels.levels.some((one) => one.id === level)) {
      this.status.tell("level", `The release has no level ${level}: what suits the zoom is shown.`);
      this.store.set({ level: "" });
    }
    this.#displayPanel.draw(levels);
    this.#area.offer(levels);
    void this.#analyses.offer();
  }

  /** Show what a link says that was followed on the open page. */
  #follow(): void {
    const { at } = this.store.view;
    if (at) this.map.jumpTo(at);
    if (!this.#levels) return; // another release is being opened
    if (!at) this.#fit(this.#levels);
    this.#panels(this.#levels);
  }

  #fit({ extent }: Levels): void {
    this.#zoom(extent, 30);
  }

  #show(): void {
    if (!this.#levels) return;
    this.#zones.draw(this.store.view, this.#levels.levels.map((one) => one.id).slice(0, -1));
    this.#legend.draw(this.store.view);
  }

  /** Let go what is shown or still asked for: it is about another release, area or end. */
  #forget(): void {
    this.#asked.abort();
    this.#shown = "";
    this.status.done("flows");
    this.#put(null);
    this.#area.result.replaceChildren();
    outline(this.map, null);
  }

  /** Load the flows once the view stands still. */
  #later(wait = 250): void {
    window.clearTimeout(this.#timer);
    this.status.working("view");
    this.#timer = window.setTimeout(() => {
      void this.#load();
      this.status.rested("view");
    }, wait);
  }

  async #load(): Promise<void> {
    const { view } = this.store;
    const levels = this.#levels;
    if (!levels) return;
    const bounds = this.map.getBounds();
    const level = view.level || suitedLevel(levels, bounds);
    const { area, top } = view;
    const asked = area ? `${top} ${level}` : "";
    if (asked && asked === this.#shown) return; // moving the map changes nothing
    this.#asked.abort();
    this.#asked = new AbortController();
    this.#shown = asked;
    const { signal } = this.#asked;
    this.status.busy("flows", "Loading flows…");
    try {
      if (area) {
        const found = await selected(view, area, level, signal);
        this.#put(top ? found.drawn : null);
        outline(this.map, found.analysis.areas[0]?.geometry ?? null); // none where it is made of units
        this.#told(found.analysis);
      } else this.#put(top ? await overview(view, level, levels, bounds, signal) : null);
      this.status.done("flows");
    } catch (fault) {
      if (outdated(fault)) return;
      this.#shown = "";
      this.status.fail("flows", words(fault), () => void this.#load());
    }
  }

  /** Draw flows, and list them. */
  #put(drawn: Drawn | null): void {
    this.#flows.draw(drawn);
    this.#drawn.draw(drawn);
  }

  /** Say beside the area's name what its figures are. */
  #told(analysis: Analysis): void {
    const total = analysis.rows.find((row) => row.group === "total");
    const area = analysis.areas[0];
    const box = area?.bbox;
    const work = this.store.view.end === "work";
    const workers = total ? figure(total.workers, total.expected_error) : "–";
    const units = analysis.rows.filter((row) => row.group === "unit").slice(0, 10);
    show(
      this.#area.result,
      h(
        "p",
        { class: "headline", "data-workers": total?.workers },
        h("b", {}, workers),
        work ? " work in the area" : " live in the area",
      ),
      area && h("p", { class: "soft" }, `${count(area.zones)} zones. ${area.rule}`),
      ...(area?.notes ?? []).map((note) => h("p", { class: "notice caution" }, note)),
      cautions(analysis),
      picture({ ...analysis, rows: units }),
      h(
        "p",
        { class: "soft" },
        `${work ? "Where they live" : "Where they work"}: the first ${units.length}, ± the expected error. `,
      ),
      box && button("Zoom to the area", () => this.#zoom(box, 60)),
    );
  }

  #zoom(box: Levels["extent"], padding: number): void {
    const [, south, , north] = box;
    const [west, east] = unwound(box, 0);
    this.map.fitBounds([west, south, east, north], { padding, maxZoom: 14, animate: false });
  }

  #hover(point: { x: number; y: number }): void {
    if (this.#draw.active) return;
    const unit = this.#zones.at(point);
    this.map.getCanvas().style.cursor = unit ? "pointer" : "";
    this.#tooltip.unit(point, unit);
  }
}
