import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExecRecorder } from '../src/evm/event/recorder.ts'
import { BlockFold, type BlockSink } from '../src/evm/fold/block.ts'
import type { ConflictExtras, ContentionData } from '../src/evm/fold/contention.ts'
import { createRingReader, type RingReader } from '../src/evm/ring/reader.ts'
import type { RingSource } from '../src/evm/ring/source.ts'
import { createMemoryRing, createMemorySource } from '../src/evm/ring/test-memory-ring.ts'
import { RingWriter } from '../src/evm/ring/writer.ts'
import { loadFileMapper } from '../src/platform/files/mapped.ts'
import { openRingFile } from '../src/platform/ring-file/reader.ts'
import { createBlockSource } from './ring-blocks.ts'

/**
 * How many events one core reads from a ring, and how many it folds with all figures (contention, top accesses, lifecycle, TPS),
 * compared with a C++ program that does the same with `unordered_map` and is compiled here. The ring holds blocks of 4,000 transactions
 * over Zipf-distributed accounts, about 25 events per transaction, and is read like a live one: descriptors twice, header before and after.
 * Rates are per second of CPU time, medians of the rounds.
 * Then the time from the end of a block in a live ring to its published figures. One JSON line per path.
 *
 *   npx node bench/ring.ts [blocks] [rounds] [publishSeconds]
 */
const BLOCKS = Number(process.argv[2] ?? 8)
const ROUNDS = Number(process.argv[3] ?? 9)
const PUBLISH_SECONDS = Number(process.argv[4] ?? 40)
const TXNS_PER_BLOCK = 4000
const GOALS = { eventsPerSecond: 1_500_000, ofCpp: 0.9, publishP99Ms: 2 }

type Sums = Record<
  | 'events'
  | 'blocks'
  | 'unique'
  | 'contended'
  | 'withWriter'
  | 'txnTimeNs'
  | 'tps'
  | 'edges'
  | 'top'
  | 'depth'
  | 'accesses',
  number
>

const ring = createMemoryRing({ capacity: 2 ** 20, payloadBytes: 2 ** 28, contextBytes: 0 })
const events = writeBlocks()
const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-ring-'))
try {
  const path = join(folder, 'ring')
  writeFileSync(path, ring.image)
  const mapper = await loadFileMapper()
  const file = openRingFile(path)
  const mapped = mapper.ok ? openRingFile(path, { mapper }) : undefined
  if (file === undefined) throw new Error('the ring file does not exist')
  const sources: [string, RingSource][] = [
    ['memory', createMemorySource(ring.image, { isStatic: false })],
    ['readSync', file],
    ...(mapped === undefined ? [] : [['mmap', mapped] as [string, RingSource]]),
  ]
  if (!mapper.ok) console.error(mapper.reason)
  for (const [source, bytes] of sources)
    report({ path: 'decode', source, ...measure(() => readAll(bytes, countTypes)) })

  const cpp = compileCpp(folder)
  for (const [source, bytes] of sources) {
    const fold = createFold()
    const rates = Array.from({ length: ROUNDS }, () => rateOf(() => fold(bytes)))
    const cppRates: number[] = []
    if (cpp !== undefined) {
      const reference = JSON.parse(execFileSync(cpp, [path, `${ROUNDS}`], { encoding: 'utf8' })) as {
        eventsPerSecond: number
        sums: Sums
      }
      cppRates.push(reference.eventsPerSecond)
      const [ours, theirs] = [JSON.stringify(fold(bytes)), JSON.stringify(reference.sums)]
      if (ours !== theirs) throw new Error(`the figures differ: ${ours} and ${theirs}`)
    }
    const eventsPerSecond = median(rates)
    const cppPerSecond = cppRates.length === 0 ? undefined : median(cppRates)
    report({
      path: 'fold',
      source,
      eventsPerSecond,
      goal: GOALS.eventsPerSecond,
      ratio: ratioOf(eventsPerSecond, GOALS.eventsPerSecond),
      ...(cppPerSecond === undefined
        ? { cpp: 'not compiled' }
        : { cppPerSecond, ofCpp: ratioOf(eventsPerSecond, cppPerSecond), goalOfCpp: GOALS.ofCpp }),
    })
  }
  file.close()
  mapped?.close()
  // In a separate process: this one holds half a gigabyte of rings, which a service does not.
  const program = join(import.meta.dirname, 'ring-publish.ts')
  const words = [program, folder, `${PUBLISH_SECONDS}`, '200000']
  const publish = JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' })) as Record<string, number>
  report({ path: 'publish', ...publish, goalP99Ms: GOALS.publishP99Ms })
} finally {
  rmSync(folder, { recursive: true })
}

