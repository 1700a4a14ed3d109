/** Fast tests whether a value fits a schema. Only a value that does not fit needs a full check. */
import * as v from "valibot";

type Guard = (value: unknown) => boolean;

/**
 * The guard of a schema. For types that are not listed here, the guard calls valibot.
 * @param isExact Whether fields that a schema does not name are refused in all objects. Default: only
 * in strict ones.
 */
export function guardOf(schema: v.GenericSchema, isExact = false): Guard {
  // Only its `type` says which class a schema has.
  switch (schema.type) {
    case "boolean":
      return (value) => typeof value === "boolean";
    case "custom":
      return (schema as v.CustomSchema<unknown, undefined>).check;
    case "instance": {
      const { class: of } = schema as v.InstanceSchema<v.Class, undefined>;
      return (value) => value instanceof of;
    }
    case "literal":
      return (value) => value === (schema as v.LiteralSchema<v.Literal, undefined>).literal;
    case "variant": {
      const kinds = (schema as v.VariantSchema<"kind", v.VariantOptions<"kind">, undefined>).options
        .map((option) => guardOf(option, isExact));
      return (value) => kinds.some((fits) => fits(value));
    }
    case "array":
      return guardOfList(schema as List, isExact);
    case "nullable": {
      const { wrapped } = schema as v.NullableSchema<v.GenericSchema, undefined>;
      const fits = guardOf(wrapped, isExact);
      return (value) => value === null || fits(value);
    }
    case "object":
      return guardOfFields((schema as v.ObjectSchema<v.ObjectEntries, undefined>).entries, isExact);
    case "strict_object":
      return guardOfFields(
        (schema as v.StrictObjectSchema<v.ObjectEntries, undefined>).entries,
        true,
      );
    default:
      return (value) => v.is(schema, value);
  }
}

/** A list, optionally with a bound on its length. */
type List = v.ArraySchema<v.GenericSchema, undefined> & {
  readonly pipe?: readonly [unknown, v.MaxLengthAction<unknown[], number, string>];
};

function guardOfList({ item, pipe }: List, isExact: boolean): Guard {
  const fits = guardOf(item, isExact);
  const lengthMax = pipe?.[1].requirement ?? Infinity;
  return (value) => {
    if (!Array.isArray(value) || value.length > lengthMax) return false;
    for (let i = 0; i < value.length; i++) if (!fits(value[i])) return false;
    return true;
  };
}

function guardOfFields(entries: v.ObjectEntries, isExact: boolean): Guard {
  const fields = Object.entries(entries).map(([key, schema]) => {
    const isOptional = schema.type === "exact_optional";
    const inner = isOptional
      ? (schema as v.ExactOptionalSchema<v.GenericSchema, undefined>).wrapped
      : schema as v.GenericSchema;
    return { key, isOptional, fits: guardOf(inner, isExact) };
  });
  return (value) => {
    if (typeof value !== "object" || value === null) return false;
    let present = 0;
    for (let i = 0; i < fields.length; i++) {
      const { key, isOptional, fits } = fields[i]!;
      const item = (value as Readonly<Record<string, unknown>>)[key];
      // An optional field may be absent, but not present and undefined.
      if (item === undefined ? !isOptional || key in value : !fits(item)) return false;
      if (item !== undefined) present++;
    }
    return !isExact || countOfFields(value) === present;
  };
}

function countOfFields(value: object): number {
  let count = 0;
  for (const _ in value) count++;
  return count;
}
