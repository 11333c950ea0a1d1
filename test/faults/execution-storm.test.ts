import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Lifecycle, StreamFrame, Warning } from '../../src/contract/stream-events.ts'
import { RING_WRITER_DEFAULTS } from '../../src/localnet/ring/options.ts'
import { startRingWriter } from '../../src/localnet/ring/writer-service.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { checkConnection, type Published } from '../support/execution/history-checker.ts'
import { helloOf, openStream, type StreamReader } from '../support/execution/stream-reader.ts'
import { isFull } from '../support/process/property.ts'
import { serve } from '../support/process/serve.ts'
import { onBusyMachine, percentile } from './gateway-rig.ts'

/** The execution service in a real process, over a ring that is written by this one. */

const LAUNCHER = join(import.meta.dirname, '../../sluice')
const MIB = 1024 * 1024
/** Limits that row F14 states. */
const TIMES_NORMAL = 10
const RESIDENT_MIB_MAX = 512
const LOOP_DELAY_SECONDS_MAX = 0.05
/** The full run covers at least one period of the event loop delay figures after the start. */
const STORM_MS = isFull ? 30_000 : 3000
/** Enough data to fill sockets: raw events beside the kinds that are never dropped. */
const SUBSCRIBE = 'Lifecycle,TPS,TopAccesses,TxnHeaderStart,TxnEvmOutput,TxnCallFrame,TxnLog'
const LIMITS = {
  SLUICE_EXECUTION__CLIENT__BYTES_MAX: `${MIB}`,
  SLUICE_EXECUTION__CLIENT__DROPS_MAX: '250',
}

test('F14: at ten times the usual event rate memory stays bounded, slow clients get the count of lost frames, and Lifecycle is complete', async (t) => {
  await using home = await temporaryFolder()
  const path = home.file('ring')
  const { tps, blockMs } = RING_WRITER_DEFAULTS
  const storm = { path, tps: tps * TIMES_NORMAL, blockMs: blockMs / TIMES_NORMAL, seed: 14 }
  await using _writer = await startRingWriter(storm, { log: silentLogger, clock: systemClock })
  const env = { SLUICE_EXECUTION__ENABLED: 'true', SLUICE_EXECUTION__RING: path, ...LIMITS }
  // Started as an operator does: the settings of the launcher affect memory.
  await using running = serve({ program: LAUNCHER, cwd: home.path, args: ['--no-demo'], env })
  const server = await running.address('execution')
  const operator = `http://${await running.address('metrics')}/metrics`
  const open = () => openStream(`ws://${server}/v1/ws?subscribe=${SUBSCRIBE}`)
  const metric = async (name: string) => {
    const at = name.startsWith('sluice_execution_') ? `http://${server}/metrics` : operator
    const text = await (await fetch(at)).text()
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  }

  await using reader = await open()
  await reader.until(20)
  await using slow = await open()
  await slow.until(2)
  const fromMs = performance.now()
  slow.pause()
  await until(
    'the slow client loses frames',
    async () => (await metric('sluice_execution_ws_dropped_total')) > 20,
    60_000,
  )
  slow.resume()
  await using stalled = await open()
  await stalled.until(1)
  stalled.pause()
  const closedForSlowness = 'sluice_execution_ws_closes_total\\{reason="slow"\\}'
  await until('the stalled client is closed', async () => (await metric(closedForSlowness)) === 1, 60_000)
  const waitsMs: number[] = []
  while (performance.now() < fromMs + STORM_MS || waitsMs.length < 50) {
    const askedMs = performance.now()
    assert.equal((await fetch(`http://${server}/v1/status`)).status, 200)
    waitsMs.push(performance.now() - askedMs)
    await pause(20)
  }
  // The slow client has caught up when it has a frame that was published after it resumed reading.
  const lastSeq = reader.frames.at(-1)?.seq ?? 0
  await until('the slow client has caught up', () => (slow.frames.at(-1)?.seq ?? 0) >= lastSeq, 30_000)

  // The reader lost no frame, so its frames are what was published; the other clients are compared with it.
  assert.deepEqual(warningsOf(reader, 'backpressure'), [])
  assert.equal(reader.closed, undefined)
  const published = publishedBy(reader)
  for (const client of [slow, stalled]) {
    const texts = client.texts.filter((text) => seqOf(text) <= (published.at(-1)?.seq ?? 0))
    assert.deepEqual(checkConnection({ texts }, published).violations, [])
  }
  const reported = warningsOf(slow, 'backpressure')
  assert(reported.length > 0, 'the slow client got a backpressure warning')
  assert.equal(
    reported.at(-1)?.dropped,
    droppedBetween(slow, published),
    'the warning has the exact count of lost frames',
  )
  const lostOfRing = warningsOf(reader, 'ring_gap').length
  assert.equal(
    lostOfRing > 0,
    (await metric('sluice_execution_ring_events_lost_total')) > 0,
    'gaps of the ring are reported',
  )
  assert.deepEqual(brokenLifecycles(reader), [])

  const residentMib = peakKib(running.child.pid ?? 0) / 1024
  const delay = await metric('sluice_process_event_loop_delay_seconds\\{stat="p99"\\}')
  t.diagnostic(`peak ${residentMib.toFixed(0)} MiB (figure: ${RESIDENT_MIB_MAX}), loop delay p99 ${delay} s (0.05)`)
  t.diagnostic(
    `${published.length} frames, ${reported.at(-1)?.dropped} dropped; status p99 ${percentile(waitsMs, 0.99)} ms`,
  )
  assert.ok(residentMib <= RESIDENT_MIB_MAX, `${residentMib} MiB`)
  if (isFull) assert.ok(delay <= LOOP_DELAY_SECONDS_MAX, `${delay} s`)
  assert.ok(percentile(waitsMs, 0.99) <= onBusyMachine(100, 5000), `${percentile(waitsMs, 0.99)} ms`)
})

