import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Recovery } from './recovery.ts'

const DATAGRAM = 1200
const ROUND_TRIP_MS = 100

function open(windowBytesMin: number) {
  const recovery = new Recovery({ initialWindowBytes: 100 * DATAGRAM, windowBytesMin, datagramBytes: DATAGRAM })
  recovery.isConfirmed = true
  let next = 0
  let nowMs = 0
  const send = (count: number) => {
    for (let n = 0; n < count; n++)
      recovery.onSent('application', { packetNumber: next++, sentAtMs: nowMs, bytes: DATAGRAM, carried: [] })
  }
  /** Acknowledges the packets from a number to the last one sent. */
  const acknowledge = (from: number) =>
    assert.ok(
      recovery.onAck('application', [{ from, to: next - 1 }], { delayMs: 0, nowMs, nextNumber: next }),
      'the packets were sent',
    )
  const wait = (ms: number) => (nowMs += ms)
  return { recovery, send, acknowledge, wait, sent: () => next }
}

test('every loss halves the window, down to the smallest', () => {
  const { recovery, send, acknowledge, wait, sent } = open(20 * DATAGRAM)
  const windows: number[] = []
  for (let round = 0; round < 4; round++) {
    wait(1)
    send(10)
    wait(ROUND_TRIP_MS)
    // The first is lost.
    acknowledge(sent() - 9)
    windows.push(recovery.windowBytes / DATAGRAM)
  }
  assert.deepEqual(windows, [50, 25, 20, 20])
  assert.equal(recovery.lostPackets, 4)
})

test('the losses of one round trip count once', () => {
  const { recovery, send, acknowledge, wait } = open(2 * DATAGRAM)
  send(20)
  wait(ROUND_TRIP_MS)
  acknowledge(10)
  assert.deepEqual([recovery.windowBytes / DATAGRAM, recovery.lostPackets], [50, 10])
})

test('a packet is lost by time only after more than the last round trip, where that is longer than the usual one', () => {
  const { recovery, send, acknowledge, wait, sent } = open(2 * DATAGRAM)
  for (let round = 0; round < 20; round++) {
    send(1)
    wait(20)
    acknowledge(sent() - 1)
  }
  send(1)
  wait(1)
  send(1)
  wait(59)
  // The second one is acknowledged after 59 ms; the first is on its way as long.
  acknowledge(sent() - 1)
  assert.equal(recovery.lostPackets, 0)
  const due = recovery.deadlineMs(() => true, 20 * 20 + 60)
  assert.deepEqual([due.kind, due.atMs], ['loss', 20 * 20 + (9 / 8) * 59])
  recovery.detectLost('application', due.atMs)
  assert.equal(recovery.lostPackets, 1)
  // With the round trip the time becomes short again.
  wait(100)
  send(2)
  wait(20)
  acknowledge(sent() - 1)
  const next = recovery.deadlineMs(() => true, 0)
  assert.ok(next.atMs < 20 * 20 + 60 + 100 + (9 / 8) * 30, `${next.atMs}`)
})

test('persistent congestion makes the window two datagrams, whatever the smallest is', () => {
  const { recovery, send, acknowledge, wait, sent } = open(20 * DATAGRAM)
  send(1)
  wait(ROUND_TRIP_MS)
  acknowledge(0)
  // Nothing arrives for more than three probe timeouts.
  for (let round = 0; round < 4; round++) {
    wait(recovery.ptoMs)
    send(1)
  }
  wait(recovery.ptoMs)
  send(4)
  wait(ROUND_TRIP_MS)
  acknowledge(sent() - 1)
  assert.equal(recovery.windowBytes, 2 * DATAGRAM)
  // Then it grows with every packet that arrives, up to the smallest and slowly above it.
  for (let round = 0; round < 8; round++) {
    const count = Math.floor(recovery.windowBytes / DATAGRAM)
    send(count)
    wait(ROUND_TRIP_MS)
    acknowledge(sent() - count)
  }
  const grown = recovery.windowBytes / DATAGRAM
  assert.ok(grown > 20 && grown < 30, `${grown} datagrams`)
})
