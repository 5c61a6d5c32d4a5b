import { ask, json, ServiceError, words } from "../api";
import { button, field, h, select, show } from "../dom";
import { secret, setSecret } from "../key";
import { Reading } from "../panel/reading";
import type { Status } from "../status";
import type { Release } from "../types";
import type { Store } from "../view";
import { ledger, measured } from "./accounts";
import { Jobs } from "./jobs";
import { type Input, schemaForm } from "./schema_form";

const PROCESSES = ["release", "evaluate", "export"];

interface Process {
  title: string;
  description: string;
  inputs: Record<string, Input>;
}

interface Dataset {
  id: string;
  title: string;
}

/** The key, and for curators what it opens: processes, jobs, the ledger, measured errors. */
export class CuratorPanel {
  readonly element = h("div", {});
  readonly #work = h("div", {});
  readonly #ledger: Reading;
  readonly #measured: Reading;
  readonly #jobs: Jobs;
  #process = "release";
  #turn = 0; // another with every key

  constructor(
    store: Store,
    private readonly status: Status,
    private readonly releases: () => Release[],
    made: () => void,
  ) {
    this.#jobs = new Jobs(status, () => {
      made();
      void this.#ledger.again();
      void this.#measured.again();
    });
    this.#ledger = new Reading(store, status, "ledger", ledger, true);
    this.#measured = new Reading(store, status, "measured", measured);
  }

  /** Show the key's field, and what the key opens. */
  open(): void {
    const input = h("input", { type: "password", autocomplete: "off", spellcheck: "false" });
    const use = (event: Event): void => {
      event.preventDefault();
      if (!input.value.trim()) return;
      try {
        setSecret(input.value);
      } catch (fault) {
        this.status.fail("key", words(fault));
        return;
      }
      this.open();
    };
    const forget = (): void => {
      setSecret("");
      this.open();
    };
    const kept = h("p", {}, "A key is in use, for this tab only. ", button("Forget it", forget));
    const form = h(
      "form",
      { onsubmit: use },
      field(
        "Key",
        input,
        "It stays in this tab and in no address. Curators can publish and measure releases with theirs.",
      ),
      h("button", { type: "submit" }, "Use the key"),
    );
    show(this.element, secret() ? kept : form, this.#work);
    this.#turn += 1;
    this.#work.replaceChildren();
    for (const one of [this.#jobs, this.#ledger, this.#measured]) one.close();
    for (const kind of ["key", "form", "process"]) this.status.done(kind);
    if (secret()) void this.#enter();
  }

  async #enter(): Promise<void> {
    const turn = this.#turn;
    this.status.busy("key", "Looking up the key…");
    try {
      const { datasets } = await json<{ datasets: Dataset[] }>(["datasets"]);
      if (turn !== this.#turn) return;
      this.status.done("key");
      this.#show(datasets);
    } catch (fault) {
      if (turn !== this.#turn) return;
      if (fault instanceof ServiceError && fault.status === 401) {
        setSecret("");
        this.open();
        this.status.fail("key", "The key is not one of the service's, or was revoked.");
      } else if (fault instanceof ServiceError && fault.status === 403) {
        this.status.done("key");
        show(this.#work, h("p", { class: "soft" }, "This key reads; publishing needs a curator's."));
      } else this.status.fail("key", words(fault), () => void this.#enter());
    }
  }

  #show(datasets: Dataset[]): void {
    const form = h("div", {});
    const list = select(
      PROCESSES.map((one) => ({ value: one, text: one })),
      this.#process,
      (name) => {
        this.#process = name;
        void this.#form(datasets, form);
      },
    );
    const below = [this.#jobs, this.#ledger, this.#measured].map((one) => one.element);
    show(this.#work, field("Process", list), form, ...below);
    void this.#form(datasets, form);
    void this.#jobs.look();
    void this.#ledger.open();
    void this.#measured.open();
  }

  async #form(datasets: Dataset[], into: HTMLElement): Promise<void> {
    const name = this.#process;
    const turn = this.#turn;
    const asked = (): boolean => turn === this.#turn && name === this.#process;
    show(into, h("p", { class: "soft" }, "Loading…"));
    try {
      const process = await json<Process>(["processes", name]);
      if (!asked()) return;
      this.status.done("form");
      const known = {
        dataset: datasets.map((one) => ({
          value: one.id,
          text: one.title ? `${one.id}: ${one.title}` : one.id,
        })),
        release: this.releases()
          .filter((one) => one.status === "available")
          .map((one) => ({ value: one.id, text: one.id })),
      };
      const fields = schemaForm(process.inputs, known);
      const run = (event: Event): void => {
        event.preventDefault();
        void this.#run(name, fields.values());
      };
      show(
        into,
        h("p", { class: "soft" }, process.description),
        h(
          "form",
          { onsubmit: run },
          fields.element,
          h("button", { type: "submit", class: "main" }, process.title),
        ),
      );
    } catch (fault) {
      if (!asked()) return;
      into.replaceChildren();
      this.status.fail("form", words(fault), () => void this.#form(datasets, into));
    }
  }

  async #run(name: string, inputs: Record<string, unknown>): Promise<void> {
    const headers = {
      "Content-Type": "application/json",
      Prefer: "respond-async",
      "Idempotency-Key": once(),
    };
    const turn = this.#turn;
    const send = async (): Promise<void> => {
      this.status.busy("process", "Asking for it…");
      try {
        await ask(["processes", name, "execution"], {
          method: "POST",
          body: JSON.stringify({ inputs }),
          headers,
        });
        if (turn !== this.#turn) return;
        this.status.done("process");
        await this.#jobs.look();
      } catch (fault) {
        if (turn !== this.#turn) return;
        // sent again under the same name it is the same job: what it spends is spent once
        const again =
          fault instanceof ServiceError && (fault.status === 0 || fault.status >= 500)
            ? () => void send()
            : undefined;
        this.status.fail("process", words(fault), again);
      }
    };
    await send();
  }
}

/** A name of our own for a request. */
function once(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((one) => one.toString(16).padStart(2, "0"))
    .join("");
}
