import { h, show } from "../dom";
import { count, figure } from "../format";
import type { Drawn, Flow } from "../map/flows";

/**
 * The flows that are drawn, for who cannot see or point at them: the same figures as under the pointer. And those that
 * no arrow can tell, since they stay where they start.
 */
export class DrawnPanel {
  readonly #title = h("summary", {});
  readonly #table = h("div", {});
  readonly element = h("details", { ontoggle: () => this.#fill(), hidden: true }, this.#title, this.#table);
  #drawn: Drawn | null = null;

  draw(drawn: Drawn | null): void {
    this.#drawn = drawn?.flows.length || drawn?.inside.length ? drawn : null;
    this.element.hidden = !this.#drawn;
    this.#title.textContent = `The flows on the map: ${count(this.#drawn?.flows.length ?? 0)}`;
    this.#fill();
  }

  /** Fill the table where it is seen: it may be long. */
  #fill(): void {
    const drawn = this.element.open ? this.#drawn : null;
    if (!drawn) {
      this.#table.replaceChildren();
      return;
    }
    const names = new Map(drawn.places.map((one) => [one.id, one.name]));
    const name = (id: string): HTMLElement => h("bdi", {}, names.get(id) ?? id);
    const table = (told: string, flows: Flow[]): HTMLElement | false =>
      flows.length > 0 &&
      h(
        "div",
        { class: "scroll tall", tabindex: 0, role: "region", "aria-label": told },
        h("table", {}, h("caption", {}, told), h("tbody", {}, ...flows.map(row))),
      );
    const row = (one: Flow): HTMLElement =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, name(one.origin), " → ", name(one.destination)),
        h("td", { class: "number" }, figure(one.count, one.error ?? 0)),
      );
    show(
      this.#table,
      table(`Workers from home to work, by ${drawn.level}`, drawn.flows),
      table(`Workers who live and work in the same place, by ${drawn.level}`, drawn.inside),
    );
  }
}
