import { json, words } from "./api";
import { frame } from "./page";
import { Session } from "./session";
import { Status } from "./status";
import "./style.css";
import type { PageSettings } from "./types";
import { Store } from "./view";

const status = new Status();
const parts = frame(status.element);

async function start(): Promise<void> {
  status.busy("page", "Loading…");
  try {
    const settings = await json<PageSettings>(["map", "settings"]);
    const { makeMap } = await import("./map/base");
    const store = new Store();
    const map = await makeMap(parts.map, store, status, settings);
    status.done("page");
    await new Session(parts, store, map, status).start();
  } catch (fault) {
    status.fail("page", words(fault), () => void start());
  }
}

void start();
