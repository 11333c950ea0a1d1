import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../src/core/random.ts'
import { type IngestSupervisor, superviseIngest } from '../../src/indexer/ingest/supervise.ts'
import { makeTestChain } from '../../src/indexer/ingest/test-blocks.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import type { GrpcCall } from '../../src/platform/grpc/call.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { createLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import type { ChainBlock } from '../../src/solana/chain-block.ts'
import { SlotStatus, SubscribeUpdateSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { geyserBytesOf } from '../../src/solana/geyser/test-block.ts'
import { blockJsonOf } from '../../src/solana/json/test-block.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { startRig } from '../faults/upstreams-rig.ts'
import { openEmbedded } from '../support/indexer/truth-engines.ts'

const CHAIN = makeTestChain({ seed: 5, blocks: 24, transactionsPerBlock: 2 })
const at = (index: number): ChainBlock => CHAIN[index] as ChainBlock
const errorOf = (code: number, message: string) => ({ error: JSON.stringify({ code, message }) })
const prunedError = (slot: number, first: number) =>
  errorOf(-32001, `Block ${slot} cleaned up, does not exist on node. First available block: ${first}`)

/** Makes a node serve the blocks of CHAIN that `has` selects; for the others it sends `lack`. */
function serve(
  node: FakeNode,
  has: (block: ChainBlock) => boolean,
  lack: (slot: number, first: number) => ReturnType<FakeNode['respond']> = prunedError,
): void {
  const blocks = CHAIN.filter(has)
  const first = blocks[0]?.slot ?? 0
  node.respond = (method, params) => {
    const [from, to] = params as [number, number]
    if (method === 'getFirstAvailableBlock') return { result: String(first) }
    if (method === 'getBlocks')
      return { result: JSON.stringify(blocks.map(({ slot }) => slot).filter((slot) => slot >= from && slot <= to)) }
    if (method !== 'getBlock') return undefined
    const block = blocks.find(({ slot }) => slot === from)
    return block === undefined ? lack(from, first) : { result: JSON.stringify(blockJsonOf(block)) }
  }
}

/** The indexer at two nodes, of which the first one has the stream. */
async function openTest() {
  await using opening = new AsyncDisposableStack()
  const main = opening.use(await startFakeNode(at(23).slot))
  const other = opening.use(await startFakeNode(at(23).slot))
  const calls: GrpcCall[] = []
  main.onGrpcCall = (call) => {
    call.sendHeaders()
    call.onMessage(() => void (calls.includes(call) || calls.push(call)))
  }
  const nodes = [
    { name: 'main', rpc: main.rpc, grpc: main.grpc },
    { name: 'archive', rpc: other.rpc },
  ]
  const rig = opening.use(await startRig({ clock: systemClock, nodes }))
  const registry = opening.use(createMetricsRegistry())
  const metrics = indexerMetrics(registry)
  const engine = opening.use(await openEmbedded())
  const log: string[] = []
  let supervisor: IngestSupervisor | undefined
  opening.defer(() => supervisor?.[Symbol.asyncDispose]())
  const status = () => supervisor?.status().ingest
  const moved = opening.move()
  return {
    ...{ main, other, log, status },
    async start() {
      const streams = calls.length
      const fill = { parallel: 4, blocksMax: 8 }
      supervisor = await superviseIngest(
        {
          store: { ...engine.store, rows: { includeVotes: true, includeLogs: true } },
          ingest: { batchBlocks: 4, batchMs: 20, heldMax: 16, fill, includeAccounts: false },
        },
        {
          upstream: rig.upstreams.shared,
          clock: systemClock,
          random: createSeededRandom(1),
          log: createLogger({ level: 'info', destination: { write: (line: string) => void log.push(line) } }),
          metrics,
        },
      )
      await until('the stream is open', () => calls.length > streams)
    },
    async stop() {
      await supervisor?.[Symbol.asyncDispose]()
      supervisor = undefined
    },
    block: (block: ChainBlock) => void calls.at(-1)?.send(geyserBytesOf(block)),
    finalized({ slot }: ChainBlock) {
      const value = { slot: BigInt(slot), status: SlotStatus.SLOT_FINALIZED }
      calls.at(-1)?.send(encodeMessage(SubscribeUpdateSchema, { updateOneof: { case: 'slot', value } }))
    },
    written: (block: ChainBlock) =>
      until(`slot ${block.slot} is written`, () => status()?.headSlot === block.slot, 30_000),
    missing: () => registry.value('sluice_indexer_missing_slots_total', {}),
    faults: () => registry.value('sluice_indexer_block_faults_total', {}),
    restarts: () => registry.value('sluice_indexer_store_restarts_total', {}),
    /** Gaps and their slots as `coverage` reports them, and the slots of all blocks. */
    async tables() {
      assert.ok(supervisor !== undefined)
      const sql = "SELECT open_gaps, missing_slots, from_slot FROM coverage WHERE table_name = 'blocks'"
      const [coverage] = (await engine.queryLive(supervisor, sql)) ?? []
      const rows = (await engine.queryLive(supervisor, 'SELECT slot FROM blocks ORDER BY slot')) ?? []
      return { gaps: Number(coverage?.[0]), missing: coverage?.[1], slots: rows.map(([slot]) => Number(slot)) }
    },
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}

const slotsOf = (blocks: readonly ChainBlock[]) => blocks.map(({ slot }) => slot)
const gapBetween = (before: ChainBlock, after: ChainBlock) => `${before.slot + 1}-${after.parentSlot}`
const reports = (log: readonly string[]) => log.filter((line) => line.includes('coverage reports them as missing'))

/** Writes the first three blocks, then comes back at block 20. */
async function comeBack(on: Awaited<ReturnType<typeof openTest>>): Promise<void> {
  for (const node of [on.main, on.other]) serve(node, () => true)
  await on.start()
  for (const block of CHAIN.slice(0, 3)) on.block(block)
  await on.written(at(2))
  await on.stop()
}

test('blocks that every node pruned during a long stop are reported as missing once, and the tables continue after them', async () => {
  await using on = await openTest()
  await comeBack(on)
  serve(on.main, ({ slot }) => slot >= at(12).slot)
  serve(on.other, ({ slot }) => slot >= at(10).slot)
  await on.start()
  on.block(at(20))
  await on.written(at(20))
  const gap = gapBetween(at(2), at(10))
  const expected = { gaps: 1, missing: [gap], slots: slotsOf([...CHAIN.slice(0, 3), ...CHAIN.slice(10, 21)]) }
  assert.deepEqual(await on.tables(), expected)
  assert.equal(on.missing(), at(10).parentSlot - at(2).slot)
  assert.equal(on.status()?.waitsFor, undefined)
  assert.match(reports(on.log).join(), new RegExp(`sluice indexer backfill ${gap.replace('-', ' ')}`))
  await on.stop()
  await on.start()
  on.block(at(21))
  await on.written(at(21))
  assert.deepEqual(await on.tables(), { ...expected, slots: [...expected.slots, at(21).slot] })
  assert.equal(reports(on.log).length, 1)
})

test('a block that another node still has is taken from there, and nothing is missing', async () => {
  await using on = await openTest()
  await comeBack(on)
  serve(on.main, ({ slot }) => slot >= at(19).slot)
  await on.start()
  on.block(at(20))
  await on.written(at(20))
  assert.deepEqual(await on.tables(), { gaps: 0, missing: [], slots: slotsOf(CHAIN.slice(0, 21)) })
})

test('two nodes that kept different parts leave only what neither has', async () => {
  await using on = await openTest()
  await comeBack(on)
  serve(on.main, ({ slot }) => slot >= at(15).slot)
  serve(
    on.other,
    ({ slot }) => slot >= at(6).slot && slot <= at(9).slot,
    (slot) =>
      slot < at(6).slot
        ? prunedError(slot, at(6).slot)
        : errorOf(-32009, `Slot ${slot} was skipped, or missing in long-term storage`),
  )
  await on.start()
  on.block(at(20))
  on.finalized(at(20))
  await on.written(at(20))
  const { missing, slots } = await on.tables()
  assert.deepEqual(missing, [gapBetween(at(2), at(6)), gapBetween(at(9), at(15))])
  assert.deepEqual(slots, slotsOf([...CHAIN.slice(0, 3), ...CHAIN.slice(6, 10), ...CHAIN.slice(15, 21)]))
})

test('while a node does not respond its blocks are not given up', async () => {
  await using on = await openTest()
  await comeBack(on)
  serve(on.main, ({ slot }) => slot >= at(19).slot)
  on.other.fault = 'reset'
  await on.start()
  on.block(at(20))
  await until(
    'it waits for the other node',
    () => on.log.filter((line) => line.includes('gap not filled yet')).length > 2,
    30_000,
  )
  assert.equal(on.status()?.headSlot, at(2).slot)
  on.other.fault = undefined
  await on.written(at(20))
  assert.deepEqual([(await on.tables()).gaps, reports(on.log)], [0, []])
})

test('a block that exists and that every node calls skipped or missing is waited for until its child is final', async () => {
  await using on = await openTest()
  await comeBack(on)
  const jumped = (slot: number) =>
    errorOf(-32007, `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`)
  for (const node of [on.main, on.other]) serve(node, ({ slot }) => slot <= at(2).slot || slot >= at(8).slot, jumped)
  await on.start()
  on.block(at(8))
  await until('it waits', () => on.log.some((line) => line.includes('exists, and no node has it')), 30_000)
  assert.equal(on.status()?.headSlot, at(2).slot)
  on.finalized(at(8))
  await on.written(at(8))
  assert.deepEqual((await on.tables()).missing, [gapBetween(at(2), at(8))])
})

test('the rate limit of a provider, which has the code of a skipped slot, is no proof', async () => {
  await using on = await openTest()
  await comeBack(on)
  const limited = () => errorOf(-32007, '50/second request limit reached')
  for (const node of [on.main, on.other]) serve(node, ({ slot }) => slot >= at(8).slot, limited)
  await on.start()
  on.finalized(at(8))
  on.block(at(8))
  await until('it waits', () => on.log.filter((line) => line.includes('gap not filled yet')).length > 1, 30_000)
  assert.equal(on.status()?.headSlot, at(2).slot)
  for (const node of [on.main, on.other]) serve(node, () => true)
  await on.written(at(8))
  assert.equal((await on.tables()).gaps, 0)
})

const MALFORMED = [
  '{"jsonrpc":"2.0","id":1,"result":[]}',
  '{"jsonrpc":"2.0","id":1,"result":{"blockhash":1}}',
  `{"jsonrpc":"2.0","id":1,"result":${JSON.stringify(blockJsonOf(at(5))).replace(/"amount":"\d+"/, '"amount":"all"')}}`,
]

test('a block that one node sends malformed is taken from the other one, and the database process stays', async () => {
  for (const text of MALFORMED) {
    await using on = await openTest()
    await comeBack(on)
    /** The node that is asked for the block first. */
    let broken: FakeNode | undefined
    for (const node of [on.main, on.other]) {
      const { respond } = node
      node.respond = (method, params, id) => {
        if (method !== 'getBlock' || (params as [number])[0] !== at(5).slot) return respond(method, params, id)
        broken ??= node
        return broken === node ? { status: 200, body: text } : respond(method, params, id)
      }
    }
    await on.start()
    on.block(at(10))
    await on.written(at(10))
    assert.deepEqual(await on.tables(), { gaps: 0, missing: [], slots: slotsOf(CHAIN.slice(0, 11)) })
    assert.deepEqual([on.restarts(), on.faults()], [0, 1], text.slice(0, 60))
    await on.stop()
  }
})

test('a block that no node sends well-formed is waited for, and the database process stays', async () => {
  await using on = await openTest()
  await comeBack(on)
  for (const node of [on.main, on.other]) {
    const { respond } = node
    node.respond = (method, params, id) =>
      method === 'getBlock' ? { status: 200, body: MALFORMED[1] ?? '' } : respond(method, params, id)
  }
  await on.start()
  on.block(at(10))
  await until('it waits', () => on.log.filter((line) => line.includes('gap not filled yet')).length > 2, 30_000)
  assert.match(on.status()?.waitsFor?.message ?? on.log.join(), /cannot be decoded/)
  assert.deepEqual([on.restarts(), on.status()?.headSlot], [0, at(2).slot])
  for (const node of [on.main, on.other]) serve(node, () => true)
  await on.written(at(10))
  assert.equal((await on.tables()).gaps, 0)
})
