import { ask, json, type Query } from "./api";
import type { Analysis } from "./types";
import type { Area, View } from "./view";

/** An analysis that can be asked for. */
export interface Asked {
  release: string;
  name: string;
  area: Area;
  query: Query;
}

const ACCEPT = { csv: "text/csv", png: "image/png", pdf: "application/pdf" };

/** Ask for an analysis of an area. */
export async function analyse(asked: Asked, signal?: AbortSignal): Promise<Analysis> {
  return json<Analysis>(path(asked), { query: asked.query, ...sent(asked.area), signal });
}

/** Ask for the same as a file. */
export async function analysisFile(asked: Asked, form: keyof typeof ACCEPT): Promise<Blob> {
  const { headers, ...rest } = sent(asked.area);
  const found = await ask(path(asked), {
    query: { ...asked.query, f: form },
    ...rest,
    headers: { ...headers, Accept: ACCEPT[form] },
  });
  return found.blob();
}

/** Ask for flows between two areas. An uploaded one is sent as the zones that it selects. */
export async function analysePair(release: string, a: Area, b: Area): Promise<Analysis> {
  return json<Analysis>(["releases", release, "analyses", "paired-areas"], await pair(release, a, b));
}

export async function pairFile(release: string, a: Area, b: Area, form: keyof typeof ACCEPT): Promise<Blob> {
  const { headers, ...rest } = await pair(release, a, b);
  const found = await ask(["releases", release, "analyses", "paired-areas"], {
    ...rest,
    query: { f: form },
    headers: { ...headers, Accept: ACCEPT[form] },
  });
  return found.blob();
}

/** How an area is called in a list. */
export function described(area: Area): string {
  if (area.kind === "file") return `the area of ${area.file.name}`;
  if (area.kind === "drawn") return `a drawn area with ${area.ring.length} corners`;
  const some = area.ids.slice(0, 3).join(", ");
  return `${area.level} ${some}${area.ids.length > 3 ? ` and ${area.ids.length - 3} more` : ""}`;
}

/** What of the view belongs to every question about its area. */
export function around(view: View): Query {
  return { buffer_m: view.buffer || undefined };
}

function path({ release, name }: Asked): string[] {
  return ["releases", release, "analyses", name];
}

function sent(area: Area): { method: string; body: BodyInit; headers: Record<string, string> } {
  if (area.kind === "file")
    return { method: "POST", body: area.file, headers: { "Content-Type": "application/octet-stream" } };
  return {
    method: "POST",
    body: JSON.stringify(document(area)),
    headers: { "Content-Type": "application/json" },
  };
}

async function pair(release: string, a: Area, b: Area) {
  const body = JSON.stringify({ a: await resolved(release, a), b: await resolved(release, b) });
  return { method: "POST", body, headers: { "Content-Type": "application/json" } };
}

async function resolved(release: string, area: Area): Promise<unknown> {
  if (area.kind !== "file") return document(area);
  const found = await json<{ zone_ids: string[] | null }>(
    path({ release, name: "area", area, query: {} }),
    sent(area),
  );
  if (!found.zone_ids)
    throw new Error("The uploaded area has too many zones to be compared with another one.");
  return { zones: found.zone_ids };
}

function document(area: Exclude<Area, { kind: "file" }>): unknown {
  if (area.kind === "units") return { zones: area.ids, level: area.level };
  const [first] = area.ring;
  return { type: "Polygon", coordinates: [first ? [...area.ring, first] : []] };
}
