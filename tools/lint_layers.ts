/**
 * The project's own lint rules, run by `deno lint`. They say which layer may import which, which files
 * may use a package, where ambient time, randomness, timers, files, network and the console are forbidden,
 * how files are named and begin, and that no work is left unfinished.
 *
 * The rules about imports keep the parts replaceable. The rule about ambient globals keeps every actor
 * deterministic in the simulator, where with one `Date.now()` the same seed would give different runs.
 */
import {
  AMBIENT_EXCEPTIONS,
  AMBIENT_GLOBALS,
  AMBIENT_MEMBERS,
  AMBIENT_MODULES,
  ARROWS,
  LAYERS,
  PACKAGES,
  PROTOCOL_FILE,
  PURE_LAYERS,
} from "./layers.ts";
import { dirname, relative, resolve } from "node:path/posix";
import { fileURLToPath } from "node:url";

/** The root of the repository. Layers are named relative to it. */
const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** A layer, or `undefined` for a file outside of all layers. */
type Layer = string | undefined;

const AMBIENT_REMEDY = "Take it from the world (actors, transport) or the host (data).";

/** Returns a path relative to the root; `undefined` outside of it. */
function pathOf(file: string): string | undefined {
  const path = relative(ROOT, file);
  return path.startsWith("..") ? undefined : path;
}

function layerOf(path: string): Layer {
  return LAYERS.find((layer) => path === layer || path.startsWith(`${layer}/`));
}

// ---------------------------------------------------------------------------------------------
// Imports

/**
 * Calls `visit` for every literal that names another module: in imports, re-exports, `new URL` and
 * `resolve`.
 */
function importVisitor(
  visit: (specifier: string, node: Deno.lint.Node) => void,
): Deno.lint.LintVisitor {
  const ofLiteral = (node: Deno.lint.Node | null | undefined) => {
    if (node?.type === "Literal" && typeof node.value === "string") visit(node.value, node);
  };
  return {
    ImportDeclaration: (node) => ofLiteral(node.source),
    ExportNamedDeclaration: (node) => ofLiteral(node.source),
    ExportAllDeclaration: (node) => ofLiteral(node.source),
    ImportExpression: (node) => ofLiteral(node.source),
    NewExpression(node) {
      const [target, base] = node.arguments;
      if (isNamed(node.callee, "URL") && isImportMeta(base, "url")) ofLiteral(target);
    },
    CallExpression(node) {
      if (isImportMeta(node.callee, "resolve")) ofLiteral(node.arguments[0]);
    },
  };
}

function isNamed(node: Deno.lint.Node | undefined, name: string): boolean {
  return node?.type === "Identifier" && node.name === name;
}

function isImportMeta(node: Deno.lint.Node | undefined, member: string): boolean {
  return node?.type === "MemberExpression" && node.object.type === "MetaProperty" &&
    isNamed(node.property, member);
}

const arrow: Deno.lint.Rule = {
  create(context) {
    const from = pathOf(context.filename);
    const layer = from === undefined ? undefined : layerOf(from);
    const allowed = layer === undefined ? undefined : ARROWS[layer];
    if (layer === undefined || allowed === undefined) return {};
    return importVisitor((specifier, node) => {
      if (!specifier.startsWith(".")) return;
      const to = pathOf(resolve(dirname(context.filename), specifier));
      const target = to === undefined ? undefined : layerOf(to);
      if (to === undefined || target === undefined || target === layer) return;
      if (allowed.includes(target)) return;
      if (isService(layer) && isService(target) && PROTOCOL_FILE.test(to)) return;
      context.report({
        node,
        message: `${layer} must not import ${to}.`,
        hint: allowed.length === 0
          ? `${layer} imports no other layer.`
          : `${layer} may import ${allowed.join(", ")}. Pass what it needs in, or move it there.`,
      });
    });
  },
};

function isService(layer: string): boolean {
  return layer.startsWith("actors/") && layer !== "actors/runtime";
}

