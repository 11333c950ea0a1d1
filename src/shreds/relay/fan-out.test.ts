import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UdpFault } from '../../platform/udp/port.ts'
import { createFanOut } from './fan-out.ts'
import type { Lease } from './protocol.ts'
import type { RelayedBatch } from './select/relayed-batch.ts'

const CAPS = {
  destinationPacketsPerSecond: 1_000_000,
  destinationBytesPerSecond: 1_000_000_000,
  totalPacketsPerSecond: 10_000_000,
  totalBytesPerSecond: 10_000_000_000,
}

/** A port that counts sent packets and whose destinations fail with the queued faults. */
function startFanOut(caps: Partial<typeof CAPS> = {}, window = { backSlots: 128, aheadSlots: 64 }) {
  const sent = new Map<number, number>()
  const faults = new Map<number, UdpFault[]>()
  const closed: number[] = []
  const fanOut = createFanOut(
    {
      stage() {},
      connect({ port }) {
        let last: UdpFault | undefined
        return {
          send(first, second) {
            last = faults.get(port)?.shift()
            if (last !== undefined && last !== 'refused') return 0
            sent.set(port, (sent.get(port) ?? 0) + first + second)
            return first + second
          },
          takeFault() {
            const taken = last
            last = undefined
            return taken
          },
          poll() {
            last ??= faults.get(port)?.shift()
          },
          close: () => void closed.push(port),
        }
      },
    },
    { caps: { ...CAPS, ...caps }, limitsMax: { shredsPerSlotMax: 32_768, window } },
    0,
  )
  return { fanOut, sent, faults, closed }
}

const lease = (port: number): Lease => ({ subscriptionId: `sub_${port}`, ip: '127.0.0.1', port })
const batch = (data: number, coding: number, slot = 1, duplicates = 0): RelayedBatch => ({
  order: new Uint16Array(32),
  data,
  coding,
  slots: Float64Array.of(slot),
  slotCount: 1,
  duplicates,
})

test('serves a destination again after one packet without error, even if the previous probe failed', () => {
  const { fanOut, sent, faults } = startFanOut()
  fanOut.setDestinations([lease(1)])
  faults.set(1, ['refused', 'refused', 'refused'])
  for (let at = 0; at < 3; at++) fanOut.send(batch(4, 0), at)
  // The first probe is refused; the error is reported when the socket is used again.
  fanOut.send(batch(4, 0), 1100)
  faults.set(1, ['refused'])
  fanOut.tick(1101)
  const before = sent.get(1) ?? 0
  faults.set(1, ['refused'])
  fanOut.send(batch(4, 0), 10_000)
  assert.equal(sent.get(1), before + 1)
  fanOut.send(batch(4, 0), 11_100)
  assert.equal(sent.get(1), before + 5)
})

test('sends each batch to every destination; a removed one gets no more packets and is reported once more', () => {
  const { fanOut, sent, closed } = startFanOut()
  fanOut.setDestinations([lease(1), lease(2)])
  fanOut.send(batch(3, 4, 10, 2), 0)
  fanOut.setDestinations([lease(2), lease(3)])
  fanOut.send(batch(1, 0, 11), 1)
  assert.deepEqual(
    [...sent].toSorted(([a], [b]) => a - b),
    [
      [1, 7],
      [2, 8],
      [3, 1],
    ],
  )
  assert.deepEqual(closed, [1])
  const reports = fanOut.takeReports()
  assert.deepEqual(
    reports.map((each) => [
      each.lease.port,
      each.packets,
      each.bytes,
      each.slots,
      each.firstSlot,
      each.lastSlot,
      each.duplicates,
    ]),
    [
      [1, 7, 3 * 1203 + 4 * 1228, 1, 10, 10, 2],
      [2, 8, 4 * 1203 + 4 * 1228, 2, 10, 11, 2],
      [3, 1, 1203, 1, 11, 11, 0],
    ],
  )
  assert.deepEqual(
    fanOut.takeReports().map((each) => [each.lease.port, each.packets]),
    [
      [2, 0],
      [3, 0],
    ],
  )
})

test('limits a destination to its packet rate and counts the rest', () => {
  const { fanOut } = startFanOut({ destinationPacketsPerSecond: 1000 })
  fanOut.setDestinations([lease(1)])
  for (let ms = 0; ms < 1000; ms++) fanOut.send(batch(5, 5), ms)
  const [report] = fanOut.takeReports()
  assert.ok(report !== undefined)
  assert.equal(report.packets + report.unsent.rate, 10_000)
  assert.ok(report.packets >= 1200 && report.packets <= 1260, `${report.packets} with 250 saved up`)
})

