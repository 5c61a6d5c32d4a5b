import { button, h, save } from "../dom";
import type { Analysis, Row } from "../types";
import { cautions } from "./cautions";
import { inout } from "./inout";
import { band, radial } from "./radial";
import { type Bar, ranked } from "./ranked";
import { table } from "./table";

export type Form = "csv" | "png" | "pdf";

/** An analysis to read: warnings first, the picture, every figure with its error, the citation, files. */
export function result(
  analysis: Analysis,
  file: (form: Form) => Promise<Blob>,
  failed: (fault: unknown) => void,
): HTMLElement {
  const give = async (form: Form): Promise<void> => {
    try {
      save(await file(form), `${analysis.release}-${analysis.analysis}.${form}`);
    } catch (fault) {
      failed(fault);
    }
  };
  const forms: Form[] = ["csv", "png", "pdf"];
  return h(
    "section",
    { class: "analysis", "aria-label": analysis.analysis_title },
    h("h3", {}, analysis.analysis_title),
    ...analysis.areas.map((area) =>
      h(
        "p",
        { class: "soft" },
        `${area.name === "area" ? "" : `${area.name}: `}${area.description}. ${area.notes.join(" ")}`,
      ),
    ),
    cautions(analysis),
    picture(analysis),
    h(
      "details",
      {},
      h("summary", {}, "All figures"),
      table(analysis, named(analysis)),
      h("p", { class: "soft" }, analysis.expected_error),
    ),
    h("p", { class: "soft cite" }, analysis.citation),
    h("div", { class: "buttons" }, ...forms.map((form) => button(form.toUpperCase(), () => void give(form)))),
  );
}

/** The picture of an analysis alone. */
export function picture(analysis: Analysis): HTMLElement {
  const name = named(analysis);
  const bars = (rows: Row[]): Bar[] => rows.map((row) => ({ ...row, label: name(row) }));
  switch (analysis.analysis) {
    case "inflow-outflow":
      return h("div", {}, inout(analysis), ranked("Workers", bars(analysis.rows)));
    case "distance-direction": {
      const rest = bars(analysis.rows.filter(undirected));
      return h("div", {}, radial(analysis), ranked("Without direction, and all", rest));
    }
    case "destinations":
    case "origins": {
      const units = analysis.rows.filter((row) => row.group === "unit"); // beside their total they would be slivers
      return ranked("Workers, with the expected error", bars(units));
    }
    case "time": {
      const { before, after } = analysis.parameters.releases as { before: string; after: string };
      const sectors = analysis.parameters.of === "distance-direction";
      const charted = analysis.rows.filter((row) => (sectors ? undirected(row) : row.group === "unit"));
      const rows = bars(charted.length ? charted : analysis.rows);
      return h(
        "div",
        {},
        h("p", { class: "soft" }, `From ${before} to ${after}.`),
        sectors && radial(analysis),
        ranked("Difference, with the expected error of both; pale where it is within noise", rows, true),
      );
    }
    default:
      return ranked("Workers, with the expected error", bars(analysis.rows));
  }
}

/** Whether a row of distance and direction belongs to no sector: it is charted as a bar. */
function undirected(row: Row): boolean {
  return ["same_zone", "elsewhere", "all"].includes(row.direction ?? "");
}

function named(analysis: Analysis): (row: Row) => string {
  const units = String(analysis.parameters.units ?? "");
  const words: Record<string, string> = {
    same_zone: "same zone",
    elsewhere: "off the map",
    all: "all",
    others: "all others",
    total: "total",
  };
  return (row) => {
    if (row.label) return row.label;
    if (row.direction)
      return [words[row.direction] ?? row.direction, band(row, units)].filter(Boolean).join(", ");
    if (row.group && row.group !== "unit") return words[row.group] ?? row.group;
    return row.id === "elsewhere" ? "off the map" : (row.id ?? "");
  };
}