const packages: Deno.lint.Rule = {
  create(context) {
    const path = pathOf(context.filename);
    if (path === undefined) return {};
    return importVisitor((specifier, node) => {
      if (/^(jsr:|https?:|@std\/)/.test(specifier)) {
        context.report({
          node,
          message: `'${specifier}' cannot be reached with only an npm mirror.`,
          hint: "Use a seam (tests/assert.ts, cli/lib/command_line.ts), npm, or a built-in.",
        });
      }
      for (const [name, allowed, remedy] of PACKAGES) {
        const bare = specifier.replace(/^npm:/, "");
        if (bare !== name && !bare.startsWith(`${name}/`) && !bare.startsWith(`${name}@`)) continue;
        if (allowed.test(path)) continue;
        context.report({
          node,
          message: `${path} must not import '${specifier}'.`,
          hint: `Instead, ${remedy}.`,
        });
      }
      if (PURE_LAYERS.test(path) && AMBIENT_MODULES.test(specifier)) {
        context.report({
          node,
          message: `'${specifier}' is ambient: it differs from run to run.`,
          hint: AMBIENT_REMEDY,
        });
      }
    });
  },
};

// ---------------------------------------------------------------------------------------------
// Ambient globals

const ambient: Deno.lint.Rule = {
  create(context) {
    const path = pathOf(context.filename);
    if (path === undefined || !PURE_LAYERS.test(path)) return {};
    const declared = new Set<string>();
    /** Uses by offset, because the linter visits both the key and the value of `{ setTimeout }`. */
    const uses = new Map<number, { node: Deno.lint.Node; name: string; text: string }>();
    const declare = (pattern: Pattern | null) => {
      if (pattern !== null) { for (const name of boundNames(pattern)) declared.add(name); }
    };
    const declareParams = (node: { params: Pattern[] }) => node.params.forEach(declare);
    return {
      VariableDeclarator: (node) => declare(node.id),
      ClassDeclaration: (node) => declare(node.id),
      FunctionDeclaration(node) {
        declare(node.id);
        declareParams(node);
      },
      FunctionExpression: declareParams,
      ArrowFunctionExpression: declareParams,
      CatchClause: (node) => declare(node.param),
      ImportSpecifier: (node) => declare(node.local),
      ImportDefaultSpecifier: (node) => declare(node.local),
      ImportNamespaceSpecifier: (node) => declare(node.local),
      Identifier(node) {
        if (!isReference(node)) return;
        const text = ambientUse(node, path);
        if (text !== undefined) uses.set(node.range[0], { node, name: node.name, text });
      },
      "Program:exit"() {
        // A name that the file binds itself is not a global, in any scope of the file.
        for (const { node, name, text } of uses.values()) {
          if (declared.has(name)) continue;
          context.report({
            node,
            message: `'${text}' is ambient: it differs from run to run.`,
            hint: AMBIENT_REMEDY,
          });
        }
      },
    };
  },
};

/** Returns the ambient use of a global, if the identifier is one. */
function ambientUse(node: Deno.lint.Identifier, path: string): string | undefined {
  const { name, parent } = node;
  if (isAmbient(name, path)) return name;
  const member = parent.type === "MemberExpression" && same(parent.object, node)
    ? memberName(parent)
    : undefined;
  if (name === "globalThis" || name === "self") {
    const reached = member !== undefined &&
      (isAmbient(member, path) || Object.hasOwn(AMBIENT_MEMBERS, member));
    return reached ? `${name}.${member}` : undefined;
  }
  const members = Object.hasOwn(AMBIENT_MEMBERS, name) ? AMBIENT_MEMBERS[name] : undefined;
  if (members === undefined) return undefined;
  if (member !== undefined) return members.includes(member) ? `${name}.${member}` : undefined;
  if (name === "Date" && readsClock(node)) return "new Date()";
  // `const { random } = Math`.
  return parent.type === "VariableDeclarator" ? name : undefined;
}

function isAmbient(name: string, path: string): boolean {
  return AMBIENT_GLOBALS.has(name) && AMBIENT_EXCEPTIONS[name]?.test(path) !== true;
}

/** Whether `Date` is called, or constructed without arguments. */
function readsClock(node: Deno.lint.Identifier): boolean {
  const { parent } = node;
  if (parent.type === "CallExpression") return same(parent.callee, node);
  return parent.type === "NewExpression" && same(parent.callee, node) &&
    parent.arguments.length === 0;
}

