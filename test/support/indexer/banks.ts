import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../../src/core/clock.ts'
import { createSeededRandom, type Random, randomInt } from '../../../src/core/random.ts'
import type { IngestDeps } from '../../../src/indexer/ingest/ingest.ts'
import { type IngestSupervisor, superviseIngest } from '../../../src/indexer/ingest/supervise.ts'
import { indexerMetrics } from '../../../src/indexer/metrics.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry, type MetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { type Rig, startRig } from '../../faults/upstreams-rig.ts'
import { type HistorySlot, makeBankHistory } from '../solana/bank-history.ts'
import { type BankNode, startBankNode } from '../solana/bank-node.ts'
import { blocksOf, compareTables, type TruthEngine } from './truth.ts'

const ROWS = { includeVotes: true, includeLogs: true }
/** Retries and restarts wait a fraction of their usual time. */
const HASTE = 10
const BLOCKS = 24
/** Slots at the end with one bank each, played until everything before them is final in the tables. */
const PLAIN = 80
const FAULT_PERCENT = 10
const FIRST_FAULT = 4
const START_MS = 60_000

const hasty: Clock = { ...systemClock, setTimer: (ms, run) => systemClock.setTimer(ms / HASTE, run) }

export type BankRun = {
  readonly seed: number
  /** Whether the nodes send bank ids. */
  readonly isNamed?: boolean
  /** Whether the engine shows its tables at one moment in one statement. */
  readonly isChecked: boolean
}

export type BankRunResult = { readonly replaced: number; readonly checks: number; readonly faults: number }

/**
 * Plays a history of banks on two nodes while the indexer follows one of them, is moved to the other, and is killed with and without its database. The tables
 * never hold rows of two banks of a slot, coverage is never ahead of them, and in the end they equal getBlock of the final banks.
 */
export async function checkBankHistory(engine: TruthEngine, run: BankRun): Promise<BankRunResult> {
  const { seed, isNamed = true } = run
  const random = createSeededRandom(seed)
  const history = makeBankHistory({ seed, blocks: BLOCKS, plain: PLAIN })
  await using stack = new AsyncDisposableStack()
  const nodes: BankNode[] = []
  const rigs: Rig[] = []
  for (const at of [0, 1]) {
    const node = stack.use(await startBankNode(history, { seed: seed + at + 1, isNamed }))
    const { rpc, grpc } = node.node
    nodes.push(node)
    rigs.push(stack.use(await startRig({ clock: systemClock, nodes: [{ name: `n${at}`, rpc, grpc }] })))
  }
  const registry = stack.use(createMetricsRegistry())
  let active = 0
  const upstreamOf = (at: number) => (rigs[at] as Rig).upstreams.shared
  const upstream: IngestDeps['upstream'] = {
    get bestSlot() {
      return upstreamOf(active).bestSlot
    },
    isAvailable: true,
    // Blocks come from either node, whichever the stream is from.
    forwardAsync: (request) => upstreamOf(randomInt(random, 2)).forwardAsync(request),
    each: () => [...upstreamOf(0).each(), ...upstreamOf(1).each()],
    grpc: Object.create(upstreamOf(0).grpc, {
      open: {
        value: (...given: Parameters<IngestDeps['upstream']['grpc']['open']>) => upstreamOf(active).grpc.open(...given),
      },
    }),
  }
  const metrics = indexerMetrics(registry)
  const open = () => openSupervisor(engine, upstream, random, metrics)
  let supervisor = await open()
  let checks = 0
  let faults = 0
  const head = (): number => supervisor.status().ingest?.headSlot ?? 0

  async function restart(isKilled: boolean): Promise<void> {
    // A killed process takes nothing along; the database is killed first, so that closing writes nothing either.
    if (isKilled) supervisor.store()?.kill()
    await supervisor[Symbol.asyncDispose]()
    supervisor = await open()
  }

  async function injectFault(): Promise<void> {
    faults++
    switch (randomInt(random, 6)) {
      case 0:
        return restart(false)
      case 1:
        return restart(true)
      case 2:
        return supervisor.store()?.kill()
      case 3:
        return nodes[active]?.endStreams()
      default: {
        const left = active
        active = 1 - active
        nodes[left]?.endStreams()
      }
    }
  }

  try {
    const lastMixed = history.length - PLAIN
    let isDone = false
    for (let at = 0; at < history.length && !isDone; at++) {
      const entry = history[at] as HistorySlot
      for (const node of nodes) node.play(at)
      // The tables begin with what comes after the start, which takes longer on a busy machine.
      if (at === FIRST_FAULT) await reaches(() => head() > 0, START_MS)
      if (at > FIRST_FAULT && at < lastMixed && randomInt(random, 100) < FAULT_PERCENT) await injectFault()
      // A database that was killed is opened again, which takes long on a busy machine: the slots after it are not wasted.
      if (at >= lastMixed) await reaches(() => supervisor.status().state !== 'opening', START_MS)
      // Some slots come faster than they are written.
      if (randomInt(random, 3) > 0 || at >= lastMixed)
        await reaches(() => head() >= entry.slot - 2, at < lastMixed ? 60 : 400)
      if (run.isChecked && randomInt(random, 3) === 0 && (await isConsistent(engine, supervisor, history))) checks++
      isDone = at > lastMixed + 8 && head() >= (history[lastMixed + 4] as HistorySlot).slot
    }
    assert.ok(isDone, `ingest does not progress: ${JSON.stringify(supervisor.status())}`)
  } finally {
    await supervisor[Symbol.asyncDispose]()
  }
  const found = await engine.find()
  try {
    const [from, to] = found.range
    const { rpc } = (nodes[0] as BankNode).node
    // Every slot but the newest is final.
    for (let at = history.findIndex(({ slot }) => slot > to); at >= 0 && at < history.length; at++) nodes[0]?.play(at)
    const blocks = await blocksOf(rpc, from, to, 'finalized')
    assert.ok(blocks.length >= BLOCKS - 10, `${blocks.length} blocks from ${from} to ${to}`)
    await compareTables(blocks, found)
  } finally {
    await found[Symbol.asyncDispose]?.()
  }
  return { replaced: replacedOf(registry), checks, faults }
}

