/**
 * Analyses a function's source: the free names that it uses, and what binds it to its module (`this`,
 * `import.meta`, …). Without either it is self-contained, and can be rebuilt in another thread or host.
 */
import { type AnyNode, type Expression, parse, type Program } from "acorn";
import { analyze, type Reference } from "eslint-scope";
import { LeatError } from "../../core/error.ts";
import { ALLOWED_GLOBALS, AMBIENT_GLOBALS } from "./known_globals.ts";

/**
 * The longest source of one function, in UTF-16 code units. A longer one belongs in a module.
 */
export const FUNCTION_SOURCE_LENGTH_MAX = 1 << 20;

/**
 * Precedes a function in the script that is parsed and evaluated: serialised functions are strict.
 */
const SCRIPT_START = `"use strict";(`;

/** Number of cached analyses. Longer functions are not cached. */
const ANALYSES_MAX = 256;
const ANALYSIS_SOURCE_LENGTH_MAX = 4_096;

/** What {@linkcode analyzeFunction} finds. */
export interface FunctionAnalysis {
  /** The function as one expression: a method's source gets the `function` keyword it lacks. */
  readonly source: string;
  /** Names used but not bound inside, without JavaScript's own globals, in order of first use. */
  readonly freeNames: readonly string[];
  /**
   * Expressions that depend on where the function is, as users write them: `this`, `super`,
   * `new.target`, `import.meta`, `import()`.
   */
  readonly placeBound: readonly string[];
  /** Those of `freeNames` that the function assigns to. */
  readonly assignedNames: readonly string[];
  /**
   * Clocks and ambient random sources that it uses (`Date`, `Math.random`, …), in order of first
   * use.
   */
  readonly ambientNames: readonly string[];
}

const MATH_EXCEPT_RANDOM = new Set(
  Object.getOwnPropertyNames(Math).filter((name) => name !== "random"),
);

/**
 * Parses one function and finds its free names.
 *
 * @param source The result of `Function.prototype.toString`: an arrow, a `function`, a method or an
 * accessor, each also `async` or a generator. TypeScript's types are gone by then.
 * @throws {LeatError} `invalid_argument` when it is native or bound, a class, not a function, or
 * longer than {@linkcode FUNCTION_SOURCE_LENGTH_MAX}.
 *
 * @example
 * ```ts
 * import { analyzeFunction } from "./free_names.ts";
 * analyzeFunction("(x) => Math.abs(x - mean)").freeNames; // ["mean"]
 * ```
 */
export function analyzeFunction(source: string): FunctionAnalysis {
  const known = analyses.get(source);
  if (known !== undefined) return known;
  const analysis = analysisOf(source);
  if (source.length <= ANALYSIS_SOURCE_LENGTH_MAX) {
    if (analyses.size >= ANALYSES_MAX) analyses.clear();
    analyses.set(source, analysis);
  }
  return analysis;
}

/** Cached by source, because every task of a job receives the same functions. */
const analyses = new Map<string, FunctionAnalysis>();

function analysisOf(source: string): FunctionAnalysis {
  if (source.length > FUNCTION_SOURCE_LENGTH_MAX) {
    throw refuse(
      source,
      `its source is ${source.length} characters long, more than ${FUNCTION_SOURCE_LENGTH_MAX}`,
    );
  }
  if (!hasSource(source)) {
    throw refuse(
      source,
      "it is native or bound, so it has no source; write an arrow function around it",
    );
  }
  const { expression, program, node } = parseFunction(source);
  const finder = new BindingFinder();
  let through: Reference[];
  try {
    finder.visit(node, true);
    through = freeReferences(program);
  } catch (cause) {
    // The parser handles deeper expressions than the tree walk: a sum of thousands of terms, for
    // example.
    throw refuse(source, "it nests too deeply to be examined", cause);
  }
  const notGlobal = through.filter(({ identifier }) => !ALLOWED_GLOBALS.has(identifier.name));
  return {
    source: expression,
    freeNames: distinct(notGlobal.map(({ identifier }) => identifier.name)),
    assignedNames: distinct(
      notGlobal.filter((reference) => reference.isWrite())
        .map(({ identifier }) => identifier.name),
    ),
    placeBound: distinct(finder.found),
    ambientNames: distinct(
      through.flatMap((reference) => ambientUse(reference, finder.parentOfIdentifierAt)),
    ),
  };
}

