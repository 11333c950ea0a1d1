import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { openSink } from '../../../test/support/shreds/rig.ts'
import { systemClock } from '../process/clock.ts'
import { until } from '../process/test-wait.ts'
import { openUdpPort } from './open-port.ts'
import { CELL_BYTES, UDP_ENGINES, type UdpEngine, type UdpPort, type UdpPortOptions } from './port.ts'
import { decodeSocketAddress, encodeSocketAddress, ipv6Text } from './socket-address.ts'
import { createSourceFilter } from './source-filter.ts'

async function openPort(engine: UdpEngine, changes: Partial<UdpPortOptions> = {}): Promise<UdpPort> {
  const options: UdpPortOptions = {
    listen: { host: '127.0.0.1', port: 0 },
    sources: ['127.0.0.1'],
    receiveBufferBytes: 1024 * 1024,
    sendBufferBytes: 1024 * 1024,
    engine,
    ...changes,
  }
  return (await openUdpPort(options, { clock: systemClock })).port
}

async function sendTo(port: UdpPort, packets: readonly Uint8Array[], from = '127.0.0.1'): Promise<void> {
  const socket = createSocket(from.includes(':') ? 'udp6' : 'udp4')
  socket.bind(0, from)
  await once(socket, 'listening')
  const to = from.includes(':') ? '::1' : '127.0.0.1'
  for (const packet of packets) await new Promise((sent) => socket.send(packet, port.address.port, to, sent))
  socket.close()
}

type Got = { text: string; length: number; source: number }

/** Receives until `count` packets have come. A batch port blocks the thread, so packets are sent before. */
async function take(port: UdpPort, count: number): Promise<Got[]> {
  const got: Got[] = []
  const endMs = performance.now() + 10_000
  await port.run({
    onBatch(batch) {
      for (let cell = 0; cell < batch; cell++) {
        const length = port.arena.lengths[cell] as number
        const bytes = port.arena.bytes.subarray(cell * CELL_BYTES, cell * CELL_BYTES + Math.min(length, 8))
        got.push({ text: Buffer.from(bytes).toString(), length, source: port.arena.sources[cell] as number })
      }
    },
    onTick: () => got.length < count && performance.now() < endMs,
  })
  return got
}

