import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import { createManualClock } from '../../core/clock.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import { createGeyserAdmission, UNARY_CALLS_MAX } from './admission.ts'

const CALLER = { subscription: { id: 'sub' }, limits: BUILT_IN_PLANS.professional } as unknown as Caller
const QUOTA = { limit: 100, remaining: 50, resetMs: 1000 }

/** The statuses of `count` calls, after the delay of a refusal; open calls have none. */
function statusesOf(method: string, { count = 1, isFlooded = false }): GrpcStatus[] {
  const clock = createManualClock()
  const access = { admit: () => ({ ok: true, cost: 1, ...QUOTA }), quota: () => QUOTA } as unknown as Access
  const admission = createGeyserAdmission(
    { refusalDelayMs: 1000 },
    {
      ...{ access, clock, upstreams: { usesShared: () => true } },
      meter: { request() {}, refused() {} },
      resetGuard: { isOverLimit: () => isFlooded },
    },
  )
  const statuses: GrpcStatus[] = []
  const end = (status: GrpcStatus) => void statuses.push(status)
  const call = { discardMessages() {}, onClose() {}, onShutdown() {}, end } as unknown as GrpcCall
  for (let at = 0; at < count; at++) admission.admit(call, CALLER, { interface: 'grpc', method })
  clock.advance(1000)
  return statuses
}

test('limits of calls that are the same for every plan are refused with limit, cost and time, and the quota', () => {
  const metadata = {
    'x-ratelimit-limit': '100',
    'x-ratelimit-remaining': '50',
    'x-ratelimit-reset': '1',
    'x-ratelimit-cost': '0',
  }
  const code = GrpcCode.resourceExhausted
  assert.deepEqual(statusesOf('Ping', { count: UNARY_CALLS_MAX + 1 }), [
    {
      ...{ code, metadata },
      message: 'limit reached: 200 open unary gRPC calls; limit: grpcUnaryCalls; cost: 1; try again in 1000 ms',
    },
  ])
  assert.deepEqual(statusesOf('Subscribe', { isFlooded: true }), [
    {
      ...{ code, metadata },
      message:
        'limit reached: 100 calls cancelled within 250 ms of being made, in 10 s; limit: cancelledCalls; cost: 1; try again in 10000 ms',
    },
  ])
})
