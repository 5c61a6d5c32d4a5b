import { type Choice, field, h, select } from "../dom";

interface Schema {
  type?: string;
  enum?: (string | number)[];
  anyOf?: Schema[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  example?: unknown;
}

export interface Input {
  title: string;
  description: string;
  minOccurs: number;
  schema: Schema;
}

export interface Form {
  element: HTMLElement;
  /** What was filled in, by input; what was left out is not there. */
  values(): Record<string, unknown>;
}

/**
 * A form for the inputs of a process, from their JSON schemas alone.
 *
 * @param known what an input can be, where the service knows: datasets, releases.
 */
export function schemaForm(inputs: Record<string, Input>, known: Record<string, Choice[]>): Form {
  const read: Record<string, () => unknown> = {};
  const fields = Object.entries(inputs).map(([name, input]) => {
    const needed = input.minOccurs > 0;
    const control = controlOf(input.schema, needed, known[name]);
    control.setAttribute("name", name);
    if (needed) control.setAttribute("required", "");
    const none = h("input", {
      type: "checkbox",
      onchange: () => {
        control.disabled = none.checked;
      },
    });
    read[name] = () => (none.checked ? [] : parsed(input.schema, control.value.trim()));
    return h(
      "div",
      {},
      field(needed ? `${input.title} (needed)` : input.title, control, input.description),
      !needed && mayBeNone(input.schema) && h("label", { class: "check" }, none, `${input.title}: none`),
    );
  });
  return {
    element: h("div", {}, ...fields),
    values: () =>
      Object.fromEntries(
        Object.entries(read)
          .map(([name, value]) => [name, value()] as const)
          .filter(([, value]) => value !== undefined),
      ),
  };
}

function controlOf(schema: Schema, needed: boolean, known?: Choice[]): HTMLInputElement | HTMLSelectElement {
  const choices = known ?? schema.enum?.map((one) => ({ value: String(one), text: String(one) }));
  if (choices) {
    const [first] = choices;
    const empty = needed ? [] : [{ value: "", text: "as in the spec" }];
    return select([...empty, ...choices], needed ? (first?.value ?? "") : "", () => {});
  }
  const example = schema.example === undefined ? null : `for instance ${show(schema.example)}`;
  if (schema.type === "number" || schema.type === "integer")
    return h("input", {
      type: "number",
      step: schema.type === "integer" ? 1 : "any",
      min: schema.minimum,
      max: schema.maximum,
      placeholder: example,
    });
  return h("input", { type: "text", placeholder: example, maxlength: schema.maxLength, autocomplete: "off" });
}

/** Whether an empty list is something else than nothing filled in. */
function mayBeNone(schema: Schema): boolean {
  return (schema.anyOf ?? [schema]).some((one) => one.type === "array" && !one.minItems);
}

function show(example: unknown): string {
  return Array.isArray(example) ? example.join(", ") : String(example);
}

/** What a text means by a schema; undefined where nothing was filled in. */
function parsed(schema: Schema, text: string): unknown {
  if (!text) return undefined;
  const kinds = schema.anyOf ?? [schema];
  const named = kinds.find((one) => one.enum?.map(String).includes(text));
  if (named) return named.enum?.find((one) => String(one) === text);
  const numeric = kinds.some((one) => one.type === "number" || one.type === "integer");
  if (numeric && Number.isFinite(Number(text))) return Number(text);
  if (kinds.some((one) => one.type === "array"))
    return text
      .split(",")
      .map((one) => one.trim())
      .filter(Boolean);
  return text;
}
