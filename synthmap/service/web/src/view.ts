/** Which end of flows is looked at. */
export type End = "home" | "work";
export type Totals = "circles" | "thermal" | "none";
export type Point = [longitude: number, latitude: number];

/** What analyses are about. A file is not in the link: its content is not in the address. */
export type Area =
  | { kind: "units"; level: string; ids: string[] }
  | { kind: "drawn"; ring: Point[] }
  | { kind: "file"; file: File };

/** What of the surroundings of an area belongs to it, in metres; nothing but the area itself where `buffer` is 0. */
export interface Around {
  buffer: number;
  /** What lies nearer is left out: a ring. */
  inner: number;
}

/** An area with what lies around it. */
export interface Surrounded extends Around {
  area: Area;
}

/** All that a link restores. */
export interface View extends Around {
  release: string;
  /** A level, or nothing: as suits the zoom. */
  level: string;
  end: End;
  totals: Totals;
  /** Flows drawn at most; 0: none. */
  top: number;
  area: Area | null;
  at: { center: Point; zoom: number } | null;
}

export const TOPS = [0, 100, 300, 1000];
const USUAL: View = {
  release: "",
  level: "",
  end: "work",
  totals: "circles",
  top: 300,
  area: null,
  buffer: 0,
  inner: 0,
  at: null,
};

/** The view that the part of an address behind # tells; what is wrong in it is as usual. */
export function parse(hash: string): View {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  const [longitude, latitude, zoom] = numbers(told.get("at"));
  const top = Number(told.get("flows") ?? USUAL.top);
  const metres = (name: string): number => {
    const found = Number(told.get(name) ?? 0);
    return found > 0 && Number.isFinite(found) ? found : 0;
  };
  const totals = told.get("totals") as Totals;
  const placed =
    [longitude, latitude, zoom].every((one) => one !== undefined && Number.isFinite(one)) &&
    Math.abs(latitude as number) <= 90;
  return {
    release: told.get("release") ?? "",
    level: told.get("level") ?? "",
    end: told.get("end") === "home" ? "home" : "work",
    totals: ["circles", "thermal", "none"].includes(totals) ? totals : USUAL.totals,
    top: TOPS.includes(top) ? top : USUAL.top,
    area: parseArea(told),
    buffer: metres("buffer"),
    inner: metres("inner"),
    at: placed ? { center: [longitude as number, latitude as number], zoom: zoom as number } : null,
  };
}

/** The part of an address behind #. */
export function format(view: View): string {
  const told = new URLSearchParams({ release: view.release, end: view.end });
  if (view.level) told.set("level", view.level);
  if (view.totals !== USUAL.totals) told.set("totals", view.totals);
  if (view.top !== USUAL.top) told.set("flows", String(view.top));
  if (view.buffer) told.set("buffer", String(view.buffer));
  if (view.inner) told.set("inner", String(view.inner));
  if (view.area?.kind === "units") {
    told.set("area", view.area.level);
    for (const id of view.area.ids) told.append("id", id);
  }
  if (view.area?.kind === "drawn")
    told.set(
      "ring",
      view.area.ring
        .flat()
        .map((one) => one.toFixed(5))
        .join(","),
    );
  if (view.at)
    told.set("at", [...view.at.center.map((one) => one.toFixed(5)), view.at.zoom.toFixed(2)].join(","));
  return `#${told}`;
}

function parseArea(told: URLSearchParams): Area | null {
  const level = told.get("area");
  const ids = told.getAll("id");
  if (level && ids.length) return { kind: "units", level, ids };
  const ring = numbers(told.get("ring"));
  if (ring.length < 6 || ring.length % 2 || !ring.every(Number.isFinite)) return null;
  return {
    kind: "drawn",
    ring: Array.from({ length: ring.length / 2 }, (_, i) => ring.slice(2 * i, 2 * i + 2) as Point),
  };
}

function numbers(text: string | null): number[] {
  return text ? text.split(",").map(Number) : [];
}

/** The view as it is now, who wants to know of its changes, and the address that restores it. */
export class Store {
  #view = parse(location.hash);
  readonly #watchers: { keys: (keyof View)[]; told: (view: View) => void }[] = [];
  readonly #followers: ((view: View) => void)[] = [];

  constructor() {
    window.addEventListener("hashchange", () => {
      this.set(parse(location.hash));
      for (const told of this.#followers) told(this.#view);
    });
  }

  get view(): View {
    return this.#view;
  }

  set(change: Partial<View>): void {
    const before = this.#view;
    this.#view = { ...before, ...change };
    history.replaceState(history.state, "", format(this.#view));
    for (const one of this.#watchers)
      if (one.keys.some((key) => !same(before[key], this.#view[key]))) one.told(this.#view);
  }

  watch(keys: (keyof View)[], told: (view: View) => void): void {
    this.#watchers.push({ keys, told });
  }

  /** Hear of links that are followed on the open page: all of the view is another. */
  follow(told: (view: View) => void): void {
    this.#followers.push(told);
  }
}

function same(one: unknown, other: unknown): boolean {
  return (
    one === other ||
    (!(one instanceof Object && "file" in one) && JSON.stringify(one) === JSON.stringify(other))
  );
}
