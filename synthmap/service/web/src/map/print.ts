import type { Map as MapLibre } from "maplibre-gl";
import { h, show } from "../dom";

/** What stands on paper in place of the map: a picture of it, since what WebGL draws is lost there. */
export class Print {
  readonly element = h("div", { class: "printed", "aria-hidden": "true" });
  #open = true;

  constructor(
    private readonly map: MapLibre,
    private readonly legend: HTMLDetailsElement,
  ) {
    window.addEventListener("beforeprint", () => this.#take());
    window.addEventListener("afterprint", () => this.#leave());
  }

  #take(): void {
    const { map, legend } = this;
    this.#open = legend.open;
    legend.open = true;
    const parts = map.getContainer();
    const { width, height } = map.getCanvas();
    const picture = h("canvas", { width, height });
    map.redraw(); // what was drawn before is not kept
    for (const one of parts.querySelectorAll("canvas")) // the map, then the flows above it
      picture.getContext("2d")?.drawImage(one, 0, 0, width, height);
    const ruler = parts.querySelector<HTMLElement>(".maplibregl-ctrl-scale");
    this.element.style.maxWidth = `${(60 * width) / height}vh`; // so that it is no higher than that
    const scale = ruler && h("p", { class: "scale" }, ruler.textContent);
    if (scale) scale.style.width = `${(100 * ruler.offsetWidth) / parts.clientWidth}%`;
    const source = parts.querySelector(".maplibregl-ctrl-attrib-inner")?.textContent;
    show(this.element, picture, scale, source ? h("p", { class: "soft" }, source) : null);
  }

  #leave(): void {
    this.legend.open = this.#open;
    this.element.replaceChildren();
  }
}
