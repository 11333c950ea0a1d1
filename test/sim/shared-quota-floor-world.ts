import assert from 'node:assert/strict'
import type { CallTerms } from '../../src/access/terms.ts'
import { openSharedLedgers, own } from '../support/access/shared-ledgers.ts'
import { createRandom } from '../support/process/property.ts'
import type { SimWorld } from './run-seeds.ts'

/**
 * A customer that stays below the rate of every bucket is never refused, whatever its other calls make the processes book. One process gets its
 * transactions, the others its reads, and no process knows the buckets that only another one uses. The server is slow, but never down.
 */

const EVENTS = ['sends', 'reads', 'slowCalls', 'views', 'sweeps'] as const
const READS = ['getAccountInfo', 'getTransaction', 'getProgramAccounts'] as const
const SLOW_METHOD = 'getSlot'
const STEPS = 120
/** The part of each rate that the customer uses. */
const USED = 0.9

async function run(seed: number): Promise<Record<(typeof EVENTS)[number], number>> {
  const random = createRandom(seed)
  const seen = { sends: 0, reads: 0, slowCalls: 0, views: 0, sweeps: 0 }
  const processes = 2 + random(3)
  const slowest = [1, 5, 40][random(3)] as number
  const limits = own({
    unitsPerSecond: [100, 1000][random(2)] as number,
    sendsPerSecond: [1, 5, 30][random(3)] as number,
    unitsPerMonth: null,
    methods: { [SLOW_METHOD]: { perSecond: [0.1, 0.5, 2][random(3)] as number } },
  })
  const { clock, members, terms } = await openSharedLedgers(limits, { processes, latencyMs: () => random(slowest) })
  // What the customer allows itself: half a second of each rate at once, which is less than a chunk, so that no call waits for a booking.
  const rooms = terms.buckets.map(({ perSecond, largestDraw }) => {
    const max = Math.max(largestDraw, perSecond / 2)
    return { max, left: max, perMs: (USED * perSecond) / 1000 }
  })
  const hasRoom = ({ draws }: CallTerms) => draws.every(({ bucket, amount }) => (rooms[bucket]?.left ?? 0) >= amount)

  function call(at: number, method: string): boolean {
    const callTerms = terms.callOf(method)
    if (!hasRoom(callTerms)) return false
    for (const { bucket, amount } of callTerms.draws) {
      const room = rooms[bucket]
      if (room !== undefined) room.left -= amount
    }
    const outcome = members[at]?.charge(method)
    assert.ok(outcome?.ok === true, `${method} is refused below its rate: ${JSON.stringify(outcome)}`)
    return true
  }

  async function pass(ms: number): Promise<void> {
    await clock.advanceAsync(ms)
    for (const room of rooms) room.left = Math.min(room.max, room.left + ms * room.perMs)
  }

  for (let step = 0; step < STEPS; step++) {
    if (random(8) > 0) while (call(0, 'sendTransaction')) seen.sends += 1
    if (call(random(processes), SLOW_METHOD)) seen.slowCalls += 1
    for (let slices = 1 + random(8); slices > 0; slices--) {
      const reader = 1 + random(processes - 1)
      if (call(reader, READS[random(READS.length)] as string)) seen.reads += 1
      if (random(40) === 0) {
        seen.views += 1
        members[random(processes)]?.view()
      }
      await pass(20 + random(100))
    }
    if (random(20) === 0) await pass(random(20_000))
    if (random(10) === 0) {
      seen.sweeps += 1
      for (const { ledger } of members) ledger.sweep(clock.monotonicMs())
    }
  }
  return seen
}

export const sharedQuotaFloorWorld: SimWorld<(typeof EVENTS)[number]> = {
  name: 'shared-quota-floor',
  oneIn: 5,
  events: EVENTS,
  run,
}
