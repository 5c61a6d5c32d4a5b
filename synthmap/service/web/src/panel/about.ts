import { address, ask, json, words } from "../api";
import { button, h, save } from "../dom";
import { bytes } from "../format";
import { secret } from "../key";
import { type Account, sums } from "../ledger";
import type { Status } from "../status";

interface Download {
  name: string;
  title: string;
  bytes: number | null;
  state: "ready" | "on request" | "by job";
  href: string;
}

/** The privacy statement, in its own words, and what all that is known of the same jobs comes to. */
export async function statement(release: string, status: Status): Promise<HTMLElement[]> {
  const path = ["releases", release, "statement"];
  const text = await (await ask(path, { headers: { Accept: "text/plain" } })).text();
  const whole = "The whole statement, as a page";
  const link = address(path, { f: "html" });
  const page = secret()
    ? fetched(whole, link, `${release}-statement.html`, status)
    : h("a", { href: link }, whole);
  return [h("pre", { class: "statement", tabindex: 0 }, text), await together(release), h("p", {}, page)];
}

/** What all that was released of the jobs of a release comes to, as the public ledger tells it. */
async function together(release: string): Promise<HTMLElement> {
  const { datasets } = await json<{ datasets: Account[] }>(["ledger"]);
  const own = datasets.find((one) => one.entries?.some((entry) => entry.name === release));
  if (!own) return h("p", {}, "No ledger of this service holds this release.");
  const told = sums(own).map((sum, i) => h("li", {}, i ? `or ${sum}` : sum));
  return h("div", {}, "All that was released of the same jobs, together:", h("ul", {}, ...told));
}

/** The files of a release. With a key they are asked for with it; without, they are plain links. */
export async function downloads(release: string, status: Status): Promise<HTMLElement[]> {
  const { files } = await json<{ files: Download[] }>(["releases", release, "downloads"]);
  const items = files.map((one) =>
    h("li", {}, offer(one, status), h("span", { class: "soft" }, ` ${about(one)}`)),
  );
  return [h("ul", { class: "plain" }, ...items)];
}

function about(file: Download): string {
  const state = { ready: "", "on request": "made when asked for", "by job": "made by a job of a curator" }[
    file.state
  ];
  return [file.title, bytes(file.bytes), state].filter(Boolean).join(", ");
}

function offer(file: Download, status: Status): HTMLElement {
  if (!secret()) return h("a", { href: file.href, download: "" }, file.name);
  return fetched(file.name, file.href, file.name.replaceAll("/", "-"), status);
}

/** A button that fetches a file with the key: a link would be asked for without it. */
function fetched(text: string, href: string, name: string, status: Status): HTMLElement {
  const fetch = async (): Promise<void> => {
    status.busy("file", `Fetching ${name}…`);
    try {
      save(await (await ask(href)).blob(), name);
      status.done("file");
    } catch (fault) {
      status.fail("file", words(fault));
    }
  };
  return button(text, () => void fetch(), { class: "link" });
}
