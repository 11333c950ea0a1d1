import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isFull, seedOf } from '../support/process/property.ts'
import { createProcessStats, openDescriptors } from './process-stats.ts'
import { type SoakReport, soak } from './soak.ts'
import { verdictOf } from './verdict.ts'

describe('the soak', () => {
  test('in its short form finds no violation and runs every kind of client', async (t) => {
    const report = await soak({ seconds: isFull ? 300 : 12, clients: isFull ? 200 : 20, seed: seedOf(t) })
    t.diagnostic(JSON.stringify(report))
    assert.deepEqual(verdictOf(report), [])
    for (const event of [
      'responses',
      'slots',
      'geyser slots',
      'stream frames',
      'restart by SIGKILL',
      'restart by SIGTERM',
    ])
      assert.ok((report.counts[event] ?? 0) > 0, `${event} never happened`)
  })

  test('reports violations', () => {
    const good: SoakReport = {
      seed: 1,
      seconds: 1800,
      clients: 200,
      counts: {},
      violations: [],
      ledger: { reported: 1000, booked: 1000, awaitingResponse: 10, lostMax: 5 },
      memory: { endMiB: 200, slopeMiBPerMinute: 0.4 },
      descriptors: { before: 80, after: 85 },
    }
    assert.deepEqual(verdictOf(good), [])
    assert.deepEqual(verdictOf({ ...good, violations: ['slot 4 after 5'] }), ['slot 4 after 5'])
    assert.match(String(verdictOf({ ...good, ledger: { ...good.ledger, booked: 1011 } })), /1011 units are recorded/)
    assert.match(
      String(verdictOf({ ...good, ledger: { ...good.ledger, booked: 994 } })),
      /994 units are recorded of 1000/,
    )
    assert.match(
      String(verdictOf({ ...good, memory: { endMiB: 200, slopeMiBPerMinute: 1.2 } })),
      /1\.20 MiB per minute/,
    )
    assert.match(String(verdictOf({ ...good, descriptors: { before: 80, after: 121 } })), /121 descriptors/)
  })

  test('reads memory and descriptors of a process', () => {
    const stats = createProcessStats(process.pid)
    for (const atMs of [0, 1000, 2000]) stats.sample(atMs)
    assert.ok(stats.lastMiB > 20 && stats.lastMiB < 4000)
    assert.ok(Math.abs(stats.slopeMiBPerMinute(0)) < 100_000)
    assert.equal(stats.slopeMiBPerMinute(2000), 0)
    assert.ok(openDescriptors(process.pid) > 3)
  })
})
