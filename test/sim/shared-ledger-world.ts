import assert from 'node:assert/strict'
import { createRandom } from '../support/property.ts'
import { openSharedLedgers, own } from '../support/shared-ledgers.ts'
import type { SimWorld } from './run-seeds.ts'

/**
 * Several processes spend one budget, booking with a server whose answers take their time. In every other world the server goes away
 * and comes back. Whatever happens, no more is admitted than budget and stated slack, and what was spent is booked in the end.
 */

const EVENTS = ['admitted', 'refused', 'refunded', 'outages', 'idleSweeps'] as const
const METHODS = ['getSlot', 'getAccountInfo', 'getTransaction', 'getProgramAccounts', 'sendTransaction'] as const
const UNITS_PER_MONTH = 3000
const STEPS = 200

async function run(seed: number): Promise<Record<(typeof EVENTS)[number], number>> {
  const random = createRandom(seed)
  const seen = { admitted: 0, refused: 0, refunded: 0, outages: 0, idleSweeps: 0 }
  const processes = 2 + random(4)
  const slowest = [1, 5, 40, 400][random(4)] as number
  const hasOutages = seed % 2 === 0
  const unitsPerSecond = [1, 15, 200][random(3)] as number
  const limits = own({ unitsPerSecond, sendsPerSecond: 1, unitsPerMonth: UNITS_PER_MONTH })
  const { clock, members, terms, server } = await openSharedLedgers(limits, {
    processes,
    latencyMs: () => random(slowest),
  })
  const units = terms.buckets[terms.unitsBucket]
  assert.ok(units !== undefined)
  // One bucket as large as budget and slack together must never run dry: that is the formula, for every window at once.
  // An outage gives every process a share of the bucket once more, and the units the processes believed in before it.
  const slack = processes * units.chunk
  let room = units.capacity + slack
  let month = 0
  /** Units admitted while no process could know of the others. */
  let spentApart = 0

  for (let step = 0; step < STEPS; step++) {
    const member = members[random(processes)]
    const method = METHODS[random(METHODS.length)] as string
    for (let burst = random(40); burst > 0; burst--) {
      const outcome = member?.charge(method)
      if (outcome?.ok !== true) {
        seen.refused += 1
        break
      }
      room -= outcome.cost
      month += outcome.cost
      if (!server.state.isUp) spentApart += outcome.cost
      seen.admitted += 1
      if (random(20) > 0) continue
      member?.refund(method)
      seen.refunded += 1
      room += outcome.cost
      month -= outcome.cost
    }
    assert.ok(room >= -1e-3, `${-room} units above budget and slack`)
    const monthMax = UNITS_PER_MONTH + processes * terms.monthChunk + spentApart
    assert.ok(month <= monthMax, `${month} units in the month, ${monthMax} at most`)
    const pass = random(random(10) === 0 ? 3000 : 60)
    await clock.advanceAsync(pass)
    room = Math.min(units.capacity + slack, room + (pass * units.perSecond) / 1000)
    if (random(50) === 0) {
      seen.idleSweeps += 1
      for (const { ledger } of members) ledger.sweep(clock.monotonicMs())
    }
    if (hasOutages && random(60) === 0) {
      server.state.isUp = !server.state.isUp
      // Going and coming back each let what a process believes in differ from the books once.
      room += units.capacity + slack
      if (!server.state.isUp) seen.outages += 1
    }
  }
  server.state.isUp = true
  await clock.advanceAsync(10_000)
  assert.equal(server.books.get('test:quota:sub_a')?.used, month, 'all that was spent is booked')
  return seen
}

export const sharedLedgerWorld: SimWorld<(typeof EVENTS)[number]> = {
  name: 'shared-ledger',
  oneIn: 5,
  events: EVENTS,
  run,
}
