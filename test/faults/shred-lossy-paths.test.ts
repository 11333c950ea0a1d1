import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../src/core/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { seedOf } from '../support/process/property.ts'
import { blockPackets, oneLeader, openSink, sendAll, startRig, untilTaken } from '../support/shreds/rig.ts'
import { startUdpFaultProxy } from './udp-fault-proxy.ts'

const BLOCKS = 20

test('over two paths that lose, repeat, reorder and damage packets, every shred relayed is valid and relayed once', async (t) => {
  const seed = seedOf(t)
  using sink = await openSink()
  using source = await openSink()
  await using rig = await startRig({}, { leaders: oneLeader, setUp: ({ put }) => put('one', { port: sink.port }) })
  const target = { host: '127.0.0.1', port: rig.shreds.address.port }
  const faults = { lossRate: 0.1, duplicateRate: 0.2, reorderRate: 0.2, damageRate: 0.05 }
  await using east = await startUdpFaultProxy({ target, faults }, { random: createSeededRandom(seed) })
  await using west = await startUdpFaultProxy({ target, faults }, { random: createSeededRandom(seed + 1) })

  const sent = new Map<string, number>()
  for (let slot = 100; slot < 100 + BLOCKS; slot++) {
    const packets = blockPackets(slot)
    for (const packet of packets) sent.set(Buffer.from(packet).toString('latin1'), slot)
    for (const { port } of [east, west]) {
      await sendAll(source.socket, packets, port)
      // Waits for the relay, so that only the proxies lose packets.
      await untilTaken(target.port)
    }
  }
  await until('no packet is in the proxies', () => east.held + west.held === 0)
  const passed = () => east.counts.upstream.passed + west.counts.upstream.passed
  await until('the relay has seen all', () => rig.shreds.status().counts.received >= passed())
  const { counts } = rig.shreds.status()
  await until('the destination has all', () => sink.packets.length >= counts.relayed)

  const got = sink.packets.map((packet) => packet.toString('latin1'))
  assert.equal(new Set(got).size, got.length, 'a shred was relayed twice')
  // Only the retransmitter's signature, which the leader does not sign, may be damaged.
  const changed = got.filter((packet) => !sent.has(packet))
  for (const packet of changed) {
    const covered = packet.slice(0, -64)
    assert.ok(
      [...sent.keys()].some((known) => known.slice(0, -64) === covered),
      'a damaged shred was relayed',
    )
  }
  // About one in a hundred is lost on both paths, and some are damaged.
  assert.ok(got.length > 0.9 * BLOCKS * 64 && got.length <= BLOCKS * 64, `${got.length}`)
  assert.ok(counts.dropped.duplicate > 100 && counts.dropped.forged + counts.dropped.malformed > 10)
})
