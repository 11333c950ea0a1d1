import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { blockPackets, oneLeader, openSink, type Sink, sendAll, startRig } from '../../test/support/shreds/rig.ts'
import { challengeCodeOf, pendingId } from '../access/provisioning/destinations.ts'
import { createManualClock } from '../core/clock.ts'
import { systemClock } from '../platform/process/clock.ts'
import { secureRandom } from '../platform/process/random.ts'
import { until } from '../platform/process/test-wait.ts'
import { createLogger } from '../platform/telemetry/logger.ts'
import type { UdpEngine } from '../platform/udp/port.ts'
import { createSigningKey } from '../solana/crypto/ed25519.ts'
import { challengePacket } from './destinations/challenge.ts'
import { openReportStore } from './report/store.ts'

const hexes = (packets: readonly Uint8Array[]) => packets.map((packet) => Buffer.from(packet).toString('hex')).sort()
/** A changed destination takes effect within a second; tests allow more on a busy machine. */
const SOON_MS = 5000

for (const engine of ['sendmmsg', 'dgram'] satisfies UdpEngine[]) {
  describe(`over ${engine}`, () => {
    test('sends every shred once and byte for byte to each destination, though sources repeat them and append bytes', async () => {
      using one = await openSink()
      using two = await openSink()
      using three = await openSink()
      const counted = new Map<string, number>()
      await using rig = await startRig(
        { engine },
        {
          leaders: oneLeader,
          onBytes(subscriptionId, at, bytes) {
            assert.equal(at, 'shreds')
            counted.set(subscriptionId, (counted.get(subscriptionId) ?? 0) + bytes)
          },
          setUp({ put }) {
            put('one', { port: one.port })
            put('two', { port: two.port })
            put('three', { port: three.port, proof: 'proven' })
          },
        },
      )
      assert.equal(rig.shreds.status().engine, engine)
      const wanted = [...blockPackets(100, { sets: 3 }), ...blockPackets(101), ...blockPackets(102, { sets: 2 })]
      await rig.send(wanted)
      // A second source sends the same shreds as repair responses, with a nonce appended.
      await rig.send(wanted.map((packet) => Buffer.concat([packet, Buffer.of(1, 2, 3, 4)])))
      await rig.send(wanted.slice(0, 32))
      await until('all have it', () => [one, two, three].every(({ packets }) => packets.length >= wanted.length))
      await until('copies were counted', () => rig.shreds.status().counts.dropped.duplicate === wanted.length + 32)
      for (const sink of [one, two, three]) assert.deepEqual(hexes(sink.packets), hexes(wanted))

      await until('reports are in', () =>
        rig.shreds.status().destinations.every((each) => each.packets === wanted.length),
      )
      for (const [name, sink] of Object.entries({ one, two, three })) {
        const received = sink.packets.reduce((sum, packet) => sum + packet.length, 0)
        assert.equal(counted.get(name), received, 'usage has the bytes that were received')
      }
      const { counts, newestSlot, version } = rig.shreds.status()
      assert.deepEqual([counts.relayed, counts.unchecked, newestSlot, version], [wanted.length, 0, 102, 27_350])
      assert.equal(rig.registry.value('sluice_shreds_sent_total', { destination: '2' }), wanted.length)
      await rig.shreds.flush()
      await using reports = await openReportStore(rig.reportFile, {
        clock: systemClock,
        random: secureRandom,
        create: false,
      })
      const rows = await reports.list({ subscriptionId: 'two' })
      const sum = (field: 'packets' | 'slots' | 'duplicates') => rows.reduce((total, row) => total + row[field], 0)
      assert.deepEqual([sum('packets'), sum('slots'), sum('duplicates')], [wanted.length, 3, wanted.length + 32])
    })

    test('a new address takes over and the old one gets no more packets', async () => {
      using first = await openSink()
      using second = await openSink()
      using witness = await openSink()
      await using rig = await startRig(
        { engine },
        {
          setUp({ put }) {
            put('moving', { port: first.port })
            put('staying', { port: witness.port })
          },
        },
      )
      using traffic = startTraffic(rig.send)
      await until('the first address gets shreds', () => first.packets.length > 200)
      const askedMs = performance.now()
      rig.put('moving', { port: second.port, proof: 'proven' })
      rig.publish()
      await until('the second address gets shreds', () => second.packets.length > 0, SOON_MS)
      assert.ok((second.times[0] as number) - askedMs < SOON_MS)
      const newest = traffic.slot()
      await until('later shreds have come', () => lastSlot(witness) > newest + 3)
      assert.ok(lastSlot(first) <= slotOf(second.packets[0] as Buffer), 'the old address got shreds after the new one')
      await traffic.stop()
    })

    test('sends nothing to paused, suspended, cancelled, expired and unproven subscriptions', async () => {
      using sink = await openSink()
      using witness = await openSink()
      await using rig = await startRig({ engine }, { setUp: ({ put }) => put('witness', { port: witness.port }) })
      using traffic = startTraffic(rig.send)
      const put = (destination: object, subscription: object) => {
        rig.put('one', { port: sink.port, ...destination }, subscription)
        rig.publish()
      }
      for (const [destination, subscription] of [
        [{ paused: true }, {}],
        [{}, { state: 'suspended' }],
        [{}, { validUntil: Date.now() - 61_000 }],
        [{ proof: 'unproven' }, {}],
        [{ ip: '10.0.0.1' }, {}],
        [{}, { products: ['bundle'] }],
        [{}, { state: 'cancelled' }],
      ] as const) {
        put({}, {})
        const before = sink.packets.length
        await until('it gets shreds', () => sink.packets.length > before, SOON_MS)
        put(destination, subscription)
        await until('it is out', () => rig.shreds.status().destinations.length === 1)
        // Blocks sent from now on reach the other destination and not this one.
        const newest = traffic.slot()
        await until('later shreds have come', () => lastSlot(witness) > newest + 3)
        assert.ok(lastSlot(sink) <= newest, JSON.stringify([destination, subscription]))
      }
      rig.suspendCustomer()
      rig.publish()
      await until('no destination is served', () => rig.shreds.status().destinations.length === 0)
      await traffic.stop()
    })

    test('pauses and retries a destination whose port is closed; the others are not affected', async () => {
      const gone = await openSink()
      const { port } = gone
      using witness = await openSink()
      await using rig = await startRig(
        { engine },
        {
          setUp({ put }) {
            put('gone', { port })
            put('witness', { port: witness.port })
          },
        },
      )
      using traffic = startTraffic(rig.send)
      await until('both get shreds', () => gone.packets.length > 0 && witness.packets.length > 0)
      gone[Symbol.dispose]()
      const stateOf = () => rig.shreds.status().destinations.find(({ subscriptionId }) => subscriptionId === 'gone')
      await until('it is paused', () => stateOf()?.state === 'paused')
      assert.equal(stateOf()?.lastFault, 'refused')
      const before = witness.packets.length
      await until('the other still receives packets', () => witness.packets.length > before + 200)
      using back = await openSink(port)
      await until('it is served again', () => back.packets.length > 100, 20_000)
      await until('it is no longer probed', () => stateOf()?.state === 'sending')
      await traffic.stop()
    })
  })
}

