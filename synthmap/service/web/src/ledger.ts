import { loss } from "./format";

export interface Loss {
  epsilon: number;
  delta: number;
}

export interface Account {
  dataset: string;
  title: string;
  damaged?: string;
  budget: Loss | null;
  spent: Loss;
  left: Loss;
  composition: string;
  tighter: (Loss & { composition: string }) | null;
  entries: {
    number: number;
    kind: string;
    name: string;
    time: string;
    epsilon: number | null;
    delta: number | null;
  }[];
}

/** What all losses of a dataset come to, by every rule that holds, with its name. */
export function sums(one: Account): string[] {
  const told = (sum: Loss, rule: string): string =>
    `ε = ${loss(sum.epsilon)}, δ = ${loss(sum.delta)} (${rule})`;
  return [
    told(one.spent, one.composition),
    ...(one.tighter ? [told(one.tighter, one.tighter.composition)] : []),
  ];
}
