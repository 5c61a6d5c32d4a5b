import { json, words } from "./api";
import { findSecret } from "./key";
import { frame } from "./page";
import { Session } from "./session";
import { Status } from "./status";
import "./style.css";
import type { PageSettings } from "./types";
import { Store } from "./view";

const status = new Status();
const parts = frame(status.element);

try {
  findSecret();
} catch (fault) {
  status.fail("key", words(fault));
}

async function start(): Promise<void> {
  status.busy("page", "Loading…");
  try {
    const settings = await json<PageSettings>(["map", "settings"]);
    const { makeMap } = await import("./map/base");
    const store = new Store();
    let session: Session | undefined;
    const map = await makeMap(parts.map, store, status, settings, () => session?.again());
    status.done("page");
    session = new Session(parts, store, map, status, settings);
    await session.start();
  } catch (fault) {
    status.fail("page", words(fault), () => void start());
  }
}

void start();