test('the total cap holds at ten times the load, is shared fairly, and dropped packets are counted', () => {
  const { fanOut } = startFanOut({ totalPacketsPerSecond: 10_000 })
  fanOut.setDestinations([1, 2, 3, 4, 5].map(lease))
  for (let ms = 0; ms < 2000; ms++) fanOut.send(batch(10, 10), ms)
  const reports = fanOut.takeReports()
  const sent = reports.reduce((sum, { packets }) => sum + packets, 0)
  const dropped = reports.reduce((sum, { unsent }) => sum + unsent['total-rate'], 0)
  assert.equal(sent + dropped, 200_000)
  assert.ok(sent <= 20_000 + 2500 && sent >= 19_000, `${sent}`)
  for (const { packets } of reports) assert.ok(packets > 3000, `one destination got ${packets}`)
})

test('limits bytes per second as well', () => {
  const { fanOut } = startFanOut({ destinationBytesPerSecond: 122_800 })
  fanOut.setDestinations([lease(1)])
  for (let ms = 0; ms < 1000; ms++) fanOut.send(batch(0, 1), ms)
  const [report] = fanOut.takeReports()
  assert.ok(report !== undefined && report.bytes <= 122_800 * 1.25 && report.packets >= 120)
})

test('refusals pause one destination, which then gets single packets as probes; the others continue', () => {
  const { fanOut, sent, faults } = startFanOut()
  faults.set(1, ['refused', 'refused', 'refused'])
  fanOut.setDestinations([lease(1), lease(2)])
  for (let ms = 0; ms < 3; ms++) fanOut.send(batch(1, 1), ms)
  assert.deepEqual([sent.get(1), sent.get(2)], [6, 6])
  for (let ms = 3; ms < 1000; ms++) fanOut.send(batch(1, 1), ms)
  assert.deepEqual([sent.get(1), sent.get(2)], [6, 2000])
  const [first] = fanOut.takeReports()
  assert.deepEqual(
    [first?.state, first?.refusals, first?.unsent.paused, first?.lastFault],
    ['paused', 3, 1994, 'refused'],
  )

  // The ICMP error of the probe arrives between two sends.
  fanOut.send(batch(1, 1), 1010)
  assert.equal(sent.get(1), 7)
  faults.set(1, ['unreachable'])
  fanOut.tick(1020)
  for (let ms = 1030; ms < 3000; ms += 10) fanOut.send(batch(1, 1), ms)
  assert.equal(sent.get(1), 7)
  fanOut.send(batch(1, 1), 3030)
  fanOut.tick(3040)
  assert.equal(sent.get(1), 8)
  fanOut.send(batch(1, 1), 4031)
  assert.equal(sent.get(1), 10)
})

test('counts a full send buffer as such and does not pause the destination', () => {
  const { fanOut, faults } = startFanOut()
  faults.set(
    1,
    Array.from({ length: 10 }, () => 'buffer-full' as const),
  )
  fanOut.setDestinations([lease(1)])
  for (let ms = 0; ms < 12; ms++) fanOut.send(batch(2, 0), ms)
  const [report] = fanOut.takeReports()
  assert.deepEqual([report?.unsent.buffer, report?.packets, report?.state], [20, 4, 'sending'])
})

test('counts each slot once per destination, though its packets come in many batches and slots interleave', () => {
  const { fanOut } = startFanOut()
  fanOut.setDestinations([lease(1)])
  for (let round = 0; round < 3; round++)
    for (let slot = 1000; slot < 1200; slot++) fanOut.send(batch(1, 0, slot), round)
  const [report] = fanOut.takeReports()
  assert.deepEqual([report?.slots, report?.firstSlot, report?.lastSlot], [200, 1000, 1199])
})

test('counts each slot once in the longest window, whatever the order of its packets', () => {
  for (const [backSlots, aheadSlots] of [
    [128, 64],
    [1024, 1024],
  ] as const) {
    const { fanOut } = startFanOut({}, { backSlots, aheadSlots })
    fanOut.setDestinations([lease(1)])
    for (let round = 0; round < 3; round++)
      for (let slot = 5000; slot <= 5000 + backSlots + aheadSlots; slot += 32) fanOut.send(batch(1, 0, slot), 0)
    assert.equal(fanOut.takeReports()[0]?.slots, (backSlots + aheadSlots) / 32 + 1)
  }
})
