import { field, h, radios, select, show } from "../dom";
import { count } from "../format";
import type { Levels } from "../types";
import { type End, type Store, TOPS, type Totals } from "../view";

/** What the map shows of a release. */
export class DisplayPanel {
  readonly element = h("div", { class: "display" });

  constructor(private readonly store: Store) {}

  draw(levels: Levels): void {
    const { store } = this;
    const { view } = store;
    const sizes = levels.levels.map((one) => ({ value: one.id, text: `${one.id} (${count(one.units)})` }));
    const tops = TOPS.map((one) => ({
      value: String(one),
      text: one ? `the ${count(one)} largest` : "none",
    }));
    show(
      this.element,
      radios(
        "End",
        [
          { value: "work", text: "Work" },
          { value: "home", text: "Home" },
        ],
        view.end,
        (end) => store.set({ end: end as End }),
      ),
      field(
        "Level of flows",
        select([{ value: "", text: "as suits the zoom" }, ...sizes], view.level, (level) =>
          store.set({ level }),
        ),
        "Also of what a click chooses. Circles are of a level that suits the zoom.",
      ),
      field(
        "Flows",
        select(tops, String(view.top), (top) => store.set({ top: Number(top) })),
      ),
      radios(
        "Totals",
        [
          { value: "circles", text: "Circles" },
          { value: "thermal", text: "Thermal" },
          { value: "none", text: "None" },
        ],
        view.totals,
        (totals) => store.set({ totals: totals as Totals }),
      ),
    );
  }
}
