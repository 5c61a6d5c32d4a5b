// The key of a reader, analyst or curator. It is kept for this tab only, and never stands in an address.
const NAME = "synthmap.key";
const listeners: (() => void)[] = [];
let kept = read();

export function secret(): string {
  return kept;
}

export function setSecret(value: string): void {
  kept = value.trim();
  try {
    if (kept) sessionStorage.setItem(NAME, kept);
    else sessionStorage.removeItem(NAME);
  } catch {
    // without storage it is kept until the page is left
  }
  for (const one of listeners) one();
}

export function onSecret(listener: () => void): void {
  listeners.push(listener);
}

/** Take a key out of the address (?token=…): what was pasted there must not stay in the history. */
function read(): string {
  const url = new URL(location.href);
  const token = url.searchParams.get("token");
  if (token !== null) {
    url.searchParams.delete("token");
    history.replaceState(history.state, "", url);
  }
  try {
    if (token) sessionStorage.setItem(NAME, token);
    return token ?? sessionStorage.getItem(NAME) ?? "";
  } catch {
    return token ?? "";
  }
}
