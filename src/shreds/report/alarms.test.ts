import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { type DropReason, newRelayCounts, type RelayReport } from '../relay/protocol.ts'
import { type Alarm, createAlarms } from './alarms.ts'

function report(received: number, dropped: Partial<Record<DropReason, number>> = {}, overruns = 0): RelayReport {
  const counts = newRelayCounts()
  Object.assign(counts.dropped, dropped)
  return {
    kind: 'report',
    counts,
    perSource: [received],
    destinations: [],
    newestSlot: 1,
    version: 1,
    windowResets: 0,
    overruns,
    delays: { packets: [], sumMicros: 0 },
  }
}

function start() {
  const reported: string[] = []
  const alarms = createAlarms(
    { sourceLostMs: 10_000 },
    { log: silentLogger, onChange: (alarm, isRaised) => void reported.push(`${isRaised ? '+' : '-'}${alarm}`) },
  )
  return { alarms, reported }
}

test('source-lost without a first packet: counts from the start of a lease, and is cleared when none is left', () => {
  const { alarms, reported } = start()
  for (let ms = 0; ms <= 30_000; ms += 1000) alarms.tick(ms, false)
  for (let ms = 31_000; ms < 41_000; ms += 1000) alarms.tick(ms, true)
  assert.deepEqual(reported, [])
  alarms.tick(41_000, true)
  assert.deepEqual(reported, ['+source-lost'])
  alarms.tick(42_000, false)
  for (let ms = 43_000; ms < 53_000; ms += 1000) alarms.tick(ms, true)
  assert.deepEqual(reported, ['+source-lost', '-source-lost'])
})

test('without a lease source-lost is raised only after a first packet, and cleared with the next one', () => {
  const { alarms, reported } = start()
  for (let ms = 0; ms <= 60_000; ms += 1000) alarms.tick(ms)
  assert.deepEqual(reported, [])
  alarms.record(report(10), 60_000)
  for (let ms = 60_000; ms < 70_000; ms += 1000) alarms.tick(ms)
  assert.deepEqual(reported, [])
  alarms.tick(70_000)
  assert.deepEqual([reported, alarms.raised()], [['+source-lost'], ['source-lost']])
  alarms.record(report(1), 70_500)
  alarms.tick(71_000)
  assert.deepEqual(reported, ['+source-lost', '-source-lost'])
})

const FAILURES: readonly (readonly [
  Alarm,
  Partial<Record<DropReason, number>>,
  Partial<Record<DropReason, number>>,
])[] = [
  ['old-slots', { late: 5000 }, { late: 500 }],
  ['ahead-slots', { ahead: 5000 }, { ahead: 500 }],
  ['refused-source', { source: 1000 }, { source: 50 }],
  ['version-mismatch', { version: 1000 }, { version: 10 }],
  ['forged', { forged: 20 }, { forged: 5 }],
  ['forged', { 'too-many-forged': 5000 }, {}],
]

for (const [alarm, bad, good] of FAILURES) {
  test(`${alarm}: raised by ${JSON.stringify(bad)} a second, not by ${JSON.stringify(good)}, and cleared after ten seconds without it`, () => {
    const { alarms, reported } = start()
    alarms.record(report(8000, good), 500)
    alarms.tick(1000)
    assert.deepEqual(reported, [])
    alarms.record(report(8000, bad), 1500)
    alarms.tick(2000)
    assert.deepEqual(reported, [`+${alarm}`])
    for (let ms = 3000; ms < 12_000; ms += 1000) {
      alarms.record(report(8000), ms)
      alarms.tick(ms)
    }
    assert.deepEqual(reported, [`+${alarm}`])
    alarms.record(report(8000), 12_000)
    alarms.tick(12_000)
    assert.deepEqual(reported, [`+${alarm}`, `-${alarm}`])
  })
}

test('raises overrun once for each increase of packets dropped by the kernel', () => {
  const { alarms, reported } = start()
  alarms.record(report(10, {}, 7), 0)
  alarms.tick(1000)
  for (let ms = 2000; ms <= 11_000; ms += 1000) {
    alarms.record(report(10, {}, 7), ms)
    alarms.tick(ms)
  }
  assert.deepEqual(reported, ['+overrun', '-overrun'])
})

test('raises old-slots for packets that are relayed far behind the others', () => {
  const { alarms, reported } = start()
  const behind = report(8000)
  behind.counts.behind = 4000
  alarms.record(behind, 500)
  alarms.tick(1000)
  assert.deepEqual(reported, ['+old-slots'])
})
