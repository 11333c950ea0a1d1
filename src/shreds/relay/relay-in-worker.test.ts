import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { blockPackets, openSink, sendAll } from '../../../test/support/shreds/rig.ts'
import { createManualClock } from '../../core/clock.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
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

/** A thread that opens its port and blocks; its successors are relays. */
function blockedEntry(folder: { file(name: string): string }): URL {
  const from = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href)
  const started = JSON.stringify(folder.file('started'))
  const lines = [
    "import { existsSync, writeFileSync } from 'node:fs'",
    `import { systemClock } from ${from('../../platform/process/clock.ts')}`,
    `import { openWorkerPort } from ${from('../../platform/process/worker.ts')}`,
    `import { openDescriptorList } from ${from('../../platform/udp/descriptor-list.ts')}`,
    `import { openUdpPort } from ${from('../../platform/udp/open-port.ts')}`,
    `if (existsSync(${started})) await import(${from('./thread.ts')})`,
    'else {',
    `  writeFileSync(${started}, '')`,
    '  const link = openWorkerPort()',
    '  const descriptors = openDescriptorList(link.data.descriptorMemory)',
    '  const { port } = await openUdpPort(link.data.port, { clock: systemClock, descriptors })',
    "  link.post({ kind: 'ready', engine: port.engine, address: port.address })",
    '  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)',
    '}',
  ]
  writeFileSync(folder.file('entry.mjs'), lines.join('\n'))
  return pathToFileURL(folder.file('entry.mjs'))
}

test('a thread that blocks is terminated, and the next one has its port', async () => {
  using folder = makeTestFolder()
  using sink = await openSink()
  const clock = createManualClock()
  const states: boolean[] = []
  await using relay = await startRelayInWorker(
    { ...OPTIONS, port: { ...OPTIONS.port, engine: 'sendmmsg' }, signatures: 'off' },
    {
      clock,
      random: secureRandom,
      log: silentLogger,
      onReport: () => {},
      onState: (isUp) => void states.push(isUp),
      entry: blockedEntry(folder),
    },
  )
  void relay.setDestinations([{ subscriptionId: 'one', ip: '127.0.0.1', port: sink.port }])
  clock.advance(38_000)
  assert.deepEqual(states, [false])
  // Past the time for its stop and the delay of one restart. A start that finds the port taken would have to wait longer.
  let delayMs = 0
  await until('the next thread runs', () => {
    if (delayMs < 3000) {
      clock.advance(100)
      delayMs += 100
    }
    return states.join() === 'false,true'
  })
  await sendAll(sink.socket, blockPackets(1), relay.ready.address.port)
  await until('a block has come', () => sink.packets.length === 64)
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
