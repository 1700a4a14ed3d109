/** Runs parts of an untrusted pipeline in a confined process. The trainer serves their inputs. */
import { LeatError } from "../../../core/error.ts";
import type { ForeignPart } from "../../../data/foreign/foreign_runners.ts";
import type { Host } from "../../../data/host.ts";
import { OpenedPart } from "../../../data/foreign/opened_part.ts";
import { askedElements, type AskOther } from "./asked_elements.ts";
import { explainDenial, IN_A_TRAINER } from "../denials.ts";
import type { EdgeMethods } from "../edge.ts";
import { ElementServer } from "./element_server.ts";

export interface PartRequest {
  /** The number with which the process requests inputs of the part. */
  readonly number: number;
  readonly part: ForeignPart;
}

export function partMethods(ask: AskOther, host: () => Host): EdgeMethods {
  const parts = new ElementServer((error) =>
    LeatError.fromWire(explainDenial(error.toWire(), IN_A_TRAINER))
  );
  return {
    ...parts.methods(),
    partOpen: (request) => {
      const { number, part } = request as PartRequest;
      const openInput = async (input: number, epoch: number) => {
        const opened = await ask("inputOpen", { part: number, input, epoch });
        return askedElements(ask, opened as number);
      };
      return parts.open(() => new OpenedPart(part, host(), openInput));
    },
  };
}
