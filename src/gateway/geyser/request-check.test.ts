import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import type { Limits } from '../../contract/limits.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import { GetSlotRequestSchema, SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../solana/geyser/protobuf.ts'
import { requestBytesMax } from './methods.ts'
import { createRequestCheck, type RefusedMessage, type RequestCheckDeps } from './request-check.ts'

const PING = encodeMessage(SubscribeRequestSchema, { ping: { id: 1 } })
const SLOTS = encodeMessage(SubscribeRequestSchema, { slots: { a: {}, b: {} } })
const NO_ACCOUNT = encodeMessage(SubscribeRequestSchema, { accounts: { a: { account: ['x'] } } })
const UNARY = encodeMessage(GetSlotRequestSchema, {})

/** The check of requests with everything that it does to its call. */
function openCheck(given: Partial<RequestCheckDeps> = {}) {
  const on = {
    limits: BUILT_IN_PLANS.professional as Limits,
    nowMs: 0,
    mayCharge: true,
    charges: 0,
    accepted: [] as Uint8Array[],
    refused: [] as RefusedMessage[],
    ended: [] as GrpcStatus[],
  }
  const check = createRequestCheck({
    method: 'Subscribe',
    isStream: true,
    isForwarded: true,
    limits: () => on.limits,
    monotonicMs: () => on.nowMs,
    charge() {
      on.charges += 1
      return on.mayCharge
    },
    onAccepted: (request) => on.accepted.push(request),
    onRefused: (refused) => on.refused.push(refused),
    end: (status) => on.ended.push(status),
    ...given,
  })
  return { check, on }
}

test('the first request is covered by the call, each further one is charged', () => {
  const { check, on } = openCheck()
  assert.equal(check.accepts(SLOTS), true)
  assert.deepEqual([on.charges, check.filters, on.accepted], [0, 2, [SLOTS]])
  assert.equal(check.accepts(SLOTS), true)
  assert.equal(on.charges, 1)
  on.mayCharge = false
  assert.equal(check.accepts(encodeMessage(SubscribeRequestSchema, { slots: { c: {} } })), false)
  assert.deepEqual([on.charges, check.filters, on.accepted.length], [2, 2, 2])
})

test('twenty pings in ten seconds are free, further ones are charged; none counts as the first request', () => {
  const { check, on } = openCheck()
  for (let ping = 0; ping < 20; ping++) assert.equal(check.accepts(PING), true)
  assert.equal(on.charges, 0)
  check.accepts(PING)
  assert.equal(on.charges, 1)
  on.nowMs = 9999
  check.accepts(PING)
  assert.equal(on.charges, 2)
  on.nowMs = 10_000
  check.accepts(PING)
  assert.equal(on.charges, 2)
  check.accepts(SLOTS)
  assert.deepEqual([on.charges, check.filters], [2, 2])
  for (let ping = 0; ping < 20; ping++) check.accepts(PING)
  assert.deepEqual([on.charges, check.filters], [3, 2], 'a charged ping changes no filter')
})

test('a refused request ends the call and is not charged; only for the first the charge of the call is due back', () => {
  const { check, on } = openCheck()
  assert.equal(check.accepts(NO_ACCOUNT), false)
  assert.deepEqual(on.refused, [{ rule: 'readable', code: 'invalid-params', isFirst: true, bytes: NO_ACCOUNT.length }])
  check.accepts(SLOTS)
  on.limits = { ...on.limits, grpcKinds: ['accounts'] }
  assert.equal(check.accepts(SLOTS), false)
  assert.deepEqual(on.refused.at(-1), {
    rule: 'grpcKinds',
    code: 'invalid-params',
    isFirst: false,
    bytes: SLOTS.length,
  })
  assert.deepEqual(
    on.ended.map(({ code }) => code),
    [GrpcCode.invalidArgument, GrpcCode.invalidArgument],
  )
  assert.deepEqual([on.charges, on.accepted], [0, [SLOTS]])
})

test('a further check refuses by its own rule', () => {
  const { check, on } = openCheck({ check: () => ({ rule: 'filtersPerStream', message: 'too many filters' }) })
  assert.equal(check.accepts(SLOTS), false)
  assert.equal(on.refused[0]?.rule, 'filtersPerStream')
  assert.equal(on.ended[0]?.message, 'too many filters')
})

test('an unknown field is passed on to a node, and refused by filter and number where the method is served here', () => {
  const inRequest = Buffer.from([0x48, 1])
  const inFilter = Buffer.from([0x0a, 8, 0x0a, 2, 0x6d, 0x65, 0x12, 2, 0x48, 1])
  for (const [request, where] of [
    [inRequest, 'field 9 of SubscribeDeshredRequest'],
    [inFilter, 'in the filter "me", field 9 of SubscribeRequestFilterDeshredTransactions'],
  ] as const) {
    assert.equal(openCheck({ method: 'SubscribeDeshred' }).check.accepts(request), true)
    const { check, on } = openCheck({ method: 'SubscribeDeshred', isForwarded: false })
    assert.equal(check.accepts(request), false)
    assert.deepEqual([on.refused[0]?.rule, on.ended[0]?.code], ['knownFields', GrpcCode.invalidArgument])
    const message = `request refused: ${where} is not known here, so it would be ignored; rule knownFields, leave it out`
    assert.equal(on.ended[0]?.message, message)
  }
})

test('a unary call has one request; a method that is not known here passes', () => {
  const unary = openCheck({ method: 'GetSlot', isStream: false })
  assert.equal(unary.check.accepts(UNARY), true)
  assert.equal(unary.check.accepts(UNARY), false)
  assert.deepEqual([unary.on.charges, unary.on.ended[0]?.code], [0, GrpcCode.internal])
  const unknown = openCheck({ method: 'SubscribeGossip' })
  assert.equal(unknown.check.accepts(Buffer.from('anything')), true)
  unknown.on.limits = { ...unknown.on.limits, grpcAccountsPerStream: 4 }
  assert.equal(unknown.check.accepts(Buffer.alloc(4 * 32)), true)
  assert.equal(unknown.check.accepts(Buffer.alloc(5 * 32)), false, 'it could name more accounts than the plan allows')
  assert.equal(unknown.on.refused[0]?.rule, 'grpcAccountsPerStream')
})

test('a message that the server refuses is reported by its limit and what was inflated of it, and the size follows the plan', () => {
  const { check, on } = openCheck()
  for (const grpcAccountsPerStream of [1, 1000, null]) {
    on.limits = { ...on.limits, grpcAccountsPerStream }
    assert.equal(check.messageLimits.bytesMax(), requestBytesMax('Subscribe', { grpcAccountsPerStream }))
  }
  const { onRefused } = check.messageLimits
  onRefused?.({ code: GrpcCode.invalidArgument, limit: 'grpcRequestBytes' })
  onRefused?.({ code: GrpcCode.invalidArgument, limit: 'grpcRequestBytes', bytes: 4000 })
  onRefused?.({ code: GrpcCode.invalidArgument })
  assert.deepEqual(on.refused, [
    { rule: 'grpcRequestBytes', code: 'too-large', isFirst: true, bytes: 0 },
    { rule: 'grpcRequestBytes', code: 'too-large', isFirst: true, bytes: 4000 },
    { rule: 'readable', code: 'invalid-params', isFirst: true, bytes: 0 },
  ])
})
