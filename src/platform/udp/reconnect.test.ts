import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSink } from '../../../test/support/shreds/rig.ts'
import { createManualClock } from '../../core/clock.ts'
import { isServiceError } from '../../core/error.ts'
import { until } from '../process/test-wait.ts'
import { openUdpBatchPort } from './batch-port.ts'
import { openUdpPort } from './open-port.ts'
import { RECONNECT_MS, type UdpPort } from './port.ts'
import { openUdpSender } from './sender.ts'
import { ERRNO, loadUdpCalls } from './system-calls.ts'

/** The system refuses to connect to it without a permission. */
const FORBIDDEN = { ip: '255.255.255.255', port: 8009 }
const OPTIONS = {
  listen: { host: '127.0.0.1', port: 0 },
  sources: ['127.0.0.1'],
  receiveBufferBytes: 1024 * 1024,
  sendBufferBytes: 1024 * 1024,
}

function stageOne(port: UdpPort): void {
  port.arena.bytes.fill(7, 0, 100)
  port.stage(Uint16Array.of(0), { count: 1, bytes: 100 }, { count: 0, bytes: 100 })
}

for (const [call, errno, fault] of [
  ['connect', ERRNO.ENETUNREACH, 'unreachable'],
  ['connect', ERRNO.EADDRNOTAVAIL, 'unreachable'],
  ['socket', ERRNO.EMFILE, 'other'],
] as const) {
  test(`sendmmsg: a destination recovers from an error ${errno} of ${call}, which is tried again once a second`, async () => {
    using sink = await openSink()
    const clock = createManualClock()
    const real = await loadUdpCalls()
    let isFailing = false
    let tries = 0
    const attempt = (name: typeof call, work: () => number): number => {
      if (name !== call) return work()
      tries += 1
      return isFailing ? -errno : work()
    }
    const calls = {
      ...real,
      socket: (family: number) => attempt('socket', () => real.socket(family)),
      connect: (fd: number, address: Uint8Array) => attempt('connect', () => real.connect(fd, address)),
    }
    using port = openUdpBatchPort(OPTIONS, { clock, calls })
    isFailing = true
    tries = 0
    const to = port.connect({ ip: '127.0.0.1', port: sink.port })
    stageOne(port)
    for (let n = 0; n < 5; n++) assert.deepEqual([to.send(1, 0), to.takeFault()], [0, fault])
    assert.equal(tries, 1)
    clock.advance(RECONNECT_MS)
    for (let n = 0; n < 5; n++) assert.deepEqual([to.send(1, 0), to.takeFault()], [0, fault])
    assert.equal(tries, 2)
    isFailing = false
    clock.advance(RECONNECT_MS - 1)
    assert.equal(to.send(1, 0), 0)
    to.takeFault()
    clock.advance(1)
    assert.deepEqual([to.send(1, 0), to.takeFault()], [1, undefined])
    await until('it has come', () => sink.packets.length === 1)
    to.close()
    clock.advance(RECONNECT_MS)
    assert.deepEqual([to.send(1, 0), tries], [0, 3], 'a closed destination stays closed')
  })
}

test('dgram: a destination that the system cannot connect to is unreachable, and is tried again once a second', async () => {
  const clock = createManualClock()
  using port = (await openUdpPort({ ...OPTIONS, engine: 'dgram' }, { clock })).port
  const to = port.connect(FORBIDDEN)
  stageOne(port)
  const untilFailed = () => until('it has failed', () => to.send(1, 0) === 0 && to.takeFault() === 'unreachable')
  await untilFailed()
  for (let n = 0; n < 3; n++) assert.deepEqual([to.send(1, 0), to.takeFault()], [0, 'unreachable'])
  clock.advance(RECONNECT_MS)
  assert.equal(to.send(1, 0), 0)
  to.takeFault()
  to.send(1, 0)
  assert.equal(to.takeFault(), 'buffer-full', 'it connects again')
  await untilFailed()
  to.close()
  clock.advance(RECONNECT_MS)
  assert.equal(to.send(1, 0), 0)
})

test('a sender to an address that the system cannot connect to is refused when it is opened', async () => {
  await assert.rejects(openUdpSender(FORBIDDEN), (error) => {
    assert.ok(isServiceError(error) && error.code === 'address-unavailable')
    assert.match(error.message, /255\.255\.255\.255:8009/)
    return true
  })
  using sink = await openSink()
  await using sender = await openUdpSender({ ip: '127.0.0.1', port: sink.port })
  sender.send(Buffer.from('one'))
  await until('it has come', () => sink.packets.length === 1)
})
