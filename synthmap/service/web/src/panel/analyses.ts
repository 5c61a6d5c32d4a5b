import { type Asked, analyse, analysePair, analysisFile, around, described, pairFile } from "../analysis";
import { json, outdated, words } from "../api";
import { result } from "../charts/result";
import { button, field, h, select, show } from "../dom";
import type { Status } from "../status";
import type { Analysis, Levels, Release } from "../types";
import type { Area, Store } from "../view";

interface Offered {
  name: string;
  title: string;
  description: string;
}

type Option = "end" | "units" | "by" | "other" | "pair" | "of";

/** Which options an analysis has; a comparison also has those of what it compares. */
const OPTIONS: Record<string, Option[]> = {
  "area-profile": ["end", "units"],
  "distance-direction": ["end", "units"],
  destinations: ["by"],
  origins: ["by"],
  "paired-areas": ["pair"],
  time: ["other", "of"],
};
const COMPARED = ["inflow-outflow", "area-profile", "distance-direction", "destinations", "origins"];

/** Analyses of the chosen area. */
export class AnalysesPanel {
  readonly element = h("div", {});
  readonly #options = h("div", {});
  readonly #result = h("div", { class: "result", "aria-live": "polite" });
  #offered: Offered[] = [];
  #name = "inflow-outflow";
  #units = navigator.language === "en-US" ? "mi" : "km";
  #bands = "10,25,50";
  #by = "";
  #top = 10;
  #other = "";
  #of = "inflow-outflow";
  #first: Area | null = null;
  #asked = new AbortController();

  constructor(
    private readonly store: Store,
    private readonly status: Status,
    private readonly known: () => { levels: Levels | null; releases: Release[] },
    private readonly got: (analysis: Analysis) => void,
  ) {
    store.watch(["area", "end"], () => this.#show());
    store.watch(["release"], () => this.#forget());
  }

  /** Ask what there is, once. */
  async open(): Promise<void> {
    const { release } = this.store.view;
    if (!release) return;
    try {
      const found = await json<{ analyses: Offered[] }>(["releases", release, "analyses"]);
      this.#offered = found.analyses.filter((one) => one.name !== "area");
      this.status.done("analyses");
      this.#show();
    } catch (fault) {
      this.status.fail("analyses", words(fault), () => void this.open());
    }
  }

  #forget(): void {
    this.#first = null;
    this.#by = "";
    this.#other = "";
    this.#result.replaceChildren();
    if (this.#offered.length) this.#show();
  }

  #show(): void {
    if (!this.#offered.length) return;
    const { area } = this.store.view;
    const list = select(
      this.#offered.map((one) => ({ value: one.name, text: one.title })),
      this.#name,
      (name) => {
        this.#name = name;
        this.#show();
      },
    );
    const told = this.#offered.find((one) => one.name === this.#name)?.description ?? "";
    const pair = this.#has().includes("pair");
    const ready = area && (!pair || this.#first);
    show(this.#options, ...this.#fields());
    show(
      this.element,
      field("Analysis", list, told),
      this.#options,
      h(
        "p",
        { class: "soft" },
        area ? `Of ${described(area)}.` : "Choose an area first: click a zone, draw, or upload one.",
      ),
      button("Run", () => void this.#run(), { class: "main", disabled: !ready }),
      this.#result,
    );
  }

  #has(): Option[] {
    const own = OPTIONS[this.#name] ?? [];
    return own.includes("of") ? [...own, ...(OPTIONS[this.#of] ?? [])] : own;
  }

  #fields(): HTMLElement[] {
    const { levels, releases } = this.known();
    const { view } = this.store;
    return this.#has().flatMap((option) => {
      switch (option) {
        case "end":
          return [
            h(
              "p",
              { class: "soft" },
              `End: ${view.end === "work" ? "who works" : "who lives"} in the area (change it under “Show”).`,
            ),
          ];
        case "units": {
          const units = [
            { value: "km", text: "kilometres" },
            { value: "mi", text: "miles" },
          ];
          const bands = h("input", {
            type: "text",
            value: this.#bands,
            inputmode: "decimal",
            onchange: () => {
              this.#bands = bands.value.replace(/\s/g, "");
            },
          });
          return [
            field(
              "Units",
              select(units, this.#units, (value) => {
                this.#units = value;
              }),
            ),
            field("Bands end at", bands, "Distances, commas between them."),
          ];
        }
        case "by": {
          const names = (levels?.levels ?? []).map((one) => ({ value: one.id, text: one.id }));
          this.#by ||= levels?.levels.at(-2)?.id ?? "zone";
          const top = h("input", {
            type: "number",
            min: 1,
            max: 1000,
            value: this.#top,
            onchange: () => {
              this.#top = Number(top.value) || 10;
            },
          });
          return [
            field(
              "By",
              select(names, this.#by, (value) => {
                this.#by = value;
              }),
            ),
            field("How many", top),
          ];
        }
        case "other": {
          const others = releases.filter((one) => one.status === "available" && one.id !== view.release);
          if (!others.length) return [h("p", {}, "There is no other release to compare with.")];
          this.#other ||= others[0]?.id ?? "";
          const choices = others.map((one) => ({ value: one.id, text: `${one.title} · ${one.id}` }));
          return [
            field(
              "Compared with",
              select(choices, this.#other, (value) => {
                this.#other = value;
              }),
            ),
          ];
        }
        case "of": {
          const choices = this.#offered
            .filter((one) => COMPARED.includes(one.name))
            .map((one) => ({ value: one.name, text: one.title }));
          return [
            field(
              "What is compared",
              select(choices, this.#of, (value) => {
                this.#of = value;
                this.#show();
              }),
            ),
          ];
        }
        case "pair": {
          const keep = (): void => {
            this.#first = this.store.view.area;
            this.#show();
          };
          return [
            h(
              "p",
              {},
              `Area A: ${this.#first ? described(this.#first) : "none yet"}. Area B: ${view.area ? described(view.area) : "none yet"}.`,
            ),
            button("Keep the chosen area as A", keep, { disabled: !view.area }),
          ];
        }
        default:
          return [];
      }
    });
  }

  async #run(): Promise<void> {
    const { view } = this.store;
    if (!view.area) return;
    this.#asked.abort();
    this.#asked = new AbortController();
    const first = this.#name === "paired-areas" ? this.#first : null;
    const asked: Asked = { release: view.release, name: this.#name, area: view.area, query: this.#query() };
    this.status.busy("analysis", "Working…");
    const failed = (fault: unknown): void => {
      if (!outdated(fault)) this.status.fail("analysis", words(fault), () => void this.#run());
    };
    try {
      const found = first
        ? await analysePair(view.release, first, view.area)
        : await analyse(asked, this.#asked.signal);
      this.status.done("analysis");
      const file = (form: "csv" | "png" | "pdf"): Promise<Blob> =>
        first ? pairFile(asked.release, first, asked.area, form) : analysisFile(asked, form);
      show(this.#result, result(found, file, failed));
      this.got(found);
    } catch (fault) {
      failed(fault);
    }
  }

  #query(): Asked["query"] {
    const { view } = this.store;
    const options = this.#has();
    return {
      ...around(view),
      ...(options.includes("end") && { end: view.end }),
      ...(options.includes("units") && { units: this.#units, bands: this.#bands }),
      ...(options.includes("by") && { by: this.#by, top: this.#top }),
      ...(options.includes("other") && { other: this.#other }),
      ...(options.includes("of") && { of: this.#of }),
    };
  }
}
