import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { createManualClock } from '../../src/core/clock.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startUdpFaultProxy } from './udp-fault-proxy.ts'
import type { UdpFaults } from './udp-faults.ts'

/** A target that records and echoes packets, behind a proxy with a manual clock, and a sender that records the echoes. */
async function setUp(faults: UdpFaults, seed = 1) {
  const clock = createManualClock()
  const stack = new AsyncDisposableStack()
  const open = async () => {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    stack.defer(() => void socket.close())
    return socket
  }
  const target = await open()
  const arrived: number[] = []
  const damaged: Buffer[] = []
  target.on('message', (packet, from) => {
    if (packet.readUInt32BE(4) === ~packet.readInt32BE(0) >>> 0) arrived.push(packet.readUInt32BE(0))
    else damaged.push(packet)
    target.send(packet, from.port, from.address)
  })
  const proxy = stack.use(
    await startUdpFaultProxy(
      { target: { host: '127.0.0.1', port: target.address().port }, faults },
      { clock, random: createSeededRandom(seed) },
    ),
  )
  const sender = await open()
  const echoes: number[] = []
  sender.on('message', (packet) => echoes.push(packet.readUInt32BE(0)))
  const { upstream } = proxy.counts
  let sent = 0
  /** Sends numbered packets, in steps small enough that no socket buffer overflows. */
  async function send(count: number): Promise<void> {
    const end = sent + count
    while (sent < end) {
      const packet = Buffer.alloc(8)
      packet.writeUInt32BE(sent, 0)
      packet.writeUInt32BE(~sent >>> 0, 4)
      sender.send(packet, proxy.port, proxy.host)
      sent += 1
      if (sent % 64 === 0 || sent === end) await until('the proxy has them', () => upstream.received === sent)
    }
  }
  const allArrived = () =>
    until('every packet from the proxy arrived', () => arrived.length + damaged.length === upstream.passed)
  const dispose = () => stack.disposeAsync()
  return { clock, proxy, sender, arrived, damaged, echoes, send, allArrived, [Symbol.asyncDispose]: dispose }
}

const inOrder = (count: number) => Array.from({ length: count }, (_, at) => at)

test('without faults every packet and every reply passes once, in order', async () => {
  await using on = await setUp({})
  await on.send(500)
  await on.allArrived()
  assert.deepEqual(on.arrived, inOrder(500))
  await until('the echoes are here', () => on.echoes.length === 500)
  assert.deepEqual(on.proxy.counts.downstream.passed, 500)
  assert.equal(on.proxy.held, 0)
})

test('loss: drops about lossRate of the packets, the same ones for the same seed', async () => {
  const run = async (seed: number) => {
    await using on = await setUp({ lossRate: 0.2 }, seed)
    on.proxy.set({}, 'downstream')
    await on.send(1000)
    await on.allArrived()
    assert.equal(on.proxy.counts.upstream.lost, 1000 - on.arrived.length)
    assert.ok(on.arrived.length > 740 && on.arrived.length < 860, `${on.arrived.length} of 1000 arrived`)
    return on.arrived
  }
  const first = await run(7)
  assert.deepEqual(await run(7), first)
  assert.notDeepEqual(await run(8), first)
})

test('duplication: sends a second copy of about duplicateRate of the packets', async () => {
  await using on = await setUp({ duplicateRate: 0.1 })
  await on.send(1000)
  await on.allArrived()
  assert.deepEqual([...new Set(on.arrived)], inOrder(1000))
  const { duplicated, passed } = on.proxy.counts.upstream
  assert.equal(passed, 1000 + duplicated)
  assert.ok(duplicated > 60 && duplicated < 140, `${duplicated} copies`)
})

test('reordering: delays a packet behind three others; a timer sends the last one', async () => {
  await using on = await setUp({ reorderRate: 0.1 })
  await on.send(500)
  on.proxy.set({ reorderRate: 1 })
  await on.send(1)
  assert.ok(on.proxy.held >= 1)
  on.clock.advance(50)
  assert.equal(on.proxy.counts.upstream.passed, 501)
  await on.allArrived()
  assert.notDeepEqual(on.arrived, inOrder(501))
  assert.deepEqual(
    on.arrived.toSorted((a, b) => a - b),
    inOrder(501),
  )
  for (const [at, number] of on.arrived.entries()) assert.ok(Math.abs(at - number) <= 50, `${number} at place ${at}`)
})

test('damage: flips one bit and keeps the length', async () => {
  await using on = await setUp({ damageRate: 0.5 })
  await on.send(200)
  await on.allArrived()
  assert.equal(on.damaged.length, on.proxy.counts.upstream.damaged)
  assert.ok(on.damaged.length > 60 && on.damaged.length < 140, `${on.damaged.length} of 200 damaged`)
  for (const packet of on.damaged) assert.equal(packet.length, 8)
})

test('delay: delays packets by delayMs ± jitterMs; faults can be changed meanwhile', async () => {
  await using on = await setUp({ delayMs: 100, jitterMs: 20 })
  await on.send(50)
  assert.equal(on.proxy.held, 50)
  on.clock.advance(79)
  assert.equal(on.proxy.counts.upstream.passed, 0)
  on.clock.advance(41)
  assert.equal(on.proxy.counts.upstream.passed, 50)
  await on.allArrived()
  assert.notDeepEqual(on.arrived, inOrder(50), 'jitter lets packets overtake')
  on.proxy.set({ lossRate: 1 })
  await on.send(10)
  assert.equal(on.proxy.counts.upstream.lost, 10)
})
