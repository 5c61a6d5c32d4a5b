import { field, h, select, show } from "../dom";
import { count, isolated, loss } from "../format";
import type { Release } from "../types";
import type { Store } from "../view";

/** Which release is shown, and what must be known before its figures are used. */
export class ReleasePanel {
  readonly element = h("div", { class: "release" });

  constructor(private readonly store: Store) {}

  draw(releases: Release[], current: Release | null): void {
    if (!releases.length) {
      show(
        this.element,
        h("p", { class: "notice" }, "There is no release yet. A curator can make one below, with a key."),
      );
      return;
    }
    const choices = releases.map((one) => ({
      value: one.id,
      text:
        one.status === "damaged"
          ? `${one.id} (damaged)`
          : `${isolated(one.title)}${one.year === null ? "" : `, ${one.year}`} · ε ${loss(one.epsilon)} · ${one.id}`,
      disabled: one.status === "damaged",
    }));
    const list = select(choices, current?.id ?? "", (release) =>
      this.store.set({ release, level: "", area: null, at: null }),
    );
    show(
      this.element,
      field("Release", list),
      ...releases.filter((one) => one.fault).map(fault),
      current && facts(current),
    );
  }
}

function fault(release: Release): HTMLElement {
  return h("p", { class: "notice warning" }, `${release.id}: ${release.fault}`);
}

function facts(release: Release): HTMLElement {
  const promise = release.delta
    ? `(ε, δ)-differentially private with ε = ${loss(release.epsilon)}, δ = ${loss(release.delta)}`
    : `ε-differentially private, ε = ${loss(release.epsilon)}`;
  return h(
    "div",
    {},
    !release.private &&
      h("p", { class: "notice warning", role: "note" }, `NOT PRIVATE: ${release.warning ?? ""}`),
    h(
      "p",
      { class: "notice", role: "note" },
      `Synthetic: workplaces are exact, homes are drawn${release.private ? `, ${promise}` : ""}. A single zone is mostly chance: sum zones up before you read them.`,
    ),
    h(
      "p",
      { class: "soft" },
      `${count(release.workers)} workers, ${count(release.destinations)} workplaces, ${count(release.zones)} zones, vintage ${release.vintage}.`,
    ),
  );
}