test('drops packets from addresses that are not allowed, counts them and raises an alarm', async () => {
  using sink = await openSink()
  const lines: string[] = []
  const log = createLogger({ level: 'info', destination: { write: (line: string) => lines.push(line) } })
  await using rig = await startRig(
    { sources: ['127.0.0.2', '10.0.0.0/8'] },
    { log, setUp: ({ put }) => put('one', { port: sink.port }) },
  )
  for (let slot = 1; slot < 20; slot++) await rig.send(blockPackets(slot))
  await until('they were counted', () => rig.shreds.status().counts.dropped.source === 19 * 64)
  await until('the alarm is raised', () => rig.shreds.status().alarms.includes('refused-source'))
  assert.equal(rig.registry.value('sluice_shreds_alarm', { alarm: 'refused-source' }), 1)
  assert.ok(lines.some((line) => line.includes('"alarm":"refused-source"') && line.includes('"part":"shreds"')))
  assert.equal(sink.packets.length, 0)

  const allowed = createSocket('udp4')
  allowed.bind(0, '127.0.0.2')
  await once(allowed, 'listening')
  await sendAll(allowed, blockPackets(30), rig.shreds.address.port)
  allowed.close()
  await until('the allowed source is relayed', () => sink.packets.length === 64)
})

test('drops forged, malformed, foreign and old packets, each counted by its reason', async () => {
  using sink = await openSink()
  await using rig = await startRig(
    { version: 27_350 },
    { leaders: oneLeader, setUp: ({ put }) => put('one', { port: sink.port }) },
  )
  const good = blockPackets(1000)
  await rig.send(good)
  await rig.send(blockPackets(1001, { leader: createSigningKey(new Uint8Array(32).fill(66)) }))
  await rig.send(blockPackets(1002, { version: 1 }))
  await rig.send(blockPackets(900))
  await rig.send(blockPackets(1100))
  await rig.send(good.map((packet) => packet.subarray(0, 1200)))
  const dropped = () => rig.shreds.status().counts.dropped
  await until('all were counted', () => dropped().malformed === 64)
  assert.deepEqual(
    [dropped().forged, dropped().version, dropped().late, dropped().ahead, dropped().duplicate],
    [64, 64, 64, 64, 0],
  )
  await until('the good ones have come', () => sink.packets.length >= good.length)
  assert.deepEqual(hexes(sink.packets), hexes(good))
  await until('alarms are raised', () => {
    const { alarms } = rig.shreds.status()
    return alarms.includes('forged') && alarms.includes('version-mismatch')
  })
  assert.match(rig.reasons.get('shreds version-mismatch') ?? '', /another version/)
})

