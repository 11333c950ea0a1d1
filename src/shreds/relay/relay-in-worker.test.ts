import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blockPackets, openSink, sendAll } from '../../../test/support/shreds.ts'
import { createManualClock } from '../../core/clock.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import type { RelayOptions, RelayReport } from './protocol.ts'
import { startRelayInWorker } from './relay-in-worker.ts'

const LIMITS = { shredsPerSlotMax: 32_768, window: { backSlots: 64, aheadSlots: 32 } }
const OPTIONS: RelayOptions = {
  port: {
    listen: { host: '127.0.0.1', port: 0 },
    sources: ['127.0.0.1'],
    receiveBufferBytes: 1024 * 1024,
    sendBufferBytes: 1024 * 1024,
  },
  signatures: 'auto',
  signatureFailuresPerSecond: 200,
  limits: LIMITS,
  limitsMax: LIMITS,
  caps: {
    destinationPacketsPerSecond: 1_000_000,
    destinationBytesPerSecond: 1_000_000_000,
    totalPacketsPerSecond: 1_000_000,
    totalBytesPerSecond: 1_000_000_000,
  },
  leaders: [],
  destinations: [],
  schedule: { priority: 'normal' },
}

test('a thread that dies is restarted on the same port, with its destinations', async () => {
  using sink = await openSink()
  const states: boolean[] = []
  const reports: RelayReport[] = []
  await using relay = await startRelayInWorker(OPTIONS, {
    clock: systemClock,
    random: secureRandom,
    log: silentLogger,
    onReport: (report) => void reports.push(report),
    onState: (isUp) => void states.push(isUp),
  })
  await relay.setDestinations([{ subscriptionId: 'one', ip: '127.0.0.1', port: sink.port }])
  const { port } = relay.ready.address
  await sendAll(sink.socket, blockPackets(1), port)
  await until('the first block has come', () => sink.packets.length === 64)

  // Leaders that are not a list make the thread throw.
  relay.setLeaders(7 as unknown as [])
  // The next thread starts with these.
  relay.setLeaders([])
  await until('it is back', () => states.join() === 'false,true', 20_000)
  await sendAll(sink.socket, blockPackets(2), port)
  await until('the second block has come', () => sink.packets.length === 128)
  const reported = () => reports.flatMap((report) => report.destinations).reduce((sum, { packets }) => sum + packets, 0)
  await until('the second block was reported', () => reported() >= 64)
  assert.equal(relay.ready.address.port, port)
})

test('a thread that sends no report for 30 s is replaced', async () => {
  const clock = createManualClock()
  const states: boolean[] = []
  await using _relay = await startRelayInWorker(OPTIONS, {
    clock,
    random: secureRandom,
    log: silentLogger,
    onReport: () => {},
    onState: (isUp) => void states.push(isUp),
  })
  // In one turn of the event loop, so that no report of the thread arrives meanwhile.
  clock.advance(29_000)
  assert.deepEqual(states, [])
  clock.advance(9_000)
  assert.deepEqual(states, [false])
  // Past the backoff, also that of a start which finds the port still taken, and not so far that the next thread is silent too before it has loaded its code.
  let delayMs = 0
  await until('another thread runs', () => {
    if (delayMs < 20_000) {
      clock.advance(100)
      delayMs += 100
    }
    return states.join() === 'false,true'
  })
})

test('a port in use at the first start is an error for the caller and not a restart', async () => {
  using taken = await openSink()
  const states: boolean[] = []
  const listen = { host: '127.0.0.1', port: taken.port }
  await assert.rejects(
    startRelayInWorker(
      { ...OPTIONS, port: { ...OPTIONS.port, listen } },
      {
        clock: systemClock,
        random: secureRandom,
        log: silentLogger,
        onReport: () => {},
        onState: (isUp) => void states.push(isUp),
      },
    ),
    { code: 'address-in-use' },
  )
  assert.deepEqual(states, [])
})
