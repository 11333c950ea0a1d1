import type { ExitCode } from './exit-codes.ts'

/**
 * Every error Sluice itself makes, once: what each protocol answers, the sentence a person reads, and what to do.
 * Errors of an upstream pass through untouched and are not here; -32001 to -32021 are Solana's.
 */
export type ErrorEntry = {
  readonly http?: number
  readonly jsonRpc?: number
  /** gRPC status number. */
  readonly grpc?: number
  /** WebSocket close code once the connection stands. */
  readonly close?: number
  readonly exit?: ExitCode
  readonly sentence: string
  readonly fix: string
  readonly retryable: boolean
}

/** Answers a caller can get from a door of the house. */
const DOOR_ERRORS = {
  unauthorized: {
    http: 401,
    jsonRpc: -32401,
    grpc: 7,
    close: 4401,
    sentence: 'The request carries no valid token for this product.',
    fix: 'Send the token of your subscription as the header x-token or Authorization: Bearer; data.reason says what was wrong.',
    retryable: false,
  },
  'rate-limited': {
    http: 429,
    jsonRpc: -32429,
    grpc: 8,
    close: 4429,
    sentence: 'A limit of the subscription is reached; the call was not forwarded and not charged.',
    fix: 'Try again after the time given, or ask the operator for a larger plan; data.limit names the limit.',
    retryable: true,
  },
  'too-large': {
    http: 413,
    jsonRpc: -32413,
    grpc: 8,
    close: 1009,
    sentence: 'The request is larger than the limit.',
    fix: 'Send a smaller request; data names the limit and its size.',
    retryable: false,
  },
  'parse-error': {
    http: 200,
    jsonRpc: -32700,
    grpc: 3,
    close: 1007,
    sentence: 'Parse error',
    fix: 'Send well-formed JSON in UTF-8, not nested deeper than 32.',
    retryable: false,
  },
  'invalid-request': {
    http: 200,
    jsonRpc: -32600,
    grpc: 3,
    close: 1008,
    sentence: 'Invalid request',
    fix: 'Send an object with jsonrpc "2.0", a method name, and an id.',
    retryable: false,
  },
  'method-not-found': {
    http: 200,
    jsonRpc: -32601,
    grpc: 12,
    sentence: 'Method not found',
    fix: 'Check the method name against docs/api.md.',
    retryable: false,
  },
  'invalid-params': {
    http: 200,
    jsonRpc: -32602,
    grpc: 3,
    close: 1008,
    sentence: 'Invalid params',
    fix: 'Correct the parameter that data names.',
    retryable: false,
  },
  'not-found': {
    http: 404,
    grpc: 5,
    exit: 1,
    sentence: 'There is no such thing here.',
    fix: 'Check the name or id; list commands and docs/api.md show what exists.',
    retryable: false,
  },
  'method-not-allowed': {
    http: 405,
    sentence: 'This path does not take that HTTP method.',
    fix: 'Use a method that the Allow header names.',
    retryable: false,
  },
  'blocks-not-held': {
    http: 200,
    jsonRpc: -32000,
    sentence: 'The execution service does not hold these blocks.',
    fix: 'Ask for blocks inside the range that data names; older ones are with an archive node.',
    retryable: false,
  },
  'replay-too-old': {
    grpc: 11,
    sentence: 'The stream cannot start that far back.',
    fix: 'Start from a slot inside the replay window; SubscribeReplayInfo tells the first one.',
    retryable: false,
  },
  'tip-missing': {
    http: 200,
    jsonRpc: -32040,
    sentence: 'The transaction has no tip to one of the tip accounts.',
    fix: 'Add a System Program transfer of at least data.minTipLamports to one of data.tipAccounts.',
    retryable: false,
  },
  'tip-too-small': {
    http: 200,
    jsonRpc: -32041,
    sentence: 'The tip of the transaction is below the minimum.',
    fix: 'Raise one transfer to at least data.minTipLamports; several are not added up.',
    retryable: false,
  },
  'tip-through-lookup-table': {
    http: 200,
    jsonRpc: -32042,
    sentence: 'The tip account is named only through an address lookup table.',
    fix: 'Put the tip account among the static account keys.',
    retryable: false,
  },
  'blockhash-expired': {
    http: 200,
    jsonRpc: -32043,
    sentence: 'The blockhash of the transaction is too old to land.',
    fix: 'Sign again with a fresh blockhash.',
    retryable: false,
  },
  // The codes and meanings of the next three are Solana's own (rpc-client-api, custom_error).
  'signature-invalid': {
    http: 200,
    jsonRpc: -32003,
    sentence: 'Transaction signature verification failure',
    fix: 'Sign the bytes that are sent, with every key that the header asks for.',
    retryable: false,
  },
  'signature-count': {
    http: 200,
    jsonRpc: -32013,
    sentence: 'Transaction signature length mismatch',
    fix: 'Send one signature for each key that the header asks for, between 1 and 12.',
    retryable: false,
  },
  'no-path': {
    http: 200,
    jsonRpc: -32005,
    sentence: 'Node is unhealthy: no path to a leader is open, so the transaction was not sent.',
    fix: 'Try again in a few seconds; nothing was sent.',
    retryable: true,
  },
  'no-upstream': {
    http: 503,
    jsonRpc: -32503,
    grpc: 14,
    close: 1013,
    exit: 69,
    sentence: 'No healthy upstream node can take the call.',
    fix: 'Try again after the time given.',
    retryable: true,
  },
  'upstream-timeout': {
    http: 504,
    jsonRpc: -32504,
    grpc: 4,
    sentence: 'The upstream node did not answer in time.',
    fix: 'Try again; a write may have been carried out, so look for its effect first.',
    retryable: true,
  },
  draining: {
    http: 503,
    jsonRpc: -32503,
    grpc: 14,
    close: 1012,
    sentence: 'The server is going down for a restart.',
    fix: 'Connect again after the time given.',
    retryable: true,
  },
  internal: {
    http: 500,
    jsonRpc: -32603,
    grpc: 13,
    close: 1011,
    exit: 1,
    sentence: 'Something broke inside Sluice.',
    fix: 'Tell the operator the request_id; the log has the cause.',
    retryable: true,
  },
} as const satisfies Record<string, ErrorEntry>