for (const engine of UDP_ENGINES) {
  describe(`over ${engine}`, () => {
    test('receives packets with their length and the index of their source', async () => {
      using port = await openPort(engine, { sources: ['10.0.0.0/8', '127.0.0.2', '127.0.0.0/30'] })
      assert.equal(port.engine, engine)
      assert.ok(port.receiveBufferBytes >= 100_000)
      const sent = [
        sendTo(port, [Buffer.from('one'), Buffer.alloc(0)], '127.0.0.2'),
        sendTo(port, [Buffer.from('three'), Buffer.alloc(CELL_BYTES + 500, 'x')], '127.0.0.3'),
        sendTo(port, [Buffer.from('stranger')], '127.0.0.9'),
      ]
      await Promise.all(sent)
      const got = (await take(port, 5)).toSorted((a, b) => (a.text < b.text ? -1 : 1))
      assert.deepEqual(got, [
        { text: '', length: 0, source: 1 },
        { text: 'one', length: 3, source: 1 },
        { text: 'stranger', length: 8, source: -1 },
        { text: 'three', length: 5, source: 2 },
        { text: 'xxxxxxxx', length: CELL_BYTES, source: 2 },
      ])
    })

    test('work that can wait is done when no packet waits, before the thread sleeps', async () => {
      using port = await openPort(engine)
      const sent = sendTo(
        port,
        Array.from({ length: 100 }, () => Buffer.from('packet')),
      )
      // A batch port blocks the thread.
      if (engine === 'sendmmsg') await sent
      const done: (number | 'idle')[] = []
      let isDue = false
      let packets = 0
      const endMs = performance.now() + 10_000
      await port.run({
        onBatch(count) {
          packets += count
          done.push(count)
          isDue = true
        },
        isIdleDue: () => isDue,
        onIdle() {
          done.push('idle')
          isDue = false
        },
        onTick: () => (packets < 100 || isDue) && performance.now() < endMs,
      })
      assert.equal(packets, 100)
      assert.equal(done.at(-1), 'idle')
      if (engine === 'sendmmsg') assert.deepEqual(done, [48, 48, 4, 'idle'])
    })

    test('over IPv6', async () => {
      using port = await openPort(engine, { listen: { host: '::1', port: 0 }, sources: ['::1/128'] })
      await sendTo(port, [Buffer.from('six')], '::1')
      assert.deepEqual(await take(port, 1), [{ text: 'six', length: 3, source: 0 }])
      using sink = await openSink(0, '::1')
      const to = port.connect({ ip: '::1', port: sink.port })
      await until('it is connected', () => {
        port.stage(Uint16Array.of(0), { count: 1, bytes: 3 }, { count: 0, bytes: 1 })
        return to.send(1, 0) === 1
      })
      await until('it has come', () => sink.packets.length > 0)
      assert.equal(sink.packets[0]?.toString(), 'six')
      to.close()
    })

    test('sends two groups of lengths as single packets, as many of each as requested', async () => {
      using sink = await openSink()
      using port = await openPort(engine)
      for (let cell = 0; cell < 32; cell++)
        port.arena.bytes.fill(65 + cell, cell * CELL_BYTES, cell * CELL_BYTES + CELL_BYTES)
      const to = port.connect({ ip: '127.0.0.1', port: sink.port })
      port.stage(Uint16Array.of(3, 1, 7, 2, 5), { count: 3, bytes: 1203 }, { count: 2, bytes: 1228 })
      // Node's sockets connect a turn later.
      await until('it is connected', () => to.send(1, 0) === 1)
      await until('the first has come', () => sink.packets.length === 1)
      to.takeFault()
      const send = async (first: number, second: number): Promise<string[]> => {
        sink.packets.length = 0
        assert.equal(to.send(first, second), first + second)
        await until('all have come', () => sink.packets.length >= first + second)
        return sink.packets.map((packet) => `${String.fromCharCode(packet[0] as number)}${packet.length}`)
      }
      assert.deepEqual(await send(3, 2), ['D1203', 'B1203', 'H1203', 'C1228', 'F1228'])
      assert.deepEqual(await send(2, 1), ['D1203', 'B1203', 'C1228'])
      assert.deepEqual(await send(0, 2), ['C1228', 'F1228'])
      assert.deepEqual(await send(1, 0), ['D1203'])
      assert.equal(to.send(0, 0), 0)
      assert.equal(to.takeFault(), undefined)
      to.close()
      assert.equal(to.send(1, 0), 0)
    })

    test('sends packets as they were staged, although the cells are overwritten', async () => {
      using sink = await openSink()
      using port = await openPort(engine)
      const to = port.connect({ ip: '127.0.0.1', port: sink.port })
      port.arena.bytes.fill(1, 0, CELL_BYTES)
      port.arena.bytes.fill(2, CELL_BYTES, 2 * CELL_BYTES)
      port.stage(Uint16Array.of(1, 0), { count: 1, bytes: 1203 }, { count: 1, bytes: 1228 })
      port.arena.bytes.fill(9, 0, 2 * CELL_BYTES)
      await until('it is connected', () => to.send(1, 1) === 2)
      await until('both have come', () => sink.packets.length >= 2)
      assert.deepEqual(sink.packets.slice(0, 2), [Buffer.alloc(1203, 2), Buffer.alloc(1228, 1)])
      to.close()
    })

    test('a closed port is a refused fault', async () => {
      const gone = await openSink()
      gone[Symbol.dispose]()
      using port = await openPort(engine)
      const to = port.connect({ ip: '127.0.0.1', port: gone.port })
      port.stage(Uint16Array.of(0), { count: 1, bytes: 100 }, { count: 0, bytes: 100 })
      const faults = new Set<string | undefined>()
      await until('it is refused', () => {
        to.send(1, 0)
        to.poll()
        faults.add(to.takeFault())
        return faults.has('refused')
      })
      to.close()
    })

    test('ticks without traffic, and a tick ends the run', async () => {
      using port = await openPort(engine)
      let ticks = 0
      await port.run({ onBatch: () => assert.fail('no packet was sent'), onTick: () => ++ticks < 3 })
      assert.equal(ticks, 3)
      assert.equal(port.overruns(), 0)
    })
  })
}

test('overruns counts the packets that the kernel dropped', async () => {
  using port = await openPort('sendmmsg', { receiveBufferBytes: 4096 })
  await sendTo(
    port,
    Array.from({ length: 200 }, () => Buffer.alloc(1200)),
  )
  const overruns = port.overruns()
  assert.ok(overruns > 0, `${overruns}`)
  assert.equal((await take(port, 200 - overruns)).length, 200 - overruns)
})

test('encodes and decodes socket addresses', () => {
  for (const ip of ['127.0.0.1', '255.0.1.254']) {
    assert.deepEqual(decodeSocketAddress(encodeSocketAddress({ ip, port: 65_535 })), { host: ip, port: 65_535 })
  }
  for (const [ip, long] of [
    ['::', '0:0:0:0:0:0:0:0'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['2a00:1450:4001::', '2a00:1450:4001:0:0:0:0:0'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['64:ff9b::1.2.3.4', '64:ff9b:0:0:0:0:102:304'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
  ] as const)
    assert.deepEqual(decodeSocketAddress(encodeSocketAddress({ ip, port: 1025 })), { host: long, port: 1025 })
  assert.equal(ipv6Text(new Uint8Array(20).fill(255, 4, 8), 2), '0:ffff:ffff:0:0:0:0:0')
  assert.throws(() => encodeSocketAddress({ ip: 'localhost', port: 1 }), TypeError)
})

test('a flood of foreign addresses leaves the source filter correct and bounded', () => {
  const filter = createSourceFilter(['10.0.0.0/8', '2a00::/16'])
  for (let i = 0; i < 20_000; i++) assert.equal(filter.ofV4(0x0b00_0000 + i), -1)
  assert.ok(filter.cached() <= 8192, 'the cache is bounded')
  assert.equal(filter.ofV4(0x0aff_ffff), 0)
  assert.equal(filter.ofV4(0xff00_0001 | 0), -1)
  assert.equal(filter.ofText('2a00:0:0:0:0:0:0:9'), 1)
  assert.equal(filter.ofText('10.1.2.3'), 0)
})
