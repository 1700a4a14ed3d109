/** Options that the programs of a cluster share: how they listen, and their credentials. */
import { isWorkerName, WORKER_NAME_FORM } from "../../actors/runtime/checks.ts";
import { CERTIFICATE_BEGINNING, hasCertificate } from "../../core/certificates.ts";
import { LeatError } from "../../core/error.ts";
import { shownJson } from "../../core/shown_text.ts";
import { secretiveServices, serviceAddress } from "../../platform/nodes/service_address.ts";
import type { ServiceNodeConfig } from "../../platform/nodes/service_node.ts";
import { UsageError } from "../lib/args.ts";
import {
  choice,
  flag,
  Misread,
  type Option,
  type Options,
  text,
  type Values,
} from "../lib/options.ts";

/** The address of a dispatcher. */
export function nodeAddress(
  o: { readonly help: string; readonly required: true },
): Option<string> {
  const option: Option<string | undefined> = text({ placeholder: "ADDRESS", ...o });
  // Checked here, because a worker retries an address forever: its dispatcher may not have started yet.
  return { ...option, read: (texts) => serviceAddress(option.read(texts)!, "--dispatcher") };
}

/** The name of a worker, or the beginning of names. */
export function workerName(
  o: { readonly help: string; readonly placeholder?: string },
): Option<string | undefined> {
  const option = text(o);
  return {
    ...option,
    read(texts) {
      const given = option.read(texts);
      if (given === undefined || isWorkerName(given)) return given;
      throw new Misread(`has to be ${WORKER_NAME_FORM}, not ${shownJson(given)}`);
    },
  };
}

/** Options for a program's own credentials, and for the authorities that it trusts. */
export const CREDENTIAL_OPTIONS = {
  token: text({
    help: "This program's secret. The list of processes shows it: prefer --token-file.",
  }),
  tokenFile: text({
    help: "A file with this program's secret: the token of the cluster, or its own.",
    placeholder: "FILE",
  }),
  ca: text({
    help: "Certificates of authorities (PEM) to trust in addition to the usual ones, for wss://.",
    placeholder: "FILE",
  }),
} satisfies Options;

/** Options of a program that listens. */
export const SERVER_OPTIONS = {
  advertise: text({
    help:
      "The host, or host:port, at which others reach this program; by default the interface it " +
      "listens on. If that is all interfaces: an address of this machine other than loopback.",
    placeholder: "HOST[:PORT]",
  }),
  ...CREDENTIAL_OPTIONS,
  tokensFile: text({
    help: 'Further tokens: lines of "NAME ROLE TOKEN", with admin, worker, client or ' +
      "viewer for ROLE. The file is read again when it changes.",
    placeholder: "FILE",
  }),
  cert: text({ help: "This server's certificate chain (PEM); needs --key.", placeholder: "FILE" }),
  key: text({ help: "The private key of --cert (PEM).", placeholder: "FILE" }),
  insecure: flag("Allows listening beyond this machine without a token."),
  logLevel: choice(["debug", "info", "warn", "error", "off"], {
    help: "The lowest level of the log, which goes to standard error.",
    default: "info",
  }),
  stopAtEof: flag(
    "Stops when standard input ends: for programs that start this one through a pipe.",
  ),
} satisfies Options;

/** Reads the credentials from the values of {@linkcode CREDENTIAL_OPTIONS} and the files they name. */
export async function readCredentials(
  values: Values<typeof CREDENTIAL_OPTIONS>,
): Promise<Pick<ServiceNodeConfig, "token" | "ca">> {
  const { token, tokenFile } = values;
  if (token !== undefined && tokenFile !== undefined) {
    throw new UsageError("There are both --token and --token-file: give one");
  }
  const secret = tokenFile === undefined
    ? token
    : (await readOptionFile("--token-file", tokenFile)).trim();
  return {
    ...(secret === undefined ? {} : { token: secret }),
    ...(values.ca === undefined ? {} : { ca: await readAuthorities(values.ca) }),
  };
}

async function readAuthorities(path: string): Promise<string> {
  const ca = await readOptionFile("--ca", path);
  if (hasCertificate(ca)) return ca;
  throw new UsageError(
    `--ca ${path} has no certificate in PEM (${CERTIFICATE_BEGINNING}…): name the file with the ` +
      "certificate of the authority",
  );
}

/** Reads the credentials of other services from `ADDRESS=FILE`s. */
export async function readServiceTokens(
  values: readonly string[],
): Promise<Record<string, { readonly token: string }>> {
  const separators = values.map((value) => value.indexOf("="));
  const malformed = separators.findIndex((index) => index <= 0);
  if (malformed >= 0) {
    throw new UsageError(
      "--service-token-file is ADDRESS=FILE (ws://host:port=/etc/leat/token); " +
        `number ${
          malformed + 1
        } of ${values.length} is not (it may be a secret, so it is not shown)`,
    );
  }
  const texts = values.map((value, index) => value.slice(0, separators[index]));
  const addresses = await UsageError.where(() => secretiveServices(texts, "--service-token-file"));
  const services: Record<string, { readonly token: string }> = {};
  for (const [index, address] of addresses.entries()) {
    const path = values[index]!.slice(separators[index]! + 1);
    const token = await readOptionFile("--service-token-file", path);
    services[address] = { token: token.trim() };
  }
  return services;
}

/** Reads the configuration from the values of {@linkcode SERVER_OPTIONS} and the files they name. */
export async function readServerOptions(
  values: Values<typeof SERVER_OPTIONS>,
): Promise<ServiceNodeConfig> {
  const { advertise, cert, key, insecure, logLevel, tokensFile } = values;
  if ((cert === undefined) !== (key === undefined)) {
    const [given, missing] = key === undefined ? ["--cert", "--key"] : ["--key", "--cert"];
    throw new UsageError(`${given} needs ${missing}: TLS takes both`);
  }
  return {
    ...await readCredentials(values),
    insecure,
    logLevel,
    ...(advertise === undefined ? {} : { advertise }),
    ...(tokensFile === undefined ? {} : { tokens: { file: tokensFile } }),
    ...(cert === undefined ? {} : { cert: await readOptionFile("--cert", cert) }),
    ...(key === undefined ? {} : { key: await readOptionFile("--key", key) }),
  };
}

async function readOptionFile(option: string, path: string): Promise<string> {
  let text;
  try {
    text = await Deno.readTextFile(path);
  } catch (cause) {
    const { message } = LeatError.from(cause);
    throw new UsageError(`${option} ${path} cannot be read: ${message}`, { cause });
  }
  if (text.trim() === "") throw new UsageError(`${option} ${path} is empty: name another file`);
  return text;
}
