// Colours of the drawn map, light and dark; the same two hues for home and work everywhere, with like contrast.
import type { End } from "../view";

const dark = window.matchMedia("(prefers-color-scheme: dark)");

export interface Palette {
  paper: string;
  ink: string;
  line: string;
  chosen: string;
  home: string;
  work: string;
  /** From few to many. */
  heat: string[];
}

const LIGHT: Palette = {
  paper: "#eef1f4",
  ink: "#1c2530",
  line: "#9aa7b4",
  chosen: "#b3261e",
  home: "#b45309",
  work: "#0b5cad",
  heat: ["#f3e3b3", "#f0b45a", "#d9662b", "#9c2a1f", "#520b14"],
};
const DARK: Palette = {
  paper: "#10151a",
  ink: "#e6ebf0",
  line: "#4d5a66",
  chosen: "#ff8a80",
  home: "#f5a350",
  work: "#7ab8f5",
  heat: ["#3a1a22", "#7d2a2f", "#c4532f", "#f0a04b", "#fbe7a8"],
};

export const isDark = (): boolean => dark.matches;
export const palette = (): Palette => (dark.matches ? DARK : LIGHT);
export const hue = (end: End): string => palette()[end];

/** Call when the reader's system changes between light and dark. */
export function onScheme(listener: () => void): void {
  dark.addEventListener("change", listener);
}
