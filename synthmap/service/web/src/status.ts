import { button, h } from "./dom";

/**
 * What is going on, for eyes and for screen readers: what is being loaded, and what failed.
 *
 * Each kind of work has one line, which its next success takes away.
 */
export class Status {
  readonly element = h("div", { class: "status", role: "status", "aria-live": "polite" });
  readonly #lines = new Map<string, HTMLElement>();

  busy(kind: string, text: string): void {
    this.#put(kind, h("p", { class: "busy" }, text));
  }

  done(kind: string): void {
    this.#lines.get(kind)?.remove();
    this.#lines.delete(kind);
  }

  /** Say something that goes away by itself. */
  tell(kind: string, text: string): void {
    const line = h("p", {}, text);
    this.#put(kind, line);
    setTimeout(() => this.#lines.get(kind) === line && this.done(kind), 6000);
  }

  fail(kind: string, text: string, again?: () => void): void {
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
