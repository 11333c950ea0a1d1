import type { Caller } from '../access/admit.ts'
import { methodCost } from '../access/plan.ts'
import type { Access } from '../access/service.ts'
import { SubscribeRequestSchema } from '../solana/gen/geyser_pb.ts'
import { encodeMessage, readMessageJson } from '../solana/protobuf.ts'
import type { PageAnswer } from './customer-pages.ts'
import { type Gate, gateOf } from './geyser-gate.ts'

/** Shown of what a decoder says about a text that somebody else wrote. */
const SAYS_SHOWN_MAX = 300

/**
 * What the gRPC door would say to this SubscribeRequest, given in protobuf's JSON form, without opening a stream: the protocol itself can refuse
 * a request only by ending the stream. Nothing is forwarded and nothing is charged.
 */
export function checkGeyser(
  access: Pick<Access, 'slots'>,
  { limits, subscription }: Caller,
  text: string,
  requestId: string,
): PageAnswer {
  const read = readMessageJson(SubscribeRequestSchema, text)
  if (!read.ok) {
    const message = `not a SubscribeRequest in JSON: ${read.says.slice(0, SAYS_SHOWN_MAX)}`
    return { status: 400, body: { error: 'invalid-request', message, request_id: requestId } }
  }
  const gate = gateOf('Subscribe') as Gate
  const verdict = gate(encodeMessage(SubscribeRequestSchema, read.message), limits)
  const { grpcAccountsPerStream, grpcKinds, grpcBlockedOwners, grpcResume, grpcStreams } = limits
  return {
    status: 200,
    body: {
      allowed: verdict.ok,
      rule: verdict.ok ? null : verdict.rule,
      filter: verdict.ok ? null : (verdict.filter ?? null),
      message: verdict.ok ? null : verdict.message,
      counts: verdict.ok ? { accounts: verdict.accounts, filters: verdict.filters } : null,
      cost: methodCost(limits, 'Subscribe'),
      limits: { grpcAccountsPerStream, grpcKinds, grpcBlockedOwners, grpcResume, grpcStreams },
      open: { grpcStreams: access.slots.taken(subscription.id).grpcStreams },
    },
  }
}
