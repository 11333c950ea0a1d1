import { systemClock } from '../src/platform/process/clock.ts'
import { secureRandom } from '../src/platform/process/random.ts'
import { silentLogger } from '../src/platform/telemetry/logger.ts'
import { Engine } from '../src/shreds/decoded/engine.ts'
import { createInputMemory, openInputReader, openInputWriter } from '../src/shreds/decoded/input-ring.ts'
import { decodeMessage } from '../src/shreds/decoded/messages.ts'
import { openOutputReader } from '../src/shreds/decoded/output-ring.ts'
import { startDecoded } from '../src/shreds/decoded/service.ts'
import { parseShredsOptions } from '../src/shreds/options.ts'
import { DATA_SHARDS, recoverShards } from '../src/solana/shred/reed-solomon.ts'
import { ShardRecovery } from '../src/solana/shred/shard-recovery.ts'
import { createRandom } from '../test/support/process/property.ts'
import { type BlockPlan, makeBlock } from '../test/support/shreds/decoded-blocks.ts'

/**
 * The engine of ShredStream Decoded on one core. One JSON line per figure:
 *   engine    shreds per CPU second by how shreds arrive; the time from a completing shred to its data set, with and without recovery
 *   recovery  the bare cost of rebuilding data shards, beside `recoverShards`
 *   input     what the relay spends for a shred to be decoded
 *   thread    the time from the relay's write to a reader in another thread, at 7,500 shreds a second
 *   node bench/decoded.ts [seconds of the last one, 5 by default] [what: engine, recovery, input, thread; all by default]
 */
const [, , secondsText = '5', what = 'all'] = process.argv
const SLOTS = 12
/** Two batches of two FEC sets and many of one, as leaders make them. */
const BATCHES: BlockPlan['batchBytes'] = [50_000, ...Array.from({ length: 16 }, () => 28_000), 50_000]
const RATE = 7500
const OPTIONS = { slotsMax: 128, slotsBehindMax: 32, bytesMax: 128 * 1024 * 1024, shredsPerSlotMax: 32_768 }

const random = createRandom(1)
const fecSets = makeSlots(1000, SLOTS)

if (what === 'all' || what === 'engine') {
  measureEngine('data shreds in order', (set) => set.slice(0, 32))
  measureEngine('data, then coding shreds', (set) => set)
  measureEngine('any order', shuffled)
  measureEngine('any order, 30 % lost', (set) => shuffled(set).slice(0, 45))
}
if (what === 'all' || what === 'recovery') for (const missing of [1, 4, 16, 32]) measureRecovery(missing)
if (what === 'all' || what === 'input') measureInput()
if (what === 'all' || what === 'thread') {
  const slots = Math.ceil((Number(secondsText) * RATE * SLOTS) / (64 * fecSets.length))
  const timely = makeSlots(1000, slots)
  await measureThread(timely, 'data, then coding shreds', (set) => set)
  await measureThread(timely, 'any order', shuffled)
}

function makeSlots(first: number, slots: number): (readonly Uint8Array[])[] {
  let chainedRoot = new Uint8Array(32)
  return Array.from({ length: slots }, (_, i) => {
    const slot = first + i
    const block = makeBlock({ slot, parentSlot: slot - 1, chainedRoot, batchBytes: BATCHES }, random)
    chainedRoot = Uint8Array.from(block.lastRoot)
    return block.fecSets
  }).flat()
}

function measureEngine(arrival: string, arrange: (set: readonly Uint8Array[]) => readonly Uint8Array[]): void {
  const packets = fecSets.flatMap(arrange)
  const passes = 8
  let transactions = 0
  const direct: number[] = []
  const recovered: number[] = []
  let cpuMicros = 0
  // The first passes warm up.
  for (let pass = 0; pass < passes; pass++) {
    let startedMs = 0
    const engine = new Engine(OPTIONS, (event) => {
      if (event.kind !== 'data-set' || pass < 2) return
      transactions += event.transactions.length
      ;(event.wasRecovered ? recovered : direct).push(performance.now() - startedMs)
    })
    const before = process.cpuUsage()
    for (const packet of packets) {
      startedMs = performance.now()
      engine.push(packet, 0, packet.length, 0, true)
    }
    const used = process.cpuUsage(before)
    if (pass >= 2) cpuMicros += used.user + used.system
  }
  const shreds = packets.length * (passes - 2)
  print({
    path: 'engine',
    arrival,
    shredsPerCpuSecond: Math.round((shreds / cpuMicros) * 1e6),
    cpuMicrosPerShred: round(cpuMicros / shreds),
    transactionsPerCpuSecond: Math.round((transactions / cpuMicros) * 1e6),
    completingShredToDataSetMs: percentiles(direct),
    withRecoveryMs: percentiles(recovered),
  })
}

