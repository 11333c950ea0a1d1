import assert from 'node:assert/strict'
import { openSharedLedgers, own } from '../support/access/shared-ledgers.ts'
import { createRandom } from '../support/process/property.ts'
import type { SimWorld } from './run-seeds.ts'

/**
 * Several processes spend one budget, which a server with slow responses keeps. In every other history the server fails and recovers.
 * No more is ever admitted than the budget and the stated slack, and everything spent is recorded in the end.
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
  // One bucket of the size of budget plus slack must never be empty: this checks the formula for every window at once.
  // An outage adds another share of the bucket for every process, and the units the processes held before it.
  const slack = processes * units.chunk
  let room = units.capacity + slack
  let month = 0
  /** Units admitted while the processes could not reach the server. */
  let spentInOutage = 0

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
      if (!server.state.isUp) spentInOutage += outcome.cost
      seen.admitted += 1
      if (random(20) > 0) continue
      member?.refund(method)
      seen.refunded += 1
      room += outcome.cost
      month -= outcome.cost
    }
    assert.ok(room >= -1e-3, `${-room} units above budget and slack`)
    const monthMax = UNITS_PER_MONTH + processes * terms.monthChunk + spentInOutage
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
      // Failure and recovery each let the units of a process differ from the server's once.
      room += units.capacity + slack
      if (!server.state.isUp) seen.outages += 1
    }
  }
  server.state.isUp = true
  await clock.advanceAsync(10_000)
  assert.equal(server.books.get('test:quota:sub_a')?.used, month, 'all units spent are recorded')
  return seen
}

export const sharedLedgerWorld: SimWorld<(typeof EVENTS)[number]> = {
  name: 'shared-ledger',
  oneIn: 5,
  events: EVENTS,
  run,
}
