import { ask, json, words } from "../api";
import { button, h, show } from "../dom";
import { moment } from "../format";
import { secret } from "../key";
import type { Status } from "../status";

interface Job {
  jobID: string;
  processID: string;
  status: "accepted" | "running" | "successful" | "failed" | "dismissed";
  message: string;
  progress: number;
  created: string;
  inputs: Record<string, unknown>;
}

const GOING = ["accepted", "running"];
const WAIT = 1500; // milliseconds between looks, while something is going on

/** The curators' jobs; looked at again and again while one is going on. */
export class Jobs {
  readonly element = h("div", {});
  readonly #list = h("ul", { class: "plain" });
  #timer = 0;
  #turn = 0;
  #going = new Set<string>();

  constructor(
    private readonly status: Status,
    private readonly finished: () => void,
  ) {
    show(this.element, h("h3", {}, "Jobs"), this.#list);
    this.close();
  }

  /** Forget the jobs: the key that they are looked at with is forgotten. */
  close(): void {
    this.#stop();
    this.#going.clear();
    this.status.done("jobs");
    show(this.#list, h("li", {}, "Loading…"));
  }

  async look(): Promise<void> {
    this.#stop();
    if (!secret()) return;
    const turn = this.#turn;
    try {
      const { jobs } = await json<{ jobs: Job[] }>(["jobs"], { query: { limit: 10 } });
      if (turn !== this.#turn) return;
      this.status.done("jobs");
      show(this.#list, ...jobs.map((job) => this.#row(job)));
      if (!jobs.length) show(this.#list, h("li", {}, "No job yet."));
      const ended = jobs.filter((job) => this.#going.has(job.jobID) && !GOING.includes(job.status));
      this.#going = new Set(jobs.filter((job) => GOING.includes(job.status)).map((job) => job.jobID));
      if (ended.length) this.finished();
      if (this.#going.size) this.#timer = window.setTimeout(() => void this.look(), WAIT);
    } catch (fault) {
      if (turn === this.#turn) this.status.fail("jobs", words(fault), () => void this.look());
    }
  }

  /** Look no more, and pass over what is still answered. */
  #stop(): void {
    window.clearTimeout(this.#timer);
    this.#turn += 1;
  }

  #row(job: Job): HTMLElement {
    const about = String(job.inputs.dataset ?? job.inputs.release ?? "");
    const going = GOING.includes(job.status);
    return h(
      "li",
      { class: "job", "data-status": job.status },
      h("b", {}, `${job.processID} ${about}`),
      ` ${job.status}, ${moment(job.created)}`,
      going &&
        h("progress", {
          max: 100,
          value: job.progress,
          "aria-label": `Progress of ${job.processID} ${about}`,
        }),
      h("div", { class: "soft" }, job.message),
      going && button("Dismiss", () => void this.#dismiss(job)),
    );
  }

  async #dismiss(job: Job): Promise<void> {
    const key = secret();
    try {
      await ask(["jobs", job.jobID], { method: "DELETE" });
      this.status.done("dismiss");
    } catch (fault) {
      if (key === secret()) this.status.fail("dismiss", words(fault)); // a look at the jobs does not take it away
    }
    if (key === secret()) await this.look();
  }
}
