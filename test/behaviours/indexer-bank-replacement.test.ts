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
import { startFakeNode } from '../faults/fake-node.ts'
import { startRig } from '../faults/upstreams-rig.ts'
import { openEmbedded } from '../support/indexer/truth-engines.ts'

const { SLOT_CONFIRMED, SLOT_DEAD, SLOT_FINALIZED } = SlotStatus
const CHAIN = makeTestChain({ seed: 3, blocks: 8, transactionsPerBlock: 4 })
const at = (index: number): ChainBlock => CHAIN[index] as ChainBlock
/** Another bank of the same slot, with fewer transactions. */
const rivalOf = (block: ChainBlock): ChainBlock => ({
  ...block,
  blockhash: `${block.blockhash.slice(0, -4)}cdef`,
  transactions: block.transactions.slice(0, 1),
})

/** The indexer at a node that sends what the test says, and returns the blocks of CHAIN as final. */
async function openTest() {
  await using opening = new AsyncDisposableStack()
  const node = opening.use(await startFakeNode(at(7).slot))
  const calls: GrpcCall[] = []
  node.onGrpcCall = (call) => {
    call.sendHeaders()
    call.onMessage(() => void (calls.includes(call) || calls.push(call)))
  }
  node.respond = (method, params) => {
    const [from, to] = params as [number, number]
    if (method === 'getBlocks')
      return { result: JSON.stringify(CHAIN.map(({ slot }) => slot).filter((slot) => slot >= from && slot <= to)) }
    const block = CHAIN.find(({ slot }) => slot === from)
    return method === 'getBlock' && block !== undefined ? { result: JSON.stringify(blockJsonOf(block)) } : undefined
  }
  const nodes = [{ name: 'n', rpc: node.rpc, grpc: node.grpc }]
  const rig = opening.use(await startRig({ clock: systemClock, nodes }))
  const registry = opening.use(createMetricsRegistry())
  let log = ''
  const engine = opening.use(await openEmbedded())
  const ingest = { batchBlocks: 1, batchMs: 20, heldMax: 16, fill: { parallel: 4, blocksMax: 64 } }
  const supervisor: IngestSupervisor = opening.use(
    await superviseIngest(
      {
        store: { ...engine.store, rows: { includeVotes: true, includeLogs: true } },
        ingest: { ...ingest, includeAccounts: false },
      },
      {
        upstream: rig.upstreams.shared,
        clock: systemClock,
        random: createSeededRandom(1),
        log: createLogger({ level: 'info', destination: { write: (line: string) => void (log += line) } }),
        metrics: indexerMetrics(registry),
      },
    ),
  )
  await until('the stream is open', () => calls.length === 1)
  const moved = opening.move()
  const query = async (sql: string) => (await engine.queryLive(supervisor, sql)) ?? []
  return {
    node,
    log: () => log,
    metric: (name: string) => registry.value(`sluice_indexer_${name}_total`, {}) ?? 0,
    block: (block: ChainBlock, bankId?: bigint) => void calls.at(-1)?.send(geyserBytesOf(block, bankId)),
    slot({ slot }: ChainBlock, status: SlotStatus, bankId?: bigint) {
      const value = { slot: BigInt(slot), status, ...(bankId === undefined ? {} : { bankId }) }
      calls.at(-1)?.send(encodeMessage(SubscribeUpdateSchema, { updateOneof: { case: 'slot', value } }))
    },
    written: (block: ChainBlock) =>
      until(`slot ${block.slot} is written`, () => supervisor.status().ingest?.headSlot === block.slot),
    /** Slot, blockhash, commitment and number of transactions of every block. */
    rows: async () =>
      (await query('SELECT slot, blockhash, commitment, tx_count FROM blocks ORDER BY slot')).map((row) => [
        ...[Number(row[0]), row[1], row[2], Number(row[3])],
      ]),
    transactions: async () => Number((await query('SELECT count(*) FROM transactions'))[0]?.[0]),
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}

const rowOf = ({ slot, blockhash, transactions }: ChainBlock, commitment: string) => [
  ...[slot, blockhash, commitment, transactions.length],
]

test('a bank that loses changes nothing of the bank that was written, whether it dies before or after', async () => {
  await using on = await openTest()
  on.block(at(0), 10n)
  await on.written(at(0))
  on.slot(at(1), SLOT_DEAD, 12n)
  on.block(at(1), 11n)
  await on.written(at(1))
  on.slot(at(1), SLOT_DEAD, 13n)
  on.slot(at(1), SLOT_FINALIZED, 11n)
  // A late block of the dead bank.
  on.block(rivalOf(at(1)), 12n)
  on.block(at(2), 21n)
  await on.written(at(2))
  assert.deepEqual(await on.rows(), [
    ...[rowOf(at(0), 'finalized'), rowOf(at(1), 'finalized')],
    ...[rowOf(at(2), 'confirmed')],
  ])
  const fetched = on.node.calls.filter(({ method }) => method === 'getBlock')
  assert.deepEqual([on.metric('rewinds'), fetched.length], [0, 0])
})

test('a bank that was written and dies is deleted; the block of another bank takes its place', async () => {
  await using on = await openTest()
  on.block(at(0), 10n)
  on.block(rivalOf(at(1)), 11n)
  await on.written(at(1))
  on.slot(at(1), SLOT_DEAD, 11n)
  await on.written(at(0))
  assert.deepEqual(await on.rows(), [rowOf(at(0), 'confirmed')])
  on.block(at(1), 12n)
  await on.written(at(1))
  assert.deepEqual((await on.rows())[1], rowOf(at(1), 'confirmed'))
})

test('a confirmed block of which another bank is finalized is replaced by that bank, and counted', async () => {
  await using on = await openTest()
  on.block(at(0), 10n)
  on.block(rivalOf(at(1)), 11n)
  on.slot(at(1), SLOT_CONFIRMED, 11n)
  await on.written(at(1))
  assert.deepEqual(await on.rows(), [rowOf(at(0), 'confirmed'), rowOf(rivalOf(at(1)), 'confirmed')])
  // The final bank is named by its id only; its block is fetched.
  on.slot(at(1), SLOT_FINALIZED, 12n)
  await until('it is replaced', () => on.metric('replaced_blocks') === 1)
  on.block(at(2), 20n)
  on.slot(at(2), SLOT_FINALIZED, 20n)
  on.block(at(3), 30n)
  await on.written(at(3))
  const [first, second, third, fourth] = await on.rows()
  assert.deepEqual(
    [first, second, third],
    [at(0), at(1), at(2)].map((block) => rowOf(block, 'finalized')),
  )
  assert.equal(fourth?.[1], at(3).blockhash)
  assert.equal(await on.transactions(), 16)
  assert.match(on.log(), /written blocks from this slot on are replaced/)
})

test('a block from getBlock is compared with the final bank by its blockhash', async () => {
  await using on = await openTest()
  // The first node misleads with a rival that came without an id.
  on.block(at(0), 10n)
  on.block(rivalOf(at(1)))
  await on.written(at(1))
  on.slot(at(1), SLOT_FINALIZED, 77n)
  on.block(at(1), 77n)
  await until('it is replaced', () => on.metric('replaced_blocks') === 1)
  on.block(at(2), 78n)
  await on.written(at(2))
  assert.deepEqual((await on.rows())[1], rowOf(at(1), 'finalized'))
})

test('without bank ids a finalized slot is final, and a dead one is deleted, as before', async () => {
  await using on = await openTest()
  for (const index of [0, 1]) on.block(at(index))
  await on.written(at(1))
  on.slot(at(0), SLOT_FINALIZED)
  on.slot(at(1), SLOT_DEAD)
  await on.written(at(0))
  on.block(at(1))
  await on.written(at(1))
  assert.deepEqual(await on.rows(), [rowOf(at(0), 'finalized'), rowOf(at(1), 'confirmed')])
  assert.deepEqual([on.metric('rewinds'), on.metric('replaced_blocks')], [1, 0])
})

test('a block that no node links to the chain is fetched again with growing delays, not at once', async () => {
  await using on = await openTest()
  on.block(at(0), 10n)
  await on.written(at(0))
  const usual = on.node.respond
  const startedMs = performance.now()
  // A bank of the slot that the next block is not built on.
  const rival = JSON.stringify(blockJsonOf({ ...rivalOf(at(1)), parentBlockhash: rivalOf(at(0)).blockhash }))
  on.node.respond = (method, params, id) => (method === 'getBlock' ? { result: rival } : usual(method, params, id))
  on.block(at(2), 21n)
  const fetches = () => on.node.calls.filter(({ method }) => method === 'getBlock').length
  // Each attempt fetches the parent of the block, and the parent of what it got.
  await until('it was tried four times', () => fetches() >= 8)
  // The delays between them are at least 100, 200 and 400 ms.
  assert.ok(performance.now() - startedMs > 600, 'no delay between the attempts')
  on.node.respond = usual
  await on.written(at(2))
})