type Reported<T extends Warning['type']> = Extract<Warning, { type: T }>

function warningsOf<T extends Warning['type']>(client: StreamReader, type: T): Reported<T>[] {
  const warnings = client.frames.flatMap((frame) => ('Warning' in frame ? [frame.Warning] : []))
  return warnings.filter((warning): warning is Reported<T> => warning.type === type)
}

/** Live frames of a client that lost none. A warning has no sequence number; it has that of the frame before it. */
function publishedBy(client: StreamReader): Published[] {
  const published: Published[] = []
  let last = 0
  for (const [at, text] of client.texts.entries()) {
    if (at <= helloOf(client).snapshot) continue
    last = Math.max(last, client.frames[at]?.seq ?? 0)
    published.push({ seq: last, text })
  }
  return published
}

function droppedBetween(client: StreamReader, published: readonly Published[]): number {
  const got = new Set(client.frames.map(({ seq }) => seq))
  const gaps = warningsOf(client, 'backpressure')
  return published.filter(
    ({ seq }) => !got.has(seq) && gaps.some(({ from_seq, to_seq }) => seq >= from_seq && seq <= to_seq),
  ).length
}

function seqOf(text: string): number {
  return (JSON.parse(text) as StreamFrame).seq
}

/** Blocks with missing stages: each change names the stage before it, so a missing change is found. */
function brokenLifecycles(client: StreamReader): string[] {
  const stages = new Map<string, string>()
  const broken: string[] = []
  let changes = 0
  for (const frame of client.frames.slice(1 + helloOf(client).snapshot)) {
    if (!('Lifecycle' in frame)) continue
    const { block_hash, block_number, from_stage, to_stage }: Lifecycle = frame.Lifecycle
    const before = stages.get(block_hash)
    // Blocks proposed before this client connected have only their later stages.
    if (before !== undefined && before !== from_stage)
      broken.push(`${block_number}: from ${from_stage} to ${to_stage} after ${before}`)
    stages.set(block_hash, to_stage)
    changes += 1
  }
  assert(changes > 100 && [...stages.values()].includes('Verified'), `${changes} changes`)
  return broken
}

function peakKib(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}
