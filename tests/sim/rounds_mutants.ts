/**
 * Wrong actors of a coordinated read, by what they would say: each changes messages on their way.
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { AnswerOf, RequestOf } from "../../actors/runtime/protocol.ts";
import type { Tamper } from "../../sim/network.ts";

type Heartbeat = RequestOf<DispatcherProtocol, "clientHeartbeat">;
type News = AnswerOf<DispatcherProtocol, "clientHeartbeat">;

/** One for each run. */
export const MUTANTS: Readonly<Record<string, () => Tamper>> = {
  "a scheduler that waits for no consumer but who asks": () =>
    asks("confirm", (body: { readonly consumerIndex: number }) => ({
      ...body,
      absent: [0, 1, 2].filter((index) => index !== body.consumerIndex),
    })),

  "a consumer that says it holds rounds of lost tasks which it does not": () =>
    asks("clientHeartbeat", (body: Heartbeat) => ({
      ...body,
      ...(body.deliveredRound === undefined ? {} : { deliveredRound: body.deliveredRound + 3 }),
    })),

  "a consumer that does not say what it holds of lost tasks": () =>
    asks("clientHeartbeat", ({ heldRounds: _, ...body }: Heartbeat) => body),

  "a dispatcher that keeps no round of a lost task": () =>
    news(({ schedules = [], ...body }) => ({
      ...body,
      schedules: schedules.map(({ kept: _, ...schedule }) => schedule),
    })),

  "a dispatcher that commits what nobody has accepted": () =>
    news(({ proposed, schedules = [], ...body }) =>
      proposed === undefined || schedules.length === 0
        ? { ...body, schedules }
        : { ...body, schedules: [...schedules, proposed] }
    ),
};

/** Changes what is asked. */
function asks<B>(method: string, change: (body: B) => unknown): Tamper {
  return (envelope: Envelope) =>
    envelope.kind === "ask" && envelope.method === method
      ? { ...envelope, body: change(envelope.body as B) }
      : envelope;
}

/** Changes what consumers are told by the dispatcher. */
function news(change: (news: News) => unknown): Tamper {
  return (envelope) => {
    if (envelope.kind !== "reply") return envelope;
    const body = envelope.body as Partial<News> | null;
    return body?.tasks === undefined || body.schedules === undefined
      ? envelope
      : { ...envelope, body: change(body as News) };
  };
}
