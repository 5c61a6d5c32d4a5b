import { words } from "../api";
import { h, show } from "../dom";
import type { Status } from "../status";
import type { Store } from "../view";

/** A part of the panel that tells of the release that is shown, and anew when it is another. */
export class Reading {
  readonly element = h("div", {});
  #open = false;

  constructor(
    private readonly store: Store,
    private readonly status: Status,
    private readonly kind: string,
    private readonly read: (release: string) => Promise<HTMLElement[]>,
  ) {
    store.watch(["release"], () => void this.#renew());
  }

  async open(): Promise<void> {
    this.#open = true;
    await this.#renew();
  }

  close(): void {
    this.#open = false;
    this.element.replaceChildren();
  }

  async #renew(): Promise<void> {
    if (!this.#open) return;
    const { release } = this.store.view;
    show(this.element, h("p", { class: "soft" }, release ? "Loading…" : "There is no release yet."));
    if (!release) return;
    const asked = (): boolean => this.#open && release === this.store.view.release;
    try {
      const found = await this.read(release);
      if (!asked()) return;
      show(this.element, ...found);
      this.status.done(this.kind);
    } catch (fault) {
      if (!asked()) return;
      this.element.replaceChildren();
      this.status.fail(this.kind, words(fault), () => void this.#renew());
    }
  }
}
