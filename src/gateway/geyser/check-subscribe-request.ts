import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { methodCost } from '../../access/plan.ts'
import { ERRORS } from '../../contract/errors.ts'
import type { Limits } from '../../contract/limits.ts'
import { COMMA, OPEN_BRACE, OPEN_BRACKET } from '../../core/json-bytes.ts'
import { tooLarge } from '../../platform/grpc/frame-reader.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import { SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { encodeMessage, readMessageJson } from '../../solana/geyser/protobuf.ts'
import { checkAddresses } from './addresses.ts'
import { requestBytesMax } from './methods.ts'
import { isSelectionLimited, type PolicyVerdict, policyOf, requestFieldsMax } from './policy.ts'

/** Bytes of the JSON text, also where the plan allows larger bodies or more accounts. */
const CHECK_BYTES_MAX = 1024 * 1024
/** Objects in the text: a few for each filter that a request may have. */
const OBJECTS_MAX = 8192
/** Lists in the text: a request needs a few for each filter, and one within the other are expensive to parse. */
const LISTS_MAX = 64 * 1024
/** Characters shown of a decoder's message, which quotes the client's text. */
const REASON_SHOWN_MAX = 300

type Refused = {
  readonly ok: false
  readonly rule: string
  readonly filter: { readonly kind: string; readonly name: string } | undefined
  readonly message: string
}
type Verdict = (Extract<PolicyVerdict, { ok: true }> & { readonly note?: string }) | Refused

type CheckResponse = {
  readonly status: number
  readonly body: object
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/**
 * Checks a SubscribeRequest, in protobuf's JSON form, as the gRPC server would, without opening a stream: the protocol itself can refuse a
 * request only by ending the stream. Nothing is forwarded and nothing is charged.
 */
export async function checkSubscribeRequest(
  access: Pick<Access, 'permits'>,
  { limits, subscription, awaitsNode }: Caller,
  body: Buffer,
  requestId: string,
): Promise<CheckResponse> {
  const verdict = awaitsNode
    ? refusal('not-assigned', ERRORS['not-assigned'].sentence)
    : isTooComplex(body, limits)
      ? refusal('grpcRequestFields', TOO_COMPLEX)
      : await check(body, limits)
  if ('malformed' in verdict) {
    const message = `not a SubscribeRequest in JSON: ${verdict.malformed}`
    return { status: 400, body: { error: 'invalid-request', message, request_id: requestId } }
  }
  const { grpcAccountsPerStream, grpcKinds, grpcBlockedOwners, grpcResume, grpcStreams } = limits
  return {
    status: 200,
    body: {
      allowed: verdict.ok,
      rule: verdict.ok ? null : verdict.rule,
      filter: verdict.ok ? null : (verdict.filter ?? null),
      message: verdict.ok ? (verdict.note ?? null) : verdict.message,
      counts: verdict.ok ? { accounts: verdict.accounts, filters: verdict.filters } : null,
      cost: methodCost(limits, 'Subscribe'),
      limits: { grpcAccountsPerStream, grpcKinds, grpcBlockedOwners, grpcResume, grpcStreams },
      open: { grpcStreams: access.permits.taken(subscription.id).grpcStreams },
    },
  }
}

/** Bytes of the JSON text that are read: as many as a stream accepts in one message, so that what the plan allows can be checked. */
export function checkBytesMax(limits: Limits): number {
  return Math.min(CHECK_BYTES_MAX, Math.max(limits.requestBytes, requestBytesMax('Subscribe', limits)))
}

/** In steps, and yields to the event loop between them. */
async function check(body: Buffer, limits: Limits): Promise<Verdict | { readonly malformed: string }> {
  const slices = createTimeSlices()
  const read = readMessageJson(SubscribeRequestSchema, body.toString('utf8'))
  const message = read.ok ? read.message : read.withoutUnknown
  const reason = read.ok ? '' : read.message.slice(0, REASON_SHOWN_MAX)
  if (message === undefined) return { malformed: reason }
  if (!read.ok && isSelectionLimited(limits))
    return refusal('knownFields', `request refused: ${reason}; rule knownFields, leave it out`)
  await slices.yield()
  const request = encodeMessage(SubscribeRequestSchema, message)
  const bytesMax = requestBytesMax('Subscribe', limits)
  if (request.length > bytesMax) {
    return refusal('grpcRequestBytes', tooLarge(`a message of ${request.length} bytes`, bytesMax).message as string)
  }
  await slices.yield()
  const policy = policyOf('Subscribe')
  const allowed = policy(request, limits)
  await slices.yield()
  const verdict = allowed.ok ? (checkAddresses('Subscribe', request) ?? allowed) : allowed
  return read.ok || !verdict.ok
    ? verdict
    : { ...verdict, note: `${reason}; a stream passes unknown fields on to the node` }
}

function refusal(rule: string, message: string): Refused {
  return { ok: false, rule, filter: undefined, message }
}

const TOO_COMPLEX = 'request refused: the text has more values than grpcRequestFields allows fields'

/** Whether the text has more values than a request may have fields, counted without parsing; a comma within a string counts too. */
function isTooComplex(body: Buffer, limits: Limits): boolean {
  const fieldsMax = requestFieldsMax(limits)
  let commas = 0
  let objects = 0
  let lists = 0
  for (const byte of body) {
    if (byte === COMMA) commas += 1
    else if (byte === OPEN_BRACE) objects += 1
    else if (byte === OPEN_BRACKET) lists += 1
  }
  return commas > fieldsMax || objects > OBJECTS_MAX || lists > LISTS_MAX
}
