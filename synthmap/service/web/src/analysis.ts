import { ask, json, type Query } from "./api";
import { count, isolated } from "./format";
import type { Analysis } from "./types";
import type { Area, Around, Surrounded } from "./view";

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
export async function analysePair(
  release: string,
  a: Surrounded,
  b: Surrounded,
  signal: AbortSignal,
): Promise<Analysis> {
  const request = { ...(await pair(release, a, b)), signal };
  return json<Analysis>(["releases", release, "analyses", "paired-areas"], request);
}

export async function pairFile(
  release: string,
  a: Surrounded,
  b: Surrounded,
  form: keyof typeof ACCEPT,
): Promise<Blob> {
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
  if (area.kind === "file") return `the area of ${isolated(area.file.name)}`;
  if (area.kind === "drawn") return `a drawn area with ${area.ring.length} corners`;
  const some = area.ids.slice(0, 3).map(isolated).join(", ");
  return `${area.level} ${some}${area.ids.length > 3 ? ` and ${area.ids.length - 3} more` : ""}`;
}

/** How an area is called with what lies around it. */
export function surroundings({ area, buffer, inner }: Surrounded): string {
  if (!buffer) return described(area);
  if (!inner) return `what lies within ${count(buffer)} m of ${described(area)}`;
  return `what lies ${count(inner)} to ${count(buffer)} m from ${described(area)}`;
}

/** What belongs to every question about an area that has surroundings. */
export function around({ buffer, inner }: Around): { buffer_m?: number; inner_m?: number } {
  return buffer ? { buffer_m: buffer, ...(inner && { inner_m: inner }) } : {};
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

async function pair(release: string, a: Surrounded, b: Surrounded) {
  const body = JSON.stringify({ a: await resolved(release, a), b: await resolved(release, b) });
  return { method: "POST", body, headers: { "Content-Type": "application/json" } };
}

async function resolved(release: string, { area, ...rest }: Surrounded): Promise<unknown> {
  const metres = around(rest);
  if (area.kind !== "file") return metres.buffer_m ? { around: document(area), ...metres } : document(area);
  const found = await json<{ zone_ids: string[] | null }>(path({ release, name: "area", area, query: {} }), {
    query: metres,
    ...sent(area),
  });
  if (!found.zone_ids)
    throw new Error("The uploaded area has too many zones to be compared with another one.");
  return { zones: found.zone_ids };
}

function document(area: Exclude<Area, { kind: "file" }>): unknown {
  if (area.kind === "units") return { zones: area.ids, level: area.level };
  const [first] = area.ring;
  return { type: "Polygon", coordinates: [first ? [...area.ring, first] : []] };
}
