/** `select`: some fields of each element. */
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";
import { checkArray, invalidArgument, show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Token } from "../iterator.ts";
import { type Attributes, type Changeable, type DatasetNode, registerNode } from "../node.ts";
import { type ElementSpec, isRecordSpec } from "../elements/spec.ts";
import type { NoOp } from "../optimizer/no_op.ts";
import { sameBelow } from "../optimizer/rules/dead_transformation_elimination.ts";
import { ElementwiseIterator } from "./elementwise.ts";
import { OneToOneNode } from "./unary.ts";

export class SelectNode extends OneToOneNode {
  override readonly division = "element";
  readonly fields: readonly string[];

  constructor(input: DatasetNode, fields: unknown) {
    super("select", input);
    this.fields = checkFields(fields);
    const spec = input.elementSpec;
    const missing = isRecordSpec(spec) && this.fields.find((name) => !Object.hasOwn(spec, name));
    if (typeof missing !== "string") return;
    const known = Object.keys(spec!).join(", ");
    throw invalidArgument("select", "fields", `fields of the elements, ${known}`, missing);
  }

  override get attributes(): Attributes {
    return { fields: this.fields };
  }

  override get elementSpec(): ElementSpec {
    const spec = this.input.elementSpec;
    if (!isRecordSpec(spec)) return undefined;
    return Object.fromEntries(this.fields.map((name) => [name, spec[name]]));
  }

  override tokenAt(index: number): Token | undefined {
    return this.input.tokenAt(index);
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }

  override fieldsOfInput(): readonly string[] {
    return this.fields;
  }

  override get dead(): NoOp | undefined {
    return JSON.stringify(sameBelow<SelectNode>(this)?.fields) === JSON.stringify(this.fields)
      ? { fields: {} }
      : undefined;
  }

  override makeIterator(context: IteratorContext): SelectIterator {
    return new SelectIterator(context, this.fields);
  }
}

registerNode("select", { fromWire: (a, [input]) => new SelectNode(input!, a.fields) });

function checkFields(value: unknown): readonly string[] {
  const fields = checkArray("select", "fields", value);
  const areNames = fields.every((name) => typeof name === "string");
  if (fields.length === 0 || !areNames || new Set(fields).size < fields.length) {
    throw invalidArgument("select", "fields", "different names, at least one", value);
  }
  return [...fields] as string[];
}

class SelectIterator extends ElementwiseIterator {
  readonly #fields: readonly string[];

  constructor(context: IteratorContext, fields: readonly string[]) {
    super(context);
    this.#fields = fields;
  }

  protected override accept(element: unknown): unknown {
    return element === END ? END : this.stats.gave(this.#select(element));
  }

  override token(): Token | undefined {
    return this.input.token();
  }

  override again(token: Token): unknown {
    const element = this.input.again(token);
    return element instanceof Promise
      ? element.then((element) => this.#select(element))
      : this.#select(element);
  }

  #select(element: unknown): unknown {
    if (!isPlainObject(element)) throw this.#wrong(`${show(element)} has no fields`);
    const selected: Record<string, unknown> = {};
    for (const name of this.#fields) {
      if (!Object.hasOwn(element, name)) throw this.#wrong(`an element has no field "${name}"`);
      selected[name] = element[name];
    }
    return selected;
  }

  #wrong(why: string): LeatError {
    return new LeatError("invalid_argument", `${this.stats.operator}: ${why}`);
  }

  protected override ownState(): object {
    return {};
  }

  protected override restoreOwn(): void {}
}
