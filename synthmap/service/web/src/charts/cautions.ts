import { h } from "../dom";
import type { Analysis } from "../types";

/** What to know before figures are relied on, in one calm box: alarms are for what failed. */
export function cautions({ warnings }: Pick<Analysis, "warnings">): HTMLElement | null {
  if (!warnings.length) return null;
  return h(
    "div",
    { class: "notice caution", role: "note" },
    h("b", {}, "Before you rely on these figures"),
    h("ul", {}, ...warnings.map((text) => h("li", {}, text))),
  );
}
