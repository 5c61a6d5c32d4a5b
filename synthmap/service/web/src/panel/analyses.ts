import { type Asked, analyse, analysePair, analysisFile, around, pairFile, surroundings } from "../analysis";
import { json, outdated, words } from "../api";
import { type Form, result } from "../charts/result";
import { button, field, h, select, show } from "../dom";
import { between, isolated, listed, unlisted } from "../format";
import type { Status } from "../status";
import type { Levels, Release } from "../types";
import type { Store, Surrounded } from "../view";

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
  #open = false;
  #name = "inflow-outflow";
  #units = navigator.language === "en-US" ? "mi" : "km";
  #bands = "10,25,50";
  #by = "";
  #top = 10;
  #other = "";
  #of = "inflow-outflow";
  #first: Surrounded | null = null;
  #asked = new AbortController();

  constructor(
    private readonly store: Store,
    private readonly status: Status,
    private readonly known: () => { levels: Levels | null; releases: Release[] },
  ) {
    store.watch(["area", "buffer", "inner", "end"], () => {
      this.#drop();
      this.#show();
    });
    store.watch(["release"], () => this.#forget());
  }

  async open(): Promise<void> {
    this.#open = true;
    await this.offer();
  }

  /** Ask what there is of the release that is shown, and offer it. */
  async offer(): Promise<void> {
    const { release } = this.store.view;
    if (!this.#open) return;
    if (!release) show(this.element, h("p", { class: "soft" }, "There is no release yet."));
    if (!release) return;
    if (!this.#offered.length) show(this.element, h("p", { class: "soft" }, "Loading…"));
    try {
      const found = await json<{ analyses: Offered[] }>(["releases", release, "analyses"]);
      if (release !== this.store.view.release) return;
      this.#offered = found.analyses.filter((one) => one.name !== "area");
      this.status.done("analyses");
      this.#show();
    } catch (fault) {
      if (release !== this.store.view.release) return;
      if (!this.#offered.length) this.element.replaceChildren();
      this.status.fail("analyses", words(fault), () => void this.offer());
    }
  }

  /** Show the releases that there are now to compare with. */
  again(): void {
    this.#show();
  }

  #forget(): void {
    this.#drop();
    this.#first = null;
    this.#by = "";
    this.#other = "";
    this.#show();
  }

  /** Let go what was asked or answered: it is about another area, end or release. */
  #drop(): void {
    this.#asked.abort();
    this.status.done("analysis");
    this.#result.replaceChildren();
  }

  #show(): void {
    if (!this.#offered.length) return;
    const chosen = this.#chosen();
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
    const ready = chosen && (!pair || this.#first);
    show(this.#options, ...this.#fields());
    show(
      this.element,
      field("Analysis", list, told),
      this.#options,
      h(
        "p",
        { class: "soft" },
        chosen ? `Of ${surroundings(chosen)}.` : "Choose an area first: click a zone, draw, or upload one.",
      ),
      button("Run", () => void this.#run(), { class: "main", disabled: !ready }),
      this.#result,
    );
  }

  #chosen(): Surrounded | null {
    const { area, buffer, inner } = this.store.view;
    return area && { area, buffer, inner };
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
            value: listed(this.#bands),
            onchange: () => {
              this.#bands = unlisted(bands.value);
            },
          });
          return [
            field(
              "Units",
              select(units, this.#units, (value) => {
                this.#units = value;
              }),
            ),
            field("Bands end at", bands, `Distances, ${between} between them.`),
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
          const choices = others.map((one) => ({
            value: one.id,
            text: `${isolated(one.title)} · ${one.id}`,
          }));
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
            this.#first = this.#chosen();
            this.#show();
          };
          const called = (one: Surrounded | null): string => (one ? surroundings(one) : "none yet");
          return [
            h("p", {}, `Area A: ${called(this.#first)}. Area B: ${called(this.#chosen())}.`),
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
    const chosen = this.#chosen();
    if (!chosen) return;
    this.#asked.abort();
    this.#asked = new AbortController();
    const { signal } = this.#asked;
    const first = this.#name === "paired-areas" ? this.#first : null;
    const asked: Asked = { release: view.release, name: this.#name, area: chosen.area, query: this.#query() };
    const failed = (fault: unknown): void => {
      if (!outdated(fault)) this.status.fail("analysis", words(fault), () => void this.#run());
    };
    this.status.busy("analysis", "Working…");
    try {
      const found = first
        ? await analysePair(view.release, first, chosen, signal)
        : await analyse(asked, signal);
      this.status.done("analysis");
      const file = async (form: Form): Promise<Blob> => {
        this.status.busy("file", `Making the ${form.toUpperCase()}…`);
        const made = await (first ? pairFile(asked.release, first, chosen, form) : analysisFile(asked, form));
        this.status.done("file");
        return made;
      };
      show(
        this.#result,
        result(found, file, (fault) => this.status.fail("file", words(fault))),
      );
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
