import { h, show } from "../dom";
import { count, figure } from "../format";
import type { Hovered } from "./flows";
import type { Unit } from "./zones";

/** What lies under the pointer, in words. */
export class Tooltip {
  readonly element = h("div", { class: "tooltip", hidden: true });

  flow(over: Hovered): void {
    const workers = over.error === null ? count(over.count) : figure(over.count, over.error);
    this.#put(over, h("b", {}, `${over.from} → ${over.to}`), h("br"), `${workers} workers`);
  }

  unit(point: { x: number; y: number }, unit: Unit): void {
    const single = unit.level === "zone";
    const name = unit.level === "grid" ? `${count(unit.zones)} zones together` : `${unit.level} ${unit.id}`;
    this.#put(
      point,
      h("b", {}, name),
      h("br"),
      `${count(unit.living)} live, ${count(unit.working)} work here`,
      unit.level === "grid" && h("p", { class: "soft" }, "Zoom in to tell them apart."),
      single &&
        h("p", { class: "soft" }, "A single zone: where its people live is mostly chance. Sum zones up."),
    );
  }

  hide(): void {
    this.element.hidden = true;
  }

  #put({ x, y }: { x: number; y: number }, ...children: (Node | string | false)[]): void {
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
