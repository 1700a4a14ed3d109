/** Rule `projectionPushdown`: files are read without the columns that no operator above needs. */
import { nameOf, type Rule, type Site } from "../rule.ts";

export const projectionPushdown: Rule = {
  name: "projectionPushdown",
  describe(site) {
    const fields = site.node.fieldsOfInput(undefined);
    if (fields === undefined) return;
    const source = sourceBelow(site.inputs[0]!, fields);
    if (source === undefined) return;
    return `${nameOf(source)} reads only the columns ${fields.join(", ")}, because ` +
      `${nameOf(site)} takes no others.`;
  },
};

/** The source that reads only these fields; undefined if an operator between needs all. */
function sourceBelow(site: Site, fields: readonly string[]): Site | undefined {
  if (site.node.readsFields) return site;
  const [input] = site.inputs;
  return input !== undefined && site.node.fieldsOfInput(fields) === fields
    ? sourceBelow(input, fields)
    : undefined;
}
