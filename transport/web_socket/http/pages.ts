/** Answers requests for the pages of a server: those without an upgrade. */
import type { AccessRole, Identity } from "../../../actors/runtime/identity.ts";
import type { Admission, Authenticator } from "../tokens/authenticator.ts";
import { type Arrival, type HttpReply, refusal } from "./http_listener.ts";
import type { RequestHead } from "./http_request.ts";

/**
 * Limit of one identity's unfinished requests for pages; admins have none. Each request holds a
 * whole page, which may be large, until a slow reader has closed the connection.
 */
const PAGES_PER_IDENTITY_MAX = 8;

/** The pages of a server. */
export interface Pages {
  /** The path that accepts `?token=` besides the header: a browser sends no header. */
  readonly home: string;
  /** The path that needs no token: health probes have none. */
  readonly open: string;
  /** The roles that may see all other paths, besides admins. */
  readonly roles: readonly AccessRole[];
  /** The page of a path; undefined when there is none. The caller has checked access. */
  answer(path: string): Promise<Page> | undefined;
}

export interface Page {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Several requests may share it: it must not change. */
  readonly body: Uint8Array;
}

interface PageServerOptions {
  readonly pages: Pages | undefined;
  readonly authenticator: Authenticator;
  /** Whether a request names a host that this server may have. */
  readonly isOwnHost: (request: RequestHead) => boolean;
}

export class PageServer {
  readonly #options: PageServerOptions;
  /** Unfinished requests by the name of their identity. */
  readonly #open = new Map<string, number>();

  constructor(options: PageServerOptions) {
    this.#options = options;
  }

  async answer(request: RequestHead, arrival: Arrival): Promise<HttpReply> {
    const { pages, authenticator, isOwnHost } = this.#options;
    if (pages === undefined) {
      return refused(426, "This is a node of Leat; it speaks WebSocket.", { upgrade: "websocket" });
    }
    const { pathname, searchParams } = request.url;
    // A form's query has `+` for a space. No token has a space, and people copy tokens as they are.
    const shown = searchParams.get("token")?.replaceAll(" ", "+");
    const inUrl = pathname === pages.home ? shown : undefined;
    const admission = pathname === pages.open
      ? undefined
      : authenticator.admitToPage(request.headers, inUrl);
    if (admission instanceof Response) return { response: admission };
    if (!isOwnHost(request)) return refused(403, "No access for web pages.");
    if (admission !== undefined && !maySee(pages, admission)) {
      const { name, role } = admission.identity;
      const roles = ["admin", ...pages.roles].join(" or ");
      return refused(403, `"${name}" has the role ${role}; these pages are for ${roles}.`);
    }
    if (request.method !== "GET" && request.method !== "HEAD") {
      return refused(405, "Only GET and HEAD.", { allow: "GET, HEAD" });
    }
    if (admission === undefined) return await show(pages, pathname, {});
    const { name, role } = admission.identity;
    const open = this.#open.get(name) ?? 0;
    if (open >= PAGES_PER_IDENTITY_MAX && role !== "admin") {
      return refused(
        429,
        `"${name}" has ${open} unfinished requests for pages, as many as one token may: read the ` +
          "answers, and ask less often.",
        { "retry-after": "1" },
      );
    }
    // Not earlier: a refused connection remains a newcomer, which may be dropped for others.
    if (admission.isProved) arrival.settle();
    this.#open.set(name, open + 1);
    const ended = () => this.#ended(admission.identity);
    try {
      return { ...await show(pages, pathname, admission.headers), ended };
    } catch (error) {
      ended();
      throw error;
    }
  }

  #ended({ name }: Identity): void {
    const left = this.#open.get(name)! - 1;
    if (left === 0) this.#open.delete(name);
    else this.#open.set(name, left);
  }
}

async function show(pages: Pages, path: string, more: Admission["headers"]) {
  const page = await pages.answer(path);
  if (page === undefined) return refused(404, `There is no page ${path}.`, more);
  const { status, headers, body } = page;
  return { response: new Response(null, { status, headers: { ...headers, ...more } }), body };
}

function refused(...[status, text, headers]: Parameters<typeof refusal>) {
  return { response: refusal(status, text, headers) };
}

function maySee({ roles }: Pages, { identity: { role } }: Admission): boolean {
  return role === "admin" || roles.includes(role);
}