/** Answers an operator can get from the command line or at start. */
const OPERATOR_ERRORS = {
  usage: {
    exit: 2,
    sentence: 'The command was not understood.',
    fix: 'Run the command with --help; it shows examples first.',
    retryable: false,
  },
  'already-exists': {
    exit: 1,
    sentence: 'Something with that name is there already.',
    fix: 'Choose another name, or show the existing one.',
    retryable: false,
  },
  'invalid-value': {
    exit: 2,
    sentence: 'A value is not acceptable.',
    fix: 'Correct the value that the message names.',
    retryable: false,
  },
  'wrong-state': {
    exit: 1,
    sentence: 'The subscription is not in a state that allows this.',
    fix: 'Show it to see its state; a cancelled subscription stays cancelled.',
    retryable: false,
  },
  'coming-soon': {
    exit: 1,
    sentence: 'ShredStream Decoded is coming soon and cannot be provisioned yet.',
    fix: 'Leave shreds-decoded out; shreds-raw is available today.',
    retryable: false,
  },
  'not-in-build': {
    exit: 1,
    sentence: 'This is not available in this build.',
    fix: 'Update Sluice; CHANGELOG.md says which release brings it.',
    retryable: false,
  },
  'needs-terminal': {
    exit: 2,
    sentence: 'A secret is shown once and standard output is not a terminal.',
    fix: 'Add --print-token to print it anyway, or --out FILE to write it to a new file of mode 0600.',
    retryable: false,
  },
  'needs-confirmation': {
    exit: 2,
    sentence: 'The command cuts live service and was not confirmed.',
    fix: 'Add --yes to confirm.',
    retryable: false,
  },
  'config-invalid': {
    exit: 78,
    sentence: 'The configuration has a mistake.',
    fix: 'Correct the line named, then run: sluice config check',
    retryable: false,
  },
  'secret-invalid': {
    exit: 78,
    sentence: 'A secret reference cannot be read.',
    fix: 'Secrets are given as file:PATH (mode 0600) or env:NAME.',
    retryable: false,
  },
  'plaintext-public': {
    exit: 78,
    sentence: 'A listener on a public address has no TLS.',
    fix: 'Set tls = { cert, key }, or plaintext = "behind-proxy" where a proxy in front ends TLS.',
    retryable: false,
  },
  'tls-invalid': {
    exit: 78,
    sentence: 'The certificate or its key cannot be used.',
    fix: 'Check that both files are readable PEM and belong together; sluice doctor says which is wrong.',
    retryable: false,
  },
  'address-in-use': {
    exit: 75,
    sentence: 'The port is taken by another process.',
    fix: 'Stop the other process or choose another port in the config.',
    retryable: true,
  },
  'address-unavailable': {
    exit: 78,
    sentence: 'The listen address does not belong to this machine.',
    fix: 'Use an address of this machine, 127.0.0.1 or 0.0.0.0.',
    retryable: false,
  },
  'file-mode': {
    exit: 78,
    sentence: 'A secret file can be read by others or belongs to somebody else.',
    fix: 'Run the chmod or chown that the message gives.',
    retryable: false,
  },
  'state-unwritable': {
    exit: 77,
    sentence: 'The state folder cannot be written.',
    fix: 'Give the folder to the user that runs Sluice, or choose another with --state DIR.',
    retryable: false,
  },
  'instance-running': {
    exit: 75,
    sentence: 'Another Sluice already runs on this state folder.',
    fix: 'Use the running one (sluice status), stop it, or give this one its own --state DIR.',
    retryable: true,
  },
  'bad-request': {
    exit: 1,
    sentence: 'The running Sluice did not understand the request of this command.',
    fix: 'Use the command line of the same version as the running one: sluice version',
    retryable: false,
  },
  busy: {
    exit: 75,
    sentence: 'The running Sluice has too many requests on this connection.',
    fix: 'Try again in a few seconds.',
    retryable: true,
  },
  'control-unavailable': {
    exit: 69,
    sentence: 'No Sluice is running on this state folder.',
    fix: 'Start one with: sluice serve',
    retryable: true,
  },
  'store-locked': {
    exit: 75,
    sentence: 'The access store is busy with another writer.',
    fix: 'Try again in a few seconds.',
    retryable: true,
  },
  'store-unavailable': {
    exit: 69,
    sentence: 'The access store cannot be reached.',
    fix: 'Check that the database of access.store runs and that its address and password are right.',
    retryable: true,
  },
  'store-corrupt': {
    exit: 78,
    sentence: 'The access store is damaged; it is never replaced by an empty one.',
    fix: 'Restore the newest backup over the file named, then run: sluice doctor',
    retryable: false,
  },
  'store-newer': {
    exit: 78,
    sentence: 'The access store was written by a newer Sluice.',
    fix: 'Run the newer version; migrations only go forward.',
    retryable: false,
  },
  'disk-full': {
    exit: 75,
    sentence: 'The disk of the state folder is full; the change was not made.',
    fix: 'Free some space and run the command again.',
    retryable: true,
  },
  'ring-unreadable': {
    exit: 1,
    sentence: 'The file is not an execution event ring that this build can read.',
    fix: 'Look at its header with: sluice ring inspect FILE. A ring of another schema needs a build that knows it.',
    retryable: false,
  },
  'ring-unwritable': {
    exit: 75,
    sentence: 'The event ring cannot be written.',
    fix: 'Check that the state folder is writable, has room, and that no other process writes its ring.',
    retryable: true,
  },
  'audit-broken': {
    exit: 78,
    sentence: 'The audit log does not match its chain.',
    fix: 'Keep the file as evidence and compare it with a backup from the line named on.',
    retryable: false,
  },
} as const satisfies Record<string, ErrorEntry>

export const ERRORS = { ...DOOR_ERRORS, ...OPERATOR_ERRORS }

export type ErrorCode = keyof typeof ERRORS

/** Why a token was refused. The status and headers are the same for all of them. */
export const TOKEN_REFUSALS = [
  'missing',
  'malformed',
  'unknown',
  'revoked',
  'expired',
  'suspended',
  'cancelled',
  'conflicting',
  'not-in-plan',
] as const

export type TokenRefusal = (typeof TOKEN_REFUSALS)[number]

/** An error as the table knows it, whatever the code; unknown codes are mistakes inside. */
export function errorEntry(code: string): ErrorEntry {
  return Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode] : ERRORS.internal
}

/** Where an error is explained. */
export function docsUrl(code: string): string {
  return `docs/errors.md#${Object.hasOwn(ERRORS, code) ? code : 'internal'}`
}
