import { secret } from "./key";

/** Where the service is: the page is at <here>/map. */
const here = new URL(".", document.baseURI);

export type Query = Record<string, string | number | readonly string[] | null | undefined>;

export interface Request {
  query?: Query;
  method?: string;
  body?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** What went wrong, in words for people. Status 0: the service did not answer. */
export class ServiceError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The address of a path of the service; its parts are escaped. */
export function address(path: readonly string[], query: Query = {}): string {
  const found = new URL(path.map(encodeURIComponent).join("/"), here);
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== null && one !== undefined && one !== "") found.searchParams.append(name, String(one));
  return found.href;
}

/**
 * Ask the service, with the key if there is one.
 *
 * Credentials of the browser's own stay out: with them, a refusal would open its dialog over the map.
 */
export async function ask(path: readonly string[] | string, request: Request = {}): Promise<Response> {
  const url = typeof path === "string" ? path : address(path, request.query);
  const headers: Record<string, string> = { ...request.headers };
  const key = secret();
  if (key) headers.Authorization = `Bearer ${key}`;
  let answer: Response;
  try {
    answer = await fetch(url, {
      method: request.method ?? "GET",
      body: request.body ?? null,
      headers,
      signal: request.signal ?? null,
      credentials: "omit",
    });
  } catch (fault) {
    if (fault instanceof DOMException && fault.name === "AbortError") throw fault;
    throw new ServiceError(0, "The service does not answer. Try again when it runs.");
  }
  if (!answer.ok) throw new ServiceError(answer.status, await detail(answer));
  return answer;
}

export async function json<T>(path: readonly string[] | string, request: Request = {}): Promise<T> {
  const headers = { Accept: "application/json", ...request.headers };
  const answer = await ask(path, { ...request, headers });
  return (await answer.json()) as T;
}

/** An answer of several pages. */
export interface Paged {
  links: { rel: string; href: string }[];
}

/** All pages of an answer, one after another: how long one may be is the operator's choice. */
export async function* pages<T extends Paged>(
  path: readonly string[],
  request: Request = {},
): AsyncGenerator<T> {
  let asked: Query | undefined = request.query ?? {};
  while (asked) {
    const answer: T = await json<T>(path, { ...request, query: asked });
    yield answer;
    const next = answer.links.find((one) => one.rel === "next");
    asked = next && { ...request.query, cursor: new URL(next.href).searchParams.get("cursor") };
  }
}

/** Whether an error only says that its question is no longer asked. */
export function outdated(fault: unknown): boolean {
  return fault instanceof DOMException && fault.name === "AbortError";
}

/** An error in words. */
export function words(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}

async function detail(answer: Response): Promise<string> {
  if (answer.status === 401)
    return "This needs a key, or the key is not one of the service's. Enter one under “Key”.";
  try {
    const told = ((await answer.json()) as { detail?: unknown }).detail;
    if (typeof told === "string") return told;
  } catch {
    // no problem document: the status says it
  }
  return `The service refused this (${answer.status}).`;
}
