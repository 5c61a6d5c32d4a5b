// The key of a reader, analyst or curator. It is kept for this tab only, and never stands in an address.
const NAME = "synthmap.key";
const listeners: (() => void)[] = [];
let kept = "";

export function secret(): string {
  return kept;
}

/** Use a key, or none; throws if no key is written like that, as when a sign was copied that only looks like another. */
export function setSecret(value: string): void {
  const found = value.trim();
  if (!/^[!-~]*$/.test(found))
    throw new Error(
      "The key has signs that no key has, such as spaces or letters with accents: copy it anew.",
    );
  kept = found;
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

/**
 * Use the key in the address (?token=…), else the one that this tab has kept.
 *
 * It is taken out of the address: what was pasted there must not stay in the history.
 */
export function findSecret(): void {
  const url = new URL(location.href);
  const token = url.searchParams.get("token");
  if (token !== null) {
    url.searchParams.delete("token");
    history.replaceState(history.state, "", url);
  }
  setSecret(token ?? stored());
}

function stored(): string {
  try {
    return sessionStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
}
