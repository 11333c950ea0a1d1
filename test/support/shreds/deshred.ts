import assert from 'node:assert/strict'
import { CREDENTIAL_SOURCES, collectToken } from '../../../src/access/credentials.ts'
import { SubscribeDeshredRequestSchema, SubscribeUpdateDeshredSchema } from '../../../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../../src/solana/geyser/protobuf.ts'
import type { Gateway } from '../gateway/start.ts'

export type Request = Parameters<typeof encodeMessage<typeof SubscribeDeshredRequestSchema>>[1]

/** For tests: a request of SubscribeDeshred. */
export function request(init: Request): Buffer {
  return Buffer.from(encodeMessage(SubscribeDeshredRequestSchema, init))
}

/** For tests: a message of SubscribeDeshred, decoded. */
export function updateOf(message: Buffer) {
  const update = decodeMessage(SubscribeUpdateDeshredSchema, Uint8Array.from(message))
  assert.ok(update !== undefined, 'a message is a SubscribeUpdateDeshred')
  return update
}

/** For tests: the units that the subscription of a token has used this month. */
export function unitsUsed({ access }: Gateway, token: string): number {
  const caller = access.authenticate(collectToken(CREDENTIAL_SOURCES.grpc, ['x-token', token]), 'bundle', Date.now())
  assert.ok(caller.ok)
  return access.quota(caller).month.used
}