test('is degraded when no source sends, and recovers with the next packet', async () => {
  await using rig = await startRig({ sourceLostMs: 1000 })
  await rig.send(blockPackets(5))
  await until('it is degraded', () => rig.reasons.has('shreds source-lost'))
  await rig.send(blockPackets(6))
  await until('it is well again', () => !rig.reasons.has('shreds source-lost'))
})

test('is degraded when no source has sent anything since the start and a destination waits for it', async () => {
  using sink = await openSink()
  await using rig = await startRig({ sourceLostMs: 1000 }, { setUp: ({ put }) => put('one', { port: sink.port }) })
  await until('it is degraded', () => rig.reasons.has('shreds source-lost'))
  await rig.send(blockPackets(6))
  await until('it is well again', () => !rig.reasons.has('shreds source-lost'))
})

test('the total cap holds at ten times the load, and dropped packets are counted', async () => {
  using one = await openSink()
  using two = await openSink()
  await using rig = await startRig(
    { caps: { totalPacketsPerSecond: 100 } },
    {
      setUp({ put }) {
        put('one', { port: one.port })
        put('two', { port: two.port })
      },
    },
  )
  const startedMs = performance.now()
  let packets = 0
  for (let slot = 1; performance.now() - startedMs < 1500; slot++) {
    const block = blockPackets(slot)
    await rig.send(block)
    packets += block.length
  }
  const seconds = (performance.now() - startedMs) / 1000
  const totals = () => rig.shreds.status().destinations
  await until(
    'all were counted',
    () =>
      totals().every((each) => each.packets + each.unsent === rig.shreds.status().counts.relayed) &&
      rig.shreds.status().counts.relayed === packets,
  )
  const sent = totals().reduce((sum, each) => sum + each.packets, 0)
  assert.ok(packets * 2 >= sent * 10, `${packets} in, ${sent} out`)
  assert.ok(sent <= 100 * (seconds + 1) + 25, `${sent} in ${seconds} s`)
  await until('the alarm is raised', () => rig.shreds.status().alarms.includes('total-rate'))
  assert.equal(
    rig.registry.value('sluice_shreds_unsent_total', { reason: 'total-rate' }),
    totals().reduce((sum, each) => sum + each.unsent, 0),
  )
})

