import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isFull, seedOf } from '../support/property.ts'
import { type SoakReport, soak } from './soak.ts'
import { verdictOf } from './verdict.ts'
import { createLiveness, openDescriptors } from './vitals.ts'

describe('the soak', () => {
  test('in its short form breaks no promise and meets every kind of client', async (t) => {
    const report = await soak({ seconds: isFull ? 300 : 12, clients: isFull ? 200 : 20, seed: seedOf(t) })
    t.diagnostic(JSON.stringify(report))
    assert.deepEqual(verdictOf(report), [])
    for (const event of [
      'answered',
      'slots',
      'geyser slots',
      'stream frames',
      'restart by SIGKILL',
      'restart by SIGTERM',
    ])
      assert.ok((report.counts[event] ?? 0) > 0, `${event} never happened`)
  })

  test('says what is broken', () => {
    const good: SoakReport = {
      seed: 1,
      seconds: 1800,
      clients: 200,
      counts: {},
      objections: [],
      ledger: { reported: 1000, booked: 1000, awaitingResponse: 10, lostMax: 5 },
      memory: { endMiB: 200, slopeMiBPerMinute: 0.4 },
      descriptors: { before: 80, after: 85 },
    }
    assert.deepEqual(verdictOf(good), [])
    assert.deepEqual(verdictOf({ ...good, objections: ['slot 4 came after 5'] }), ['slot 4 came after 5'])
    assert.match(String(verdictOf({ ...good, ledger: { ...good.ledger, booked: 1011 } })), /1011 units are booked/)
    assert.match(
      String(verdictOf({ ...good, ledger: { ...good.ledger, booked: 994 } })),
      /994 units are booked of 1000/,
    )
    assert.match(String(verdictOf({ ...good, memory: { endMiB: 200, slopeMiBPerMinute: 1.2 } })), /1\.20 MiB a minute/)
    assert.match(String(verdictOf({ ...good, descriptors: { before: 80, after: 121 } })), /121 descriptors/)
  })

  test('reads memory and descriptors of a process', () => {
    const liveness = createLiveness(process.pid)
    for (const atMs of [0, 1000, 2000]) liveness.sample(atMs)
    assert.ok(liveness.lastMiB > 20 && liveness.lastMiB < 4000)
    assert.ok(Math.abs(liveness.slopeMiBPerMinute(0)) < 100_000)
    assert.equal(liveness.slopeMiBPerMinute(2000), 0)
    assert.ok(openDescriptors(process.pid) > 3)
  })
})