function replacedOf(registry: MetricsRegistry): number {
  return registry.value('sluice_indexer_replaced_blocks_total', {}) ?? 0
}

function openSupervisor(
  { store }: TruthEngine,
  upstream: IngestDeps['upstream'],
  random: Random,
  metrics: IngestDeps['metrics'],
): Promise<IngestSupervisor> {
  const fill = { parallel: 4, blocksMax: 64 }
  const ingest = { includeAccounts: false, batchBlocks: 2, batchMs: 5, heldMax: 16, fill }
  return superviseIngest(
    { store: { ...store, rows: ROWS }, ingest },
    { upstream, clock: hasty, random, log: silentLogger, metrics },
  )
}

/** Waits for a condition that may not come true yet; bounded. */
async function reaches(holds: () => boolean, ms: number): Promise<void> {
  const untilMs = systemClock.monotonicMs() + ms
  while (!holds() && systemClock.monotonicMs() < untilMs) await pause(2)
}

const SNAPSHOT = `SELECT c.from_slot, c.to_slot, c.finalized_slot, b.slot, b.blockhash, b.parent_slot, b.parent_blockhash, b.commitment, t.signatures
  FROM coverage c, blocks b LEFT JOIN (SELECT slot, groupArray(signature) AS signatures FROM transactions GROUP BY slot) t ON t.slot = b.slot
  WHERE c.table_name = 'blocks' ORDER BY b.slot`

type SnapshotRow = readonly [
  ...[from: string, to: string, finalizedSlot: string, slot: string, blockhash: string],
  ...[parentSlot: string, parentBlockhash: string, commitment: string, signatures: readonly string[] | null],
]

/** Checks the tables as one statement shows them. False when the engine did not respond, or has no rows yet. */
async function isConsistent(
  engine: TruthEngine,
  supervisor: IngestSupervisor,
  history: readonly HistorySlot[],
): Promise<boolean> {
  const rows = (await engine.queryLive(supervisor, SNAPSHOT)) as readonly SnapshotRow[] | undefined
  if (rows === undefined || rows.length === 0) return false
  const bySlot = new Map(history.map((entry) => [entry.slot, entry]))
  rows.forEach((row, at) => {
    const [from, to, finalizedSlot, slot, blockhash, parentSlot, parentBlockhash, commitment, signatures] = row
    const where = `slot ${slot}, coverage ${from} to ${to}, final to ${finalizedSlot}`
    assert.ok(Number(slot) >= Number(from) && Number(slot) <= Number(to), `${where}: a row outside of coverage`)
    const entry = bySlot.get(Number(slot)) as HistorySlot
    const bank = [...entry.losers, entry.final].find((block) => block?.blockhash === blockhash)
    assert.ok(bank !== undefined, `${where}: ${blockhash} is no bank of it`)
    const expected = bank.transactions.map(({ signature }) => signature).toSorted()
    assert.deepEqual([...(signatures ?? [])].toSorted(), expected, `${where}: the rows are not those of one bank`)
    const before = rows[at - 1]
    // The link to the block before proves that coverage has no gap; it also excludes two blocks of one slot.
    if (before !== undefined)
      assert.deepEqual([before[3], before[4]], [parentSlot, parentBlockhash], `${where}: the parent is missing`)
    const isFinal = Number(slot) <= Number(finalizedSlot)
    assert.equal(commitment, isFinal ? 'finalized' : 'confirmed', where)
    if (isFinal) assert.equal(blockhash, entry.final?.blockhash, `${where}: not the final bank`)
  })
  const last = rows.at(-1) as SnapshotRow
  assert.equal(last[3], last[1], 'coverage is ahead of the rows')
  return true
}
