import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSeededRandom, type Random, randomInt } from '../src/core/random.ts'
import { BlockFold, type BlockSink } from '../src/evm/block-fold.ts'
import { EVENT } from '../src/evm/event-type.ts'
import { ExecRecorder } from '../src/evm/exec-recorder.ts'
import { toHex } from '../src/evm/hex.ts'
import { createRingReader, type RingReader } from '../src/evm/ring-reader.ts'
import { createMemoryRing, createMemorySource, type RingSource } from '../src/evm/ring-source.ts'
import { RingWriter } from '../src/evm/ring-writer.ts'
import { openRingFile } from '../src/host/ring-file.ts'

/**
 * How many events one core takes out of a ring, and how many it folds with everything on (contention, top accesses, lifecycle, TPS).
 * The ring holds blocks of 4,000 transactions over Zipf-distributed accounts, about 25 events a transaction, and is read as a live one:
 * descriptors twice, header before and after. Rates are per second of processor time, medians of the rounds. One JSON line a path.
 *
 *   npx node bench/ring.ts [blocks] [rounds]
 */
const BLOCKS = Number(process.argv[2] ?? 8)
const ROUNDS = Number(process.argv[3] ?? 9)
const TXNS_PER_BLOCK = 4000
const GOAL_EVENTS_PER_SECOND = 1_500_000

const ring = createMemoryRing({ capacity: 2 ** 20, payloadBytes: 2 ** 28, contextBytes: 0 })
const events = writeBlocks(ring)
const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-ring-'))
try {
  const path = join(folder, 'ring')
  writeFileSync(path, ring.image)
  const file = openRingFile(path)
  if (file === undefined) throw new Error('the ring file is gone')
  const sources: [string, RingSource][] = [
    ['memory', createMemorySource(ring.image, { isStatic: false })],
    ['readSync', file],
  ]
  for (const [source, bytes] of sources) {
    report({ path: 'decode', source, ...measure(() => readAll(bytes, countTypes)) })
    report({ path: 'fold', source, ...measure(() => foldAll(bytes)), goal: GOAL_EVENTS_PER_SECOND })
  }
  file.close()
} finally {
  rmSync(folder, { recursive: true })
}

function report(figures: { eventsPerSecond: number; goal?: number; [name: string]: unknown }): void {
  const ratio = figures.goal === undefined ? {} : { ratio: Number((figures.eventsPerSecond / figures.goal).toFixed(2)) }
  console.log(
    JSON.stringify({ bench: 'ring', ...figures, ...ratio, events, node: process.version, cores: cpus().length }),
  )
}

function measure(run: () => void): { eventsPerSecond: number; eventsPerWallSecond: number } {
  const rates: { cpu: number; wall: number }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const cpuBefore = process.cpuUsage()
    const before = performance.now()
    run()
    const wallMs = performance.now() - before
    const { user, system } = process.cpuUsage(cpuBefore)
    rates.push({ cpu: (events / (user + system)) * 1e6, wall: (events / wallMs) * 1e3 })
  }
  const median = (kind: 'cpu' | 'wall'): number =>
    Math.round(rates.map((rate) => rate[kind]).toSorted((a, b) => a - b)[ROUNDS >> 1] as number)
  return { eventsPerSecond: median('cpu'), eventsPerWallSecond: median('wall') }
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

function foldAll(source: RingSource): void {
  let blocks = 0
  const nothing = (): void => {}
  const fail = (): never => {
    throw new Error('a block was not folded')
  }
  const sink: BlockSink = {
    lifecycle: nothing,
    tps: nothing,
    contention: () => blocks++,
    dropped: fail,
    incomplete: fail,
  }
  const fold = new BlockFold({ seed: 1 }, sink)
  readAll(source, ({ batch }) => fold.fold(batch))
  fold.topAccesses.publish()
  if (blocks !== BLOCKS) throw new Error(`${blocks} blocks were folded, not ${BLOCKS}`)
}

/** Writes blocks of token transfers and swaps: few contracts are hot, most slots belong to one account. */
function writeBlocks({ geometry, target }: ReturnType<typeof createMemoryRing>): number {
  const writer = new RingWriter({ geometry }, target)
  const recorder = new ExecRecorder(writer)
  const random = createSeededRandom(5)
  const contracts = Array.from({ length: 2000 }, () => random.bytes(20))
  const accounts = Array.from({ length: 50_000 }, () => random.bytes(20))
  let timeNs = 1_800_000_000_000_000_000n
  const now = () => ({ timeNs: (timeNs += 500n) })
  for (let block = 1; block <= BLOCKS; block++) {
    const id = toHex(Uint8Array.from({ length: 32 }, (_, at) => (at === 31 ? block : 0)))
    recorder.add('BLOCK_START', { id, block_number: BigInt(block), txn_count: BigInt(TXNS_PER_BLOCK) }, now())
    for (let txnIndex = 0; txnIndex < TXNS_PER_BLOCK; txnIndex++) writeTxn(txnIndex)
    recorder.add('BLOCK_END', { gas_used: 1n }, now())
    recorder.add('BLOCK_FINALIZED', { id, block_number: BigInt(block) }, now())
    recorder.add('BLOCK_VERIFIED', { block_number: BigInt(block) }, now())
    recorder.flush()
  }
  return writer.lastSeqno

  function writeTxn(txnIndex: number): void {
    const add = (type: number, bytes: number, fill?: (payload: Uint8Array, view: DataView) => void): void => {
      const payload = new Uint8Array(bytes)
      fill?.(payload, new DataView(payload.buffer))
      recorder.addEncoded(type, payload, { ...now(), txnIndex })
    }
    add(EVENT.TXN_PERF_EVM_ENTER, 0)
    add(EVENT.TXN_HEADER_START, 352 + 68, (_, view) => view.setUint32(336, 68, true))
    add(EVENT.TXN_HEADER_END, 0)
    add(EVENT.TXN_EVM_OUTPUT, 24, (_, view) => {
      view.setUint32(4, 2, true)
      view.setUint32(16, 4, true)
    })
    for (let log = 0; log < 2; log++) add(EVENT.TXN_LOG, 32 + 96 + 32)
    for (let frame = 0; frame < 4; frame++) add(EVENT.TXN_CALL_FRAME, 128 + 68 + 32)
    add(EVENT.ACCOUNT_ACCESS_LIST_HEADER, 8, (_, view) => view.setUint32(0, 4, true))
    for (let access = 0; access < 4; access++) {
      const address = access < 2 ? pick(contracts, random) : pick(accounts, random)
      const slots = access < 2 ? 4 : 0
      add(EVENT.ACCOUNT_ACCESS, 152, (payload, view) => {
        payload.set(address, 4)
        view.setUint32(144, slots, true)
      })
      for (let slot = 0; slot < slots; slot++) {
        add(EVENT.STORAGE_ACCESS, 124, (payload) => {
          payload.set(address, 0)
          payload[25] = slot & 1
          if (slot < 2) payload[58] = slot
          else payload.set(pick(accounts, random), 39)
        })
      }
    }
    add(EVENT.TXN_END, 0)
    add(EVENT.TXN_PERF_EVM_EXIT, 0)
  }
}

/** Place k is chosen about 1 / k of the time. */
function pick<Item>(items: readonly Item[], random: Random): Item {
  const place = Math.floor(items.length ** random.float()) - 1
  return items[Math.max(0, Math.min(items.length - 1, place + randomInt(random, 2)))] as Item
}