function memberName(node: Deno.lint.MemberExpression): string | undefined {
  const { property } = node;
  if (property.type === "Identifier" && !node.computed) return property.name;
  return property.type === "Literal" && typeof property.value === "string"
    ? property.value
    : undefined;
}

/** Types of nodes that are expressions, although their names begin with TS. */
const TS_EXPRESSIONS = /^TS(As|NonNull|Satisfies|Instantiation)Expression$/;

/** Whether an identifier is a value, and not the name of a member, a type or a label. */
function isReference(node: Deno.lint.Identifier): boolean {
  const parent: Deno.lint.Node = node.parent;
  switch (parent.type) {
    case "MemberExpression":
      return parent.computed || same(parent.object, node);
    case "Property":
      return parent.computed || parent.shorthand || same(parent.value, node);
    case "MethodDefinition":
      return parent.computed;
    case "PropertyDefinition":
      return parent.computed || (parent.value !== null && same(parent.value, node));
    case "LabeledStatement":
    case "BreakStatement":
    case "ContinueStatement":
    case "ImportSpecifier":
    case "ClassDeclaration":
    case "FunctionDeclaration":
      return false;
    default:
      return !parent.type.startsWith("TS") || TS_EXPRESSIONS.test(parent.type);
  }
}

function same(a: Deno.lint.Node, b: Deno.lint.Node): boolean {
  return a.range[0] === b.range[0] && a.range[1] === b.range[1];
}

/** A node that binds names. Deno's list of nodes lacks parameter properties. */
type Pattern = Deno.lint.Node | Deno.lint.TSParameterProperty;

/** Returns the names that a binding pattern introduces. */
function boundNames(pattern: Pattern): string[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern.name];
    case "AssignmentPattern":
      return boundNames(pattern.left);
    case "RestElement":
      return boundNames(pattern.argument);
    case "ArrayPattern":
      return pattern.elements.flatMap((element) => element === null ? [] : boundNames(element));
    case "ObjectPattern":
      return pattern.properties.flatMap((property) =>
        boundNames(property.type === "Property" ? property.value : property)
      );
    case "TSParameterProperty":
      return boundNames(pattern.parameter);
    default:
      return [];
  }
}

// ---------------------------------------------------------------------------------------------
// Files

const moduleDoc: Deno.lint.Rule = {
  create(context) {
    return {
      Program(node) {
        if (/^(#![^\n]*\n)?\s*\/\*\*/.test(context.sourceCode.text)) return;
        context.report({
          range: [node.range[0], node.range[0]],
          message: "A file begins with a sentence about its purpose.",
          hint: "Begin it with a /** comment */ of a sentence or two.",
        });
      },
    };
  },
};

const fileName: Deno.lint.Rule = {
  create(context) {
    return {
      Program(node) {
        const name = context.filename.replace(/^.*[\\/]/, "");
        if (/^[a-z0-9]+(_[a-z0-9]+)*(\.d)?\.[a-z]+$/.test(name)) return;
        context.report({
          range: [node.range[0], node.range[0]],
          message: `'${name}' is not a snake_case name.`,
          hint: "Name files like snake_case.ts.",
        });
      },
    };
  },
};

const UNFINISHED = /\b(TODO|FIXME|XXX|HACK)\b/;

const unfinished: Deno.lint.Rule = {
  create(context) {
    return {
      "Program:exit"() {
        for (const comment of context.sourceCode.getAllComments()) {
          const found = UNFINISHED.exec(comment.value);
          if (found === null) continue;
          context.report({
            range: comment.range,
            message: `A comment says ${found[1]}.`,
            hint: "Do it, or open an issue and say here what holds today.",
          });
        }
      },
    };
  },
};

export default {
  name: "layers",
  rules: {
    "arrow": arrow,
    "package": packages,
    "ambient": ambient,
    "module-doc": moduleDoc,
    "file-name": fileName,
    "unfinished": unfinished,
  },
} satisfies Deno.lint.Plugin;