test('a destination that waits for its proof gets challenges only; its echo proves it, an echo from another address does not', async () => {
  using old = await openSink()
  using fresh = await openSink()
  using stranger = await openSink()
  const setAt = Date.now()
  await using rig = await startRig(
    {},
    {
      setUp({ put, putPending }) {
        put('one', { port: old.port })
        putPending('one', { port: fresh.port, setAt })
      },
    },
  )
  const challenged = once(fresh.socket, 'message')
  using traffic = startTraffic(rig.send)
  const [packet, from] = (await challenged) as [Buffer, { port: number; address: string }]
  const code = challengeCodeOf(new Uint8Array(32).fill(5), {
    id: pendingId('one'),
    revision: 0,
    ip: '127.0.0.1',
    port: fresh.port,
    proof: 'unproven',
    paused: false,
    setAt,
  })
  assert.deepEqual(packet, Buffer.from(challengePacket(code)))
  stranger.socket.send(packet, from.port, '127.0.0.1')
  await until('the old address is served on', () => old.packets.length > 500)
  assert.deepEqual(rig.proven, [])
  assert.ok(
    fresh.packets.length <= 3 && fresh.packets.every(({ length }) => length <= 64),
    'shreds were sent to an unproven address',
  )
  fresh.socket.send(packet, from.port, '127.0.0.1')
  await until('it is proven', () => rig.proven.length > 0)
  assert.deepEqual(rig.proven, [{ subscriptionId: 'one', code }])
  await traffic.stop()
})

test('the window follows the length of a slot while the relay runs, and the newest slot is shown to who learns it', async () => {
  using sink = await openSink()
  let slotMs = 400
  const [listeners, observed]: [Set<() => void>, number[]] = [new Set(), []]
  await using rig = await startRig(
    {},
    {
      slotLength: {
        ms: () => slotMs,
        onChange(listener) {
          listeners.add(listener)
          return { [Symbol.dispose]: () => void listeners.delete(listener) }
        },
        observe: (slot) => observed.push(slot),
      },
      setUp: ({ put }) => put('one', { port: sink.port }),
    },
  )
  await rig.send(blockPackets(1000).slice(0, 1))
  await until('it is relayed', () => lastSlot(sink) === 1000)
  await until('it is observed', () => observed.at(-1) === 1000)
  const ahead = blockPackets(1040).slice(0, 1)
  await rig.send(ahead)
  await until('40 slots of 400 ms are too far ahead', () => rig.shreds.status().counts.dropped.ahead === 1)
  slotMs = 200
  for (const listener of listeners) listener()
  // With a packet of a current slot each time: without one the window would move to the packets ahead.
  const current = blockPackets(1001, { sets: 16 }).values()
  await until('40 slots of 200 ms are not', async () => {
    const { value } = current.next()
    assert.ok(value !== undefined, 'the limits are in effect before all packets are sent')
    await rig.send([value, ...ahead])
    return lastSlot(sink) === 1040
  })
})

test('startShreds rejects with address-in-use when the port is taken', async () => {
  await using rig = await startRig()
  const listen = `127.0.0.1:${rig.shreds.address.port}`
  for (const engine of ['sendmmsg', 'dgram'] satisfies UdpEngine[])
    await assert.rejects(startRig({ listen, engine }), { code: 'address-in-use' })
  await assert.rejects(startRig({ listen: '203.0.113.77:20000' }), { code: 'address-unavailable' })
})

test('threads that end are started again, and each start is counted by thread', async () => {
  const clock = createManualClock()
  await using rig = await startRig({}, { clock, leaders: oneLeader, isDecoding: true })
  const restarts = (thread: string) => rig.registry.value('sluice_shreds_thread_restarts_total', { thread })
  const all = ['relay', 'signatures', 'decoder'] as const
  assert.deepEqual(all.map(restarts), [0, 0, 0])
  // In one turn of the event loop, so that no heartbeat of a thread arrives meanwhile.
  clock.advance(38_000)
  assert.deepEqual(all.map(restarts), [1, 1, 1])
  assert.ok(rig.reasons.has('shreds relay') && rig.reasons.has('shreds decoded'))
})

/** Sends a new block every few milliseconds until stopped. */
function startTraffic(send: (packets: readonly Uint8Array[]) => Promise<void>) {
  let isStopped = false
  let slot = 0
  const running = (async () => {
    while (!isStopped) {
      slot += 1
      await send(blockPackets(slot))
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  return {
    /** The newest slot sent. */
    slot: () => slot,
    async stop() {
      isStopped = true
      await running
    },
    [Symbol.dispose]: () => void (isStopped = true),
  }
}

const slotOf = (packet: Buffer): number => Number(packet.readBigUInt64LE(65))
const lastSlot = ({ packets }: Sink): number => packets.reduce((last, packet) => Math.max(last, slotOf(packet)), 0)
