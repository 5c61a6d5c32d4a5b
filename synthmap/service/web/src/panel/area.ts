import { described } from "../analysis";
import { button, field, h, select, show } from "../dom";
import { bytes } from "../format";
import type { Unit } from "../map/zones";
import type { Status } from "../status";
import type { Levels, PageSettings } from "../types";
import type { Area, Around, Store } from "../view";

const KINDS = ".kml,.kmz,.geojson,.json,.gpkg,.zip";

/** Which area is looked at: units by click or by id, a drawing, a file; and what lies around it. */
export class AreaPanel {
  readonly element = h("div", {});
  /** What is known about the area, once it is known. */
  readonly result = h("div", { class: "result", "aria-live": "polite" });
  readonly #chosen = h("div", {});
  readonly #several = h("input", { type: "checkbox" });
  readonly #buffer: HTMLInputElement;
  readonly #inner: HTMLInputElement;
  readonly #form = h("div", {});

  constructor(
    private readonly store: Store,
    private readonly status: Status,
    private readonly limits: PageSettings,
    draw: () => void,
  ) {
    this.#buffer = this.#metres("buffer");
    this.#inner = this.#metres("inner");
    const most = bytes(limits.upload_bytes);
    const file = h("input", { type: "file", accept: KINDS, onchange: () => this.#upload(file) });
    show(
      this.element,
      this.#chosen,
      h("p", { class: "soft hint" }, "Click a zone on the map, or:"),
      this.#form,
      h(
        "div",
        { class: "buttons" },
        button("Draw an area", draw),
        button("Clear the area", () => store.set({ area: null })),
      ),
      field("Upload an area", file, `KML, KMZ, GeoJSON, GeoPackage or a zipped shapefile, at most ${most}.`),
      field("Metres around it", this.#buffer, "What lies within so many metres belongs to the area, too."),
      field("Metres left out", this.#inner, "What lies nearer than this does not belong to it: a ring."),
      this.result,
    );
    store.watch(["area", "buffer", "inner"], () => this.#show());
  }

  /** Offer the levels of a release. */
  offer(levels: Levels): void {
    const { view } = this.store;
    const { area } = view;
    const level = select(
      levels.levels.map((one) => ({ value: one.id, text: one.id })),
      (area?.kind === "units" && area.level) || view.level || (levels.levels.at(-2)?.id ?? "zone"),
      () => {},
    );
    const id = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    const add = (event: Event): void => {
      event.preventDefault();
      if (id.value) this.#put(level.value, id.value);
      id.value = "";
    };
    show(
      this.#form,
      h(
        "form",
        { class: "line", onsubmit: add },
        field("Level", level),
        field("Id", id),
        h("button", { type: "submit" }, "Choose"),
      ),
      h("label", { class: "check" }, this.#several, "Add to what is chosen already"),
    );
    this.#show();
  }

  /** Take a unit that was clicked: at the level that was picked, or as it is shown. */
  pick(unit: Unit): void {
    const wanted = this.store.view.level;
    const parent = unit.parents[wanted];
    if (unit.level === "grid")
      this.status.tell("pick", "Several zones are drawn as one here. Zoom in to choose one.");
    else if (wanted && parent !== undefined) this.#put(wanted, parent);
    else {
      if (wanted && wanted !== unit.level)
        this.status.tell(
          "pick",
          `At this zoom a ${unit.level} is the finest to choose. Zoom in for a ${wanted}.`,
        );
      this.#put(unit.level, unit.id);
    }
  }

  #metres(name: keyof Around): HTMLInputElement {
    const changed = (): void => this.store.set({ [name]: Math.max(0, Number(found.value) || 0) });
    const found = h("input", {
      type: "number",
      min: 0,
      max: this.limits.farthest_m,
      step: 500,
      value: "0",
      inputmode: "numeric",
      onchange: changed,
    });
    return found;
  }

  #put(level: string, id: string): void {
    const { area } = this.store.view;
    const more = this.#several.checked && area?.kind === "units" && area.level === level;
    const before = more ? area.ids : [];
    const ids = before.includes(id) ? before.filter((one) => one !== id) : [...before, id];
    this.store.set({ area: ids.length ? { kind: "units", level, ids } : null });
  }

  #upload(input: HTMLInputElement): void {
    const [file] = input.files ?? [];
    input.value = "";
    if (!file) return;
    const most = this.limits.upload_bytes;
    if (file.size > most)
      this.status.fail("area", `${file.name} must be at most ${bytes(most)}; simplify it, or send a part.`);
    else this.store.set({ area: { kind: "file", file } });
  }

  #show(): void {
    const { area, buffer, inner } = this.store.view;
    this.#buffer.value = String(buffer);
    this.#inner.value = String(inner);
    this.#inner.disabled = !buffer;
    show(
      this.#chosen,
      area ? this.#told(area) : h("p", {}, "No area is chosen: all of the release is shown."),
    );
  }

  #told(area: Area): HTMLElement {
    if (area.kind !== "units") {
      const link =
        area.kind === "file" &&
        h("p", { class: "soft" }, "An uploaded area is not part of the link to this view.");
      return h("div", {}, h("p", {}, "Chosen: ", h("b", {}, described(area))), link);
    }
    const chips = area.ids.map((id) =>
      h(
        "li",
        {},
        h("span", {}, `${area.level} `, h("bdi", {}, id)),
        button("×", () => this.#without(area, id), {
          "aria-label": `Remove ${area.level} ${id}`,
          class: "small",
        }),
      ),
    );
    return h("ul", { class: "chips", "aria-label": "Chosen area" }, ...chips);
  }

  #without(area: Extract<Area, { kind: "units" }>, id: string): void {
    const ids = area.ids.filter((one) => one !== id);
    this.store.set({ area: ids.length ? { ...area, ids } : null });
  }
}
