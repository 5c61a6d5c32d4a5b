import { button, h } from "./dom";

/**
 * What is going on, for eyes and for screen readers: what is being loaded, and what failed.
 *
 * Each kind of work has one line, which its next success takes away.
 */
export class Status {
  readonly element = h("div", { class: "status", role: "status", "aria-live": "polite" });
  readonly #lines = new Map<string, HTMLElement>();
  readonly #working = new Set<string>();

  busy(kind: string, text: string): void {
    this.#put(kind, h("p", { class: "busy" }, text));
    this.working(kind);
  }

  done(kind: string): void {
    this.#lines.get(kind)?.remove();
    this.#lines.delete(kind);
    this.rested(kind);
  }

  /** Note that something goes on which no line tells: whoever drives the page sees when all of it has ended. */
  working(kind: string): void {
    this.#working.add(kind);
    this.element.dataset.working = [...this.#working].join(" ");
  }

  rested(kind: string): void {
    if (!this.#working.delete(kind)) return;
    if (this.#working.size) this.element.dataset.working = [...this.#working].join(" ");
    else delete this.element.dataset.working;
  }

  /** Say something that goes away by itself. */
  tell(kind: string, text: string): void {
    const line = h("p", {}, text);
    this.#put(kind, line);
    this.rested(kind);
    setTimeout(() => this.#lines.get(kind) === line && this.done(kind), 6000);
  }

  fail(kind: string, text: string, again?: () => void): void {
    this.rested(kind);
    this.#put(
      kind,
      h(
        "p",
        { class: "failed" },
        text,
        again && button("Try again", again),
        button("×", () => this.done(kind), { "aria-label": "Dismiss", class: "small" }),
      ),
    );
  }

  #put(kind: string, line: HTMLElement): void {
    const old = this.#lines.get(kind);
    if (old?.textContent === line.textContent && old.className === line.className) return;
    if (old) old.replaceWith(line);
    else this.element.append(line);
    this.#lines.set(kind, line);
  }
}