function measureRecovery(missing: number): void {
  const [set] = fecSets as [readonly Uint8Array[]]
  const shards = set.map((packet, i) => (i < DATA_SHARDS ? packet.subarray(64, 1051) : packet.subarray(89, 1076)))
  const bytes = new Uint8Array(64 * 987)
  for (const [i, shard] of shards.entries()) bytes.set(shard, i * 987)
  const positions = Uint8Array.from({ length: DATA_SHARDS }, (_, i) => missing + i)
  const given = { bytes, length: 987, positions, at: Int32Array.from(positions, (position) => position * 987) }
  const gone = Uint8Array.from({ length: missing }, (_, i) => i)
  const known = shards.map((shard, i) => (i >= missing && i < missing + DATA_SHARDS ? shard : undefined))
  const recovery = new ShardRecovery()
  print({
    path: 'recovery',
    missing,
    rebuildMicros: microsOf(() => recovery.rebuild(given, gone, missing)),
    recoverShardsMicros: microsOf(() => recoverShards(known)),
  })
}

function measureInput(): void {
  const memory = createInputMemory(64)
  const writer = openInputWriter(memory)
  const reader = openInputReader(memory)
  const packets = fecSets[0] as readonly Uint8Array[]
  const micros = microsOf(() => {
    for (const packet of packets) writer.offer(packet, 0, packet.length, 0, true)
    writer.flush()
    reader.discard()
  })
  print({ path: 'input', nanosPerShred: Math.round((micros / packets.length) * 1000) })
}

async function measureThread(
  timely: typeof fecSets,
  arrival: string,
  arrange: (set: readonly Uint8Array[]) => readonly Uint8Array[],
) {
  const options = { ...parseShredsOptions().decoded, shredsPerSlotMax: 32_768 }
  const deps = { clock: systemClock, random: secureRandom, log: silentLogger, onState: () => undefined }
  await using decoded = await startDecoded(options, deps)
  const writer = openInputWriter(decoded.input)
  const reader = openOutputReader(decoded.output)
  const direct: number[] = []
  const recovered: number[] = []
  let isOpen = true
  let lost = 0
  const reading = (async () => {
    while (isOpen) {
      const record = reader.next()
      if (record === undefined) {
        await reader.wait(100)
        continue
      }
      lost += record.lost
      const message = decodeMessage(record.payload)
      if (message.kind !== 'data-set') continue
      ;(message.wasRecovered ? recovered : direct).push(systemClock.monotonicMs() - message.arrivalNanos / 1e6)
    }
  })()
  const startedMs = performance.now()
  const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))
  let sent = 0
  for (const set of timely) {
    for (const packet of arrange(set)) {
      // As many as are due, and now and then a turn for the reader, which is in this thread.
      if (sent % 8 === 0) await turn()
      while (sent > ((performance.now() - startedMs) / 1000) * RATE) await turn()
      writer.offer(packet, 0, packet.length, systemClock.monotonicMs() * 1e6, true)
      writer.flush()
      sent += 1
    }
  }
  const sentMs = performance.now() - startedMs
  await new Promise((resolve) => setTimeout(resolve, 300))
  isOpen = false
  await reading
  print({
    path: 'thread',
    arrival,
    shredsPerSecond: Math.round((sent / sentMs) * 1000),
    writeToReaderMs: percentiles(direct),
    withRecoveryMs: percentiles(recovered),
    inputDropped: decoded.status()?.inputDropped,
    outputLost: lost,
  })
}

function shuffled(set: readonly Uint8Array[]): Uint8Array[] {
  const mixed = [...set]
  for (let i = mixed.length - 1; i > 0; i--) {
    const j = random(i + 1)
    ;[mixed[i], mixed[j]] = [mixed[j] as Uint8Array, mixed[i] as Uint8Array]
  }
  return mixed
}

function microsOf(run: () => void): number {
  for (let i = 0; i < 200; i++) run()
  const times = Array.from({ length: 400 }, () => {
    const startedMs = performance.now()
    run()
    return performance.now() - startedMs
  })
  return round((times.toSorted((a, b) => a - b)[200] as number) * 1000)
}

function percentiles(ms: readonly number[]): { count: number; p50: number; p99: number } | undefined {
  if (ms.length === 0) return undefined
  const sorted = ms.toSorted((a, b) => a - b)
  const at = (share: number): number => round(sorted[Math.floor(share * (sorted.length - 1))] as number)
  return { count: ms.length, p50: at(0.5), p99: at(0.99) }
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}

function print(figure: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify({ bench: 'decoded', ...figure })}\n`)
}
