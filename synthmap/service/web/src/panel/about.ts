import { address, ask, json, words } from "../api";
import { button, h, save, show } from "../dom";
import { bytes } from "../format";
import { secret } from "../key";
import type { Status } from "../status";
import type { Store } from "../view";

interface Download {
  name: string;
  title: string;
  bytes: number | null;
  state: "ready" | "on request" | "by job";
  href: string;
}

/** The privacy statement, in its own words. */
export async function statement(store: Store, status: Status, into: HTMLElement): Promise<void> {
  const path = ["releases", store.view.release, "statement"];
  try {
    const text = await (await ask(path, { headers: { Accept: "text/plain" } })).text();
    const page = h("a", { href: address(path, { f: "html" }) }, "The whole statement, as a page");
    show(into, h("pre", { class: "statement", tabindex: 0 }, text), h("p", {}, page));
    status.done("statement");
  } catch (fault) {
    status.fail("statement", words(fault), () => void statement(store, status, into));
  }
}

/** The files of a release. With a key they are asked for with it; without, they are plain links. */
export async function downloads(store: Store, status: Status, into: HTMLElement): Promise<void> {
  try {
    const found = await json<{ files: Download[] }>(["releases", store.view.release, "downloads"]);
    show(
      into,
      h(
        "ul",
        { class: "plain" },
        ...found.files.map((one) =>
          h("li", {}, offer(one, status), h("span", { class: "soft" }, ` ${about(one)}`)),
        ),
      ),
    );
    status.done("downloads");
  } catch (fault) {
    status.fail("downloads", words(fault), () => void downloads(store, status, into));
  }
}

function about(file: Download): string {
  const state = { ready: "", "on request": "made when asked for", "by job": "made by a job of a curator" }[
    file.state
  ];
  return [file.title, bytes(file.bytes), state].filter(Boolean).join(", ");
}

function offer(file: Download, status: Status): HTMLElement {
  if (!secret()) return h("a", { href: file.href, download: "" }, file.name);
  const fetched = async (): Promise<void> => {
    status.busy("file", `Fetching ${file.name}…`);
    try {
      save(await (await ask(file.href)).blob(), file.name.replaceAll("/", "-"));
      status.done("file");
    } catch (fault) {
      status.fail("file", words(fault));
    }
  };
  return button(file.name, () => void fetched(), { class: "link" });
}