function report(figures: Record<string, unknown>): void {
  const machine = { events, node: process.version, cores: cpus().length, arch: process.arch }
  console.log(JSON.stringify({ bench: 'ring', ...figures, ...machine }))
}

/** Undefined without a compiler; the rest of the bench runs. */
function compileCpp(target: string): string | undefined {
  const program = join(target, 'ring-fold')
  try {
    const source = join(import.meta.dirname, 'reference/ring-fold.cpp')
    execFileSync('g++', ['-O2', '-std=c++20', source, '-o', program], { stdio: ['ignore', 'ignore', 'inherit'] })
    return program
  } catch {
    console.error('g++ does not run here: no comparison with C++')
    return undefined
  }
}

function measure(run: () => void): { eventsPerSecond: number } {
  return { eventsPerSecond: median(Array.from({ length: ROUNDS }, () => rateOf(run))) }
}

/** Events per second of CPU time. */
function rateOf(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (events / (user + system)) * 1e6
}

function median(rates: readonly number[]): number {
  return Math.round(rates.toSorted((a, b) => a - b)[rates.length >> 1] as number)
}

function ratioOf(rate: number, goal: number): number {
  return Number((rate / goal).toFixed(2))
}

function readAll(source: RingSource, take: (reader: RingReader) => void): void {
  const created = createRingReader(source, { seqno: 1 })
  if (!created.ok) throw new Error(created.message)
  const { reader } = created
  while (reader.poll(0).kind === 'events') take(reader)
  if (reader.stats.eventsRead !== events || reader.stats.payloadsLost > 0) throw new Error('events were lost')
}

function countTypes({ batch }: RingReader): void {
  let sum = 0
  for (let at = 0; at < batch.count; at++) sum += batch.type(at)
  if (sum === 0) throw new Error('no event has a type')
}

/**
 * One fold for all rounds, as in a long-running service, with the resets of a new ring. The sums are compared with those of the C++
 * program to verify that both did the same work.
 */
function createFold(): (source: RingSource) => Sums {
  let now = noSums()
  const fail = (): never => {
    throw new Error('a block was not folded')
  }
  const sink: BlockSink = {
    lifecycle: () => {},
    tps: (tps = 0) => void (now.tps += tps),
    contention: (data, extras) => addTo(now, data, extras),
    dropped: fail,
    incomplete: fail,
  }
  const fold = new BlockFold({ seed: 1 }, sink)
  return (source) => {
    now = noSums()
    fold.restart()
    readAll(source, ({ batch }) => fold.fold(batch))
    const { account, storage } = fold.topAccesses.publish()
    for (const { count } of [...account, ...storage]) now.accesses += count
    if (now.blocks !== BLOCKS) throw new Error(`${now.blocks} blocks were folded, not ${BLOCKS}`)
    return now
  }
}

function noSums(): Sums {
  const none = { blocks: 0, unique: 0, contended: 0, withWriter: 0, txnTimeNs: 0, tps: 0, edges: 0, top: 0 }
  return { events, ...none, depth: 0, accesses: 0 }
}

function addTo(sums: Sums, data: ContentionData, extras: ConflictExtras): void {
  sums.blocks += 1
  sums.unique += data.total_unique_slots
  sums.contended += data.contended_slot_count
  sums.withWriter += extras.contended_with_writer
  sums.txnTimeNs += data.total_tx_time_ns
  sums.depth += extras.depth
  for (const { shared_txn_count } of data.contract_edges) sums.edges += shared_txn_count
  for (const { txn_count } of data.top_contended_slots) sums.top += txn_count
  for (const { contended_slots } of data.top_contended_contracts) sums.top += contended_slots
}

function writeBlocks(): number {
  const writer = new RingWriter({ geometry: ring.geometry }, ring.target)
  const recorder = new ExecRecorder(writer)
  let timeNs = 1_800_000_000_000_000_000n
  const source = createBlockSource(recorder, { txnsPerBlock: TXNS_PER_BLOCK, nowNs: () => (timeNs += 500n) })
  for (let block = 1; block <= BLOCKS; block++) {
    for (const _ of source.write(block));
    recorder.flush()
  }
  return writer.lastSeqno
}
