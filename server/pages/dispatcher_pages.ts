/** A dispatcher's HTTP pages: its state as JSON, as metrics, and as a page that updates itself. */
import type { DispatcherDescription } from "../../actors/dispatcher/protocol_figures.ts";
import { LeatError } from "../../core/error.ts";
import { shownJson } from "../../core/shown_text.ts";
import type { Page, Pages } from "../../transport/web_socket.ts";
import { PAGE_COLUMNS } from "./columns.ts";
import { scrape } from "./dispatcher_metrics.ts";
import style from "./live_page.css" with { type: "text" };
import livePage from "./live_page.html" with { type: "text" };
import script from "./live_page.js" with { type: "text" };

/** The page may load no script, style or picture from elsewhere. */
const PAGE_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " +
  "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export interface DispatcherQuestions {
  /** The dispatcher's whole state. The first call starts measuring; later figures are at most 1 s old. */
  readonly describe: () => Promise<DispatcherDescription>;
  /** Resolves if the dispatcher answers. */
  readonly hello: () => Promise<unknown>;
}

/**
 * The pages: `/` for people, `/state`, `/metrics` and `/healthz` for programs. With tokens, every page
 * except `/healthz` needs the role admin, worker or viewer. `/healthz` reports only whether the
 * dispatcher answers.
 */
export function dispatcherPages({ describe, hello }: DispatcherQuestions): Pages {
  const describeOnce = shared(describe);
  const greet = shared(hello);
  const home = respond(PAGE, "text/html; charset=utf-8", PAGE_HEADERS);
  const pages: Readonly<Record<string, () => Promise<Page>>> = {
    "/": () => Promise.resolve(home),
    "/state": shared(async () => respond(shownJson(await describeOnce()), "application/json")),
    "/metrics": shared(async () => {
      const { text, contentType } = await scrape(await describeOnce());
      return respond(text, contentType);
    }),
    "/healthz": () =>
      greet().then(
        () => respond("ok\n", "text/plain"),
        () => respond("The dispatcher does not answer.\n", "text/plain", {}, 503),
      ),
  };
  return {
    home: "/",
    open: "/healthz",
    roles: ["worker", "viewer"],
    answer: (path) => Object.hasOwn(pages, path) ? pages[path]!().catch(unavailable) : undefined,
  };
}

const PAGE = livePage
  .replace("/* live_page.css */", () => style)
  .replace("// live_page.js", () => script)
  .replace('"PAGE_COLUMNS"', () => JSON.stringify(PAGE_COLUMNS));
const PAGE_HEADERS = { "content-security-policy": PAGE_POLICY, "referrer-policy": "no-referrer" };

/**
 * Lets concurrent requests share one answer: the dispatcher is asked once, and a page, which may be
 * large, is in memory once until it is sent.
 */
function shared<T>(make: () => Promise<T>): () => Promise<T> {
  let making: Promise<T> | undefined;
  return () => making ??= make().finally(() => making = undefined);
}

function respond(
  body: string,
  contentType: string,
  headers: Readonly<Record<string, string>> = {},
  status = 200,
): Page {
  return {
    status,
    headers: {
      "content-type": contentType,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      ...headers,
    },
    body: new TextEncoder().encode(body),
  };
}

/** The answer while the dispatcher is starting or stopping, or after it died. */
function unavailable(error: unknown): Page {
  return respond(`${LeatError.from(error).message}\n`, "text/plain", {}, 503);
}
