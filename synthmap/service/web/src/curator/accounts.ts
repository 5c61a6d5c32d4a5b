import { json, ServiceError } from "../api";
import { h } from "../dom";
import { budget, loss, moment, number } from "../format";
import { type Account, sums } from "../ledger";

/** What was spent on each dataset, of which budget. */
export async function ledger(): Promise<HTMLElement[]> {
  const { datasets } = await json<{ datasets: Account[] }>(["ledger"]);
  const told = datasets.length ? datasets.map(account) : [h("p", {}, "No dataset is registered.")];
  return [h("h3", {}, "Ledger"), ...told];
}

function account(one: Account): HTMLElement {
  const name = h("h4", {}, one.title ? `${one.title} (${one.dataset})` : one.dataset);
  if (one.damaged) return h("div", {}, name, h("p", { class: "notice warning" }, one.damaged));
  const amounts = [
    ["Budget", one.budget, budget],
    ["Spent", one.spent, loss],
    ["Left", one.left, budget],
  ] as const;
  return h(
    "div",
    {},
    name,
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...["", "ε", "δ"].map((head) => h("th", { scope: "col", class: head && "number" }, head)),
        ),
      ),
      h(
        "tbody",
        {},
        ...amounts.map(([label, amount, shown]) =>
          row(label, amount ? [shown(amount.epsilon), shown(amount.delta)] : ["none", "none"]),
        ),
      ),
    ),
    ...sums(one).map((sum, i) => h("p", { class: "soft" }, `${i ? "Or, together:" : "Together:"} ${sum}`)),
    h(
      "details",
      {},
      h("summary", {}, `${one.entries.length} ${one.entries.length === 1 ? "entry" : "entries"}`),
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": `Ledger of ${one.dataset}` },
        h(
          "table",
          {},
          h(
            "tbody",
            {},
            ...one.entries.map((entry) => {
              const shown = entry.kind === "budget" ? budget : loss;
              return row(`${entry.number}. ${entry.kind}`, [
                entry.name,
                moment(entry.time),
                entry.epsilon === null ? "" : shown(entry.epsilon),
                entry.delta === null ? "" : shown(entry.delta),
              ]);
            }),
          ),
        ),
      ),
    ),
  );
}

function row(label: string, cells: string[]): HTMLElement {
  const pieces = label.split(/(?<=[_›])/); // long names break there, so that their figures stay in sight
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, ...pieces.flatMap((one) => [one, h("wbr")])),
    ...cells.map((one) => h("td", { class: one.length < 24 && "number" }, one)), // longer ones are texts
  );
}

/** What the worker measured against the confidential table: for curators, and as confidential as the table. */
export async function measured(release: string): Promise<HTMLElement[]> {
  const title = h("h3", {}, "Measured errors (confidential)");
  try {
    const found = await json<Record<string, unknown>>(["releases", release, "metrics", "confidential"]);
    const rows = [...flat(found)].map(([name, value]) => row(name, [value]));
    return [
      title,
      h("p", { class: "notice warning" }, "As confidential as the table itself: do not pass these on."),
      h(
        "div",
        { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Measured errors" },
        h("table", {}, h("tbody", {}, ...rows)),
      ),
    ];
  } catch (fault) {
    if (!(fault instanceof ServiceError && fault.status === 404)) throw fault;
    return [title, h("p", {}, "Not measured yet: run the process “evaluate” for this release.")];
  }
}

/** Every figure of a nested record under its full name. */
function* flat(record: Record<string, unknown>, above = ""): Generator<[string, string]> {
  for (const [name, value] of Object.entries(record)) {
    const full = above ? `${above} › ${name}` : name;
    if (value !== null && typeof value === "object") yield* flat(value as Record<string, unknown>, full);
    else yield [full, typeof value === "number" ? number(value) : String(value ?? "–")];
  }
}
