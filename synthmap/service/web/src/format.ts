// numbers and times as the reader's locale writes them
const languages = [...navigator.languages];
const whole = new Intl.NumberFormat(languages, { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat(languages, { maximumSignificantDigits: 2 });
const plain = new Intl.NumberFormat(languages, { maximumSignificantDigits: 3 });
const exact = new Intl.NumberFormat(languages, { maximumSignificantDigits: 6 });
const shares = new Intl.NumberFormat(languages, { style: "percent", maximumFractionDigits: 1 });
const decimal = plain.formatToParts(1.5).find((one) => one.type === "decimal")?.value ?? ".";
const room = 2 ** -40; // of a figure: sums of decimals that no float holds read as on paper
const times = new Intl.DateTimeFormat(languages, { dateStyle: "medium", timeStyle: "short" });

export const count = (value: number): string => whole.format(value);
export const percent = (value: number): string => shares.format(value);
export const number = (value: number): string => plain.format(value);
export const moment = (value: string): string => times.format(new Date(value));

/** Text of a direction of its own: letters from right to left do not turn around what stands beside them. */
export const isolated = (text: string): string => `\u2068${text}\u2069`;

/** An expected error: whole from ten on, two digits below. */
export const error = (value: number): string => (value >= 10 ? whole.format(value) : fine.format(value));

/** A difference with its expected error: more has a plus. */
export const difference = (workers: number, expected: number): string =>
  `${workers > 0 ? "+" : ""}${figure(workers, expected)}`;

/** A figure with its expected error. */
export function figure(workers: number, expected: number): string {
  return expected === 0 ? count(workers) : `${count(workers)} ± ${error(expected)}`;
}

/** An amount of privacy loss: what is shown is not below it. */
export const loss = (value: number): string => safe(value, Math.ceil, 1 - room);

/** A budget, or what is left of one: what is shown is not above it. */
export const budget = (value: number): string => safe(value, Math.floor, 1 + room);

/** Six digits, very small figures three and a power of ten. */
function safe(value: number, round: (value: number) => number, share: number): string {
  if (value === 0) return exact.format(0);
  const small = value < 0.001;
  const scale = 10 ** ((small ? 2 : 5) - Math.floor(Math.log10(value)));
  const rounded = round(value * scale * share) / scale;
  if (!small) return exact.format(rounded);
  const [digits, power] = rounded.toExponential(2).split("e") as [string, string];
  const raised = [...power].map((one) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(one)] ?? "").join("");
  return `${number(Number(digits))}·10${raised}`;
}

/** What stands between numbers of a list, in words: a comma where it is in no number. */
export const between = decimal === "," ? "semicolons" : "commas";

/** Numbers with commas between them, as the reader's locale writes a list of them. */
export function listed(numbers: string): string {
  const written = numbers.split(",").map((one) => one.replace(".", decimal));
  return written.join(decimal === "," ? "; " : ", ");
}

/** A list of numbers as a reader writes it, with commas between them: spaces and semicolons divide, too. */
export function unlisted(text: string): string {
  const parts = text.split(decimal === "," ? /,?[;\s]+/ : /[,;\s]+/).filter(Boolean);
  return parts.map((one) => one.replaceAll(decimal, ".")).join(",");
}

export function bytes(value: number | null): string {
  if (value === null) return "";
  const units = ["B", "kB", "MB", "GB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  return `${fine.format(value / 1000 ** step)} ${units[step]}`;
}