/** Whether a function's text is its source; native and bound functions have none. */
export function hasSource(text: string): boolean {
  return !/\{\s*\[native code\]\s*\}\s*$/.test(text);
}

/**
 * The script that evaluates to a function. The same text is checked and evaluated, by the same
 * grammar. The bracket is on its own line because the source may end in a comment.
 */
export function functionScript(expression: string): string {
  return `${SCRIPT_START}${expression}\n)`;
}

/** Converts an offset in the parsed script to one in the function's own source. */
export function inSource(scriptOffset: number): number {
  return scriptOffset - SCRIPT_START.length;
}

/** A parsed function. Offsets of its nodes are those in `functionScript(expression)`. */
interface ParsedFunction {
  readonly expression: string;
  readonly program: Program;
  readonly node: AnyNode;
}

/** @throws {LeatError} `invalid_argument` like {@linkcode analyzeFunction}. */
export function parseFunction(source: string): ParsedFunction {
  const direct = tryParse(source);
  if (direct.program === undefined) {
    const expression = methodAsFunction(source);
    const method = expression === undefined ? undefined : tryParse(expression);
    const node = method?.program && onlyExpression(method.program);
    if (expression === undefined || method?.program === undefined || node === undefined) {
      const cause = method?.error ?? direct.error;
      throw refuse(source, `its source does not parse (${LeatError.from(cause).message})`, cause);
    }
    return { expression, program: method.program, node };
  }
  const node = onlyExpression(direct.program);
  if (node?.type === "ClassExpression") {
    throw refuse(source, "it is a class; write an arrow function that creates an instance of it");
  }
  if (node?.type !== "FunctionExpression" && node?.type !== "ArrowFunctionExpression") {
    throw refuse(source, "it is not one function expression");
  }
  return { expression: source, program: direct.program, node };
}

/**
 * The source of a method, getter or setter as a `function` expression; `undefined` for anything
 * else.
 *
 * It is parsed as the only member of a class body, which, unlike an object literal, allows private
 * names (`#f() {}`).
 */
function methodAsFunction(source: string): string | undefined {
  const member = `class extends Object {${source}\n}`;
  const program = tryParse(member).program;
  const node = program && onlyExpression(program);
  if (node?.type !== "ClassExpression" || node.body.body.length !== 1) return undefined;
  const [method] = node.body.body;
  if (method?.type !== "MethodDefinition") return undefined;
  const fn = method.value;
  const finder = new BindingFinder();
  finder.visit(fn, true);
  if (finder.found.includes("super")) {
    throw refuse(source, "it uses `super`, which ties it to its class");
  }
  const keyword = `${fn.async ? "async " : ""}function${fn.generator ? "*" : ""}`;
  return `${keyword} ${member.slice(inSource(fn.start), inSource(fn.end))}`;
}

function tryParse(expression: string): { program?: Program; error?: unknown } {
  const script = functionScript(expression);
  try {
    const program = parse(script, {
      ecmaVersion: "latest",
      sourceType: "script",
      // `import.meta` is refused later, with a remedy. A script that holds one does not evaluate
      // anyway.
      allowImportExportEverywhere: true,
      ranges: true,
      onComment: (isBlock, _text, start) => {
        if (isBlock || script.startsWith("//", start)) return;
        throw new SyntaxError(
          "`<!--` and `-->` begin comments in scripts, but are operators in modules; write `< !--` or `-- >`",
        );
      },
    });
    return { program };
  } catch (error) {
    return { error };
  }
}

