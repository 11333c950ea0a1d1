import assert from 'node:assert/strict'
import { permitChunk } from '../../src/access/quota/permit-sharing.ts'
import { createSharedPermits, type PermitMember } from '../support/access/shared-permits.ts'
import { createRandom } from '../support/process/property.ts'
import type { SimWorld } from './run-seeds.ts'

/**
 * Several processes open and close permits of the same subscriptions, which a server with slow replies counts. In two of three histories a process
 * is killed, is cut off, or the server is lost with or without its data. Without faults the processes never have more open than the limit and the
 * stated slack; with them none has more than the limit, and when the faults are over all know the same sum.
 */

const EVENTS = ['opened', 'refused', 'closed', 'changes', 'kills', 'cuts', 'outages', 'losses'] as const
const IDS = ['sub_a', 'sub_b']
const STEPS = 250

async function run(seed: number): Promise<Record<(typeof EVENTS)[number], number>> {
  const random = createRandom(seed)
  const seen = { opened: 0, refused: 0, closed: 0, changes: 0, kills: 0, cuts: 0, outages: 0, losses: 0 }
  const slowest = [1, 5, 40, 300][random(4)] as number
  const { clock, server, model, start, startAll } = createSharedPermits({ latencyMs: () => random(slowest) })
  const members = await startAll(2 + random(3))
  const hasFaults = seed % 3 !== 0
  const limits = new Map(IDS.map((id) => [id, [1, 4, 10, 300][random(4)] as number]))
  const highest = new Map(limits)
  const total = (id: string) => members.reduce((sum, member) => sum + member.own(id), 0)
  const cut = new Set<PermitMember>()

  function open(member: PermitMember, id: string): void {
    const limit = limits.get(id) as number
    const attempts = 1 + random(limit)
    const opened = member.open(limit, attempts, id)
    seen.opened += opened
    seen.refused += attempts - opened
    const max = highest.get(id) as number
    assert.ok(member.own(id) <= max, `${member.own(id)} of ${max} in one process`)
    if (hasFaults) return
    const most = Math.min(members.length * max, max + members.length * permitChunk(max, members.length))
    assert.ok(total(id) <= most, `${total(id)} open, ${most} at most with the limit ${max}`)
  }

  async function fail(): Promise<void> {
    const at = random(members.length)
    const member = members[at] as PermitMember
    switch (random(4)) {
      case 0:
        // Killed: what it has is closed, and another process starts in its place.
        seen.kills += 1
        member.cut(true)
        members[at] = await start()
        cut.delete(member)
        break
      case 1:
        seen.cuts += 1
        member.cut(!cut.has(member))
        if (!cut.delete(member)) cut.add(member)
        break
      case 2:
        server.isUp = !server.isUp
        if (!server.isUp) seen.outages += 1
        break
      default:
        model.clear()
        seen.losses += 1
    }
  }

  for (let step = 0; step < STEPS; step++) {
    const member = members[random(members.length)] as PermitMember
    const id = IDS[random(IDS.length)] as string
    if (random(5) < 3) open(member, id)
    else {
      const count = Math.min(member.held.length, random(random(3) === 0 ? 500 : 4))
      member.close(count, random(member.held.length - count + 1))
      seen.closed += count
    }
    if (random(40) === 0) {
      limits.set(id, [1, 4, 10, 300][random(4)] as number)
      highest.set(id, Math.max(highest.get(id) as number, limits.get(id) as number))
      seen.changes += 1
    }
    if (hasFaults && random(25) === 0) await fail()
    if (random(30) === 0) for (const { ledger } of members) ledger.sweep(clock.monotonicMs())
    await clock.advanceAsync(random(random(10) === 0 ? 9000 : slowest))
  }

  server.isUp = true
  for (const member of cut) member.cut(false)
  await clock.advanceAsync(20_000)
  for (const id of IDS) {
    for (const member of members) {
      const { wsConnections } = member.permits.taken(id)
      assert.equal(wsConnections, member.own(id) === 0 ? 0 : total(id), 'all processes know the same sum')
    }
    for (const member of members) member.close(member.held.length)
    await clock.advanceAsync(2000)
    await assertAllUsable(members, id, () => clock.advanceAsync(250 + 4 * slowest + 10))
  }
  return seen
}

/** One process after the other gets all permits of the limit. */
async function assertAllUsable(members: PermitMember[], id: string, exchange: () => Promise<void>): Promise<void> {
  const limit = 10
  for (const member of members) {
    for (let attempt = 0; attempt < limit; attempt++) {
      assert.equal(member.open(limit, 1, id), 1, `permit ${attempt + 1} of ${limit}`)
      await exchange()
    }
    assert.equal(member.open(limit, 1, id), 0)
    member.close(limit)
    await exchange()
  }
}

export const sharedPermitsWorld: SimWorld<(typeof EVENTS)[number]> = {
  name: 'shared-permits',
  oneIn: 5,
  events: EVENTS,
  run,
}
