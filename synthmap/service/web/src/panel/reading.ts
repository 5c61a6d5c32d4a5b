import { words } from "../api";
import { h, show } from "../dom";
import type { Status } from "../status";
import type { Store } from "../view";

/** A part of the panel that tells of the release that is shown, and anew when it is another; or of none, `always`. */
export class Reading {
  readonly element = h("div", {});
  #open = false;
  #turn = 0;

  constructor(
    private readonly store: Store,
    private readonly status: Status,
    private readonly kind: string,
    private readonly read: (release: string) => Promise<HTMLElement[]>,
    private readonly always = false,
  ) {
    if (!always) store.watch(["release"], () => void this.#renew());
  }

  async open(): Promise<void> {
    this.#open = true;
    await this.#renew();
  }

  close(): void {
    this.#open = false;
    this.#turn += 1;
    this.element.replaceChildren();
    this.status.done(this.kind);
  }

  /** Read the same again, where it is open; what it told stays meanwhile. */
  async again(): Promise<void> {
    if (!this.#open) return;
    const { release } = this.store.view;
    this.#turn += 1;
    const turn = this.#turn;
    if (!release && !this.always) return;
    try {
      const found = await this.read(release);
      if (turn !== this.#turn) return;
      show(this.element, ...found);
      this.status.done(this.kind);
    } catch (fault) {
      if (turn !== this.#turn) return;
      this.element.replaceChildren();
      this.status.fail(this.kind, words(fault), () => void this.#renew());
    }
  }

  async #renew(): Promise<void> {
    if (!this.#open) return;
    const { release } = this.store.view;
    const told = release || this.always ? "Loading…" : "There is no release yet.";
    show(this.element, h("p", { class: "soft" }, told));
    await this.again();
  }
}
