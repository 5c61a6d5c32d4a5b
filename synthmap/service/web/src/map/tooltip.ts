import { h, show } from "../dom";
import { count, figure } from "../format";
import type { Hovered } from "./flows";
import type { Unit } from "./zones";

interface Point {
  x: number;
  y: number;
}

/** What lies under the pointer, in words: a flow before the zone that it crosses. */
export class Tooltip {
  readonly element = h("div", { class: "tooltip", hidden: true });

  #flow: Hovered | null = null;
  #unit: { point: Point; unit: Unit } | null = null;

  flow(over: Hovered | null): void {
    this.#flow = over;
    this.#show();
  }

  unit(point: Point, unit: Unit | null): void {
    this.#unit = unit && { point, unit };
    this.#show();
  }

  hide(): void {
    this.#flow = this.#unit = null;
    this.#show();
  }

  #show(): void {
    if (this.#flow) this.#tellFlow(this.#flow);
    else if (this.#unit) this.#tellUnit(this.#unit.point, this.#unit.unit);
    else this.element.hidden = true;
  }

  #tellFlow(over: Hovered): void {
    const workers = over.error === null ? count(over.count) : figure(over.count, over.error);
    const name = h("b", {}, h("bdi", {}, over.from), " → ", h("bdi", {}, over.to));
    this.#put(over, name, h("br"), `${workers} workers`);
  }

  #tellUnit(point: Point, unit: Unit): void {
    const single = unit.level === "zone";
    const name =
      unit.level === "grid"
        ? [`${count(unit.zones)} zones together`]
        : [`${unit.level} `, h("bdi", {}, unit.id)];
    this.#put(
      point,
      h("b", {}, ...name),
      h("br"),
      `${figure(unit.living, unit.livingError)} live, ${count(unit.working)} work here`,
      unit.level === "grid" && h("p", { class: "soft" }, "Zoom in to tell them apart."),
      single &&
        h("p", { class: "soft" }, "A single zone: where its people live is mostly chance. Sum zones up."),
    );
  }

  #put({ x, y }: Point, ...children: (Node | string | false)[]): void {
    show(this.element, ...children);
    this.element.hidden = false;
    const parent = this.element.parentElement;
    const width = parent?.clientWidth ?? 0;
    const height = parent?.clientHeight ?? 0;
    const left = Math.max(4, Math.min(x + 14, width - this.element.offsetWidth - 4));
    const top = y + 14 + this.element.offsetHeight > height ? y - 14 - this.element.offsetHeight : y + 14;
    this.element.style.transform = `translate(${left}px, ${Math.max(4, top)}px)`;
  }
}