/** The expression of `functionScript`; `undefined` if the source closed its brackets early. */
function onlyExpression(program: Program): Expression | undefined {
  const [directive, statement] = program.body;
  return program.body.length === 2 && directive?.type === "ExpressionStatement" &&
      directive.directive === "use strict" && statement?.type === "ExpressionStatement"
    ? statement.expression
    : undefined;
}

function freeReferences(program: Program): Reference[] {
  // acorn's tree is ESTree with `ranges`, which the analyser requires; the two packages differ in
  // types.
  const tree = program as unknown as Parameters<typeof analyze>[0];
  const scopes = analyze(tree, { ecmaVersion: 2025, sourceType: "script" });
  const through = scopes.globalScope?.through ?? [];
  return through.toSorted((a, b) => startOf(a) - startOf(b));
}

function startOf(reference: Reference): number {
  return (reference.identifier as unknown as AnyNode).start;
}

/** The clock or random source that a free reference uses, for messages: one name, or none. */
function ambientUse(
  reference: Reference,
  parentOfIdentifierAt: ReadonlyMap<number, AnyNode>,
): string[] {
  const { name } = reference.identifier;
  if (AMBIENT_GLOBALS.has(name)) return [name];
  if (name !== "Math") return [];
  const parent = parentOfIdentifierAt.get(startOf(reference));
  const member = parent?.type === "MemberExpression" && parent.object.start === startOf(reference)
    ? parent
    : undefined;
  const plain = member && !member.computed && member.property.type === "Identifier"
    ? member.property.name
    : undefined;
  if (plain !== undefined && MATH_EXCEPT_RANDOM.has(plain)) return [];
  // If `Math` is passed as a value or indexed by an expression, it may call `Math.random`.
  return [plain === "random" ? "Math.random" : "Math (other than as `Math.name`)"];
}

/** Finds what binds a function to its module or class, and records the parents of identifiers. */
class BindingFinder {
  readonly found: string[] = [];
  readonly parentOfIdentifierAt = new Map<number, AnyNode>();

  /** @param outer False inside a nested function that has a `this` of its own. */
  visit(node: AnyNode, outer: boolean): void {
    this.#note(node, outer);
    for (const [key, child] of children(node)) {
      if (child.type === "Identifier") this.parentOfIdentifierAt.set(child.start, node);
      const rebinds = child.type === "FunctionExpression" || child.type === "FunctionDeclaration" ||
        child.type === "StaticBlock" || (node.type === "PropertyDefinition" && key === "value");
      this.visit(child, outer && !rebinds);
    }
  }

  #note(node: AnyNode, outer: boolean): void {
    if (node.type === "ThisExpression" && outer) this.found.push("this");
    else if (node.type === "Super" && outer) this.found.push("super");
    else if (node.type === "ImportExpression") this.found.push("import()");
    else if (node.type === "MetaProperty") {
      if (node.meta.name === "import") this.found.push("import.meta");
      else if (outer) this.found.push("new.target");
    }
  }
}

function* children(node: AnyNode): Generator<[key: string, child: AnyNode]> {
  for (const [key, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) yield [key, child];
    }
  }
}

/** Whether a value is a node of a syntax tree. */
export function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && "type" in value &&
    typeof value.type === "string";
}

function distinct(names: readonly string[]): string[] {
  return [...new Set(names)];
}

const EXCERPT_LENGTH = 80;

/** The beginning of a function's source on one line, for messages. */
export function excerptOf(source: string): string {
  const line = source.slice(0, 4 * EXCERPT_LENGTH).replace(/\s+/g, " ");
  return line.length > EXCERPT_LENGTH ? `${line.slice(0, EXCERPT_LENGTH)}…` : line;
}

function refuse(source: string, why: string, cause?: unknown): LeatError {
  return new LeatError(
    "invalid_argument",
    `This function cannot be serialized for another thread or host: ${why}: ${excerptOf(source)}`,
    { cause },
  );
}
