import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createSeededRandom } from '../../src/core/random.ts'
import { headerJson } from '../../src/evm/eth-json.ts'
import { decodeEvent, type ExecEvent } from '../../src/evm/event/exec-event.ts'
import { BlockFold } from '../../src/evm/fold/block.ts'
import { createFoldLog, type FoldLog } from '../../src/evm/fold/test-fold.ts'
import { RingFollower } from '../../src/evm/ring/follow.ts'
import { assembleBlock, type DecodedBlock, receiptOf, transactionOf } from '../../src/evm/test-eth-block.ts'
import { startEvmNodeSource } from '../../src/execution/source/evm-node/source.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { openRingFile } from '../../src/platform/ring-file/reader.ts'
import { createLogger } from '../../src/platform/telemetry/logger.ts'
import { deploymentOf, type EvmNode, HOT_COUNTER, OWN_SLOT, startEvmNode } from '../support/execution/evm-node.ts'

const log = createLogger({ level: 'silent' })
const GAS = '0x100000'

type Receipt = Record<string, unknown> & { contractAddress: string; logs: unknown[] }

/** The contracts of the tests, deployed in one block, and an account that calls them. */
async function prepare(node: EvmNode): Promise<{ accounts: string[]; hot: string; own: string }> {
  const accounts = await node.call<string[]>('eth_accounts')
  const hashes: string[] = []
  for (const [at, code] of [HOT_COUNTER, OWN_SLOT].entries()) {
    const from = accounts[at]
    hashes.push(await node.call('eth_sendTransaction', { from, data: deploymentOf(code), gas: GAS }))
  }
  await node.call('evm_mine')
  const receipts = await Promise.all(hashes.map((hash) => node.call<Receipt>('eth_getTransactionReceipt', hash)))
  const [hot = '', own = ''] = receipts.map(({ contractAddress }) => contractAddress)
  return { accounts, hot, own }
}

/** Every account calls the contract; then a block is mined. */
async function callByAll(node: EvmNode, accounts: readonly string[], to: string, value = '0x0'): Promise<string[]> {
  const hashes: string[] = []
  for (const from of accounts) hashes.push(await node.call('eth_sendTransaction', { from, to, value, gas: GAS }))
  await node.call('evm_mine')
  return hashes
}

/** Reads and folds the ring of the source as the service does. */
function createReader(
  path: string,
): { log: FoldLog; blocks: DecodedBlock[]; poll(): void; gaps(): number } & Disposable {
  const reading = { start: 'oldest', checkMs: 0, reader: { abandonedMs: 100 } } as const
  const follower = new RingFollower(() => openRingFile(path), reading)
  const reported = createFoldLog()
  const fold = new BlockFold({ seed: 1 }, reported.sink)
  const blocks: DecodedBlock[] = []
  let events: ExecEvent[] = []
  let gaps = 0
  return {
    log: reported,
    blocks,
    gaps: () => gaps,
    poll() {
      for (let polls = 0; polls < 100; polls++) {
        const result = follower.poll(performance.now())
        if (result.kind === 'opened') assert.equal(result.previousSeqno, undefined, 'the ring is never replaced')
        if (result.kind === 'gap') {
          gaps += 1
          fold.gap()
        }
        if (result.kind !== 'events' || follower.batch === undefined) {
          if (result.kind !== 'opened' && result.kind !== 'gap') return
          continue
        }
        fold.fold(follower.batch)
        for (let at = 0; at < follower.batch.count; at++) {
          const decoded = decodeEvent(follower.batch, at)
          assert(decoded.ok, decoded.ok ? '' : decoded.reason)
          if (decoded.event.name === 'BLOCK_START') events = []
          events.push(decoded.event)
          if (decoded.event.name === 'BLOCK_END') blocks.push(assembleBlock(events) ?? assert.fail('not whole'))
        }
      }
    },
    [Symbol.dispose]: () => follower[Symbol.dispose](),
  }
}

describe('an EVM node as a source', () => {
  for (const trace of ['prestate', 'struct-logs'] as const) {
    test(`${trace}: reports contention for a shared contract and none for separate ones, and returns JSON as the node sent it`, async () => {
      using folder = makeTestFolder()
      await using node = await startEvmNode({ hasTracers: trace === 'prestate' })
      const { accounts, hot, own } = await prepare(node)
      await using source = await startEvmNodeSource(
        { url: node.url, path: folder.file('ring'), pollMs: 20 },
        { log, clock: systemClock, random: createSeededRandom(1) },
      )
      using reader = createReader(source.path)
      const saw = (count: number) =>
        until(
          `${count} blocks are folded (${source.status().failure ?? 'no failure'})`,
          () => {
            reader.poll()
            return reader.log.contention.length >= count
          },
          20_000,
        )
      await saw(1)
      await callByAll(node, accounts, hot)
      await saw(2)
      await callByAll(node, accounts, own)
      await saw(3)
      const [, hotBlock, ownBlock] = reader.log.contention.map(({ data, extras }) => ({ ...data, ...extras }))
      assert.deepEqual(hotBlock?.top_contended_slots, [
        { address: hot, slot: `0x${'0'.repeat(64)}`, txn_count: 12, access_count: 12 },
      ])
      assert.deepEqual(
        [hotBlock?.contended_slot_count, hotBlock?.contended_with_writer, hotBlock?.depth, hotBlock?.total_txn_count],
        [1, 1, 12, 12],
      )
      assert.deepEqual([ownBlock?.total_unique_slots, ownBlock?.contended_slot_count, ownBlock?.depth], [12, 0, 1])
      assert.deepEqual(reader.log.tps, [undefined, undefined, 2 + 12 + 6])
      assert.equal(source.status().trace, trace)
      // The node sends no times, and none are invented.
      assert.deepEqual(
        [hotBlock?.block_wall_time_ns, hotBlock?.total_tx_time_ns, hotBlock?.parallel_efficiency_pct],
        [0, 0, 0],
      )

      const block = reader.blocks[1] ?? assert.fail()
      assert.equal(block.txns.length, 12)
      const given = await node.call<Record<string, unknown>>('eth_getBlockByHash', block.end.eth_block_hash, true)
      for (const [name, value] of Object.entries(headerJson(block))) {
        if (name in given && name !== 'totalDifficulty') assert.deepEqual(value, given[name], name)
      }
      const txn = (given['transactions'] as Record<string, unknown>[])[3] ?? assert.fail()
      const made = transactionOf(block, 3)
      for (const name of Object.keys(txn)) assert.deepEqual(made[name], txn[name], name)
      const receipt = await node.call<Receipt>('eth_getTransactionReceipt', txn['hash'])
      const madeReceipt = receiptOf(block, 3)
      for (const name of [
        'status',
        'gasUsed',
        'cumulativeGasUsed',
        'logsBloom',
        'effectiveGasPrice',
        'contractAddress',
      ]) {
        assert.deepEqual(madeReceipt[name], receipt[name], name)
      }
      assert.equal((madeReceipt['logs'] as unknown[]).length, 1)
      assert.equal(receipt.logs.length, 1)
    })
  }

  test('follows a reorganisation: records the new branch, and rejects the old proposal once the other is final', async () => {
    using folder = makeTestFolder()
    await using node = await startEvmNode()
    const { accounts, hot } = await prepare(node)
    const before = await node.call<string>('evm_snapshot')
    await callByAll(node, accounts.slice(0, 2), hot)
    await using source = await startEvmNodeSource(
      { url: node.url, path: folder.file('ring'), pollMs: 20 },
      { log, clock: systemClock, random: createSeededRandom(1) },
    )
    using reader = createReader(source.path)
    const poll = (): boolean => {
      reader.poll()
      return true
    }
    await until('the first branch is seen', () => poll() && reader.blocks.length === 1)
    await node.call('evm_revert', before)
    await callByAll(node, accounts.slice(2, 5), hot)
    await callByAll(node, accounts.slice(2, 4), hot)
    await until('the second branch is seen', () => poll() && reader.blocks.length >= 3)
    const [old, again, next] = reader.blocks
    assert.equal(again?.start.number, old?.start.number)
    assert.notEqual(again?.end.eth_block_hash, old?.end.eth_block_hash)
    assert.equal(next?.start.parent_eth_hash, again?.end.eth_block_hash)
    assert.deepEqual(
      reader.blocks.map(({ txns }) => txns.length),
      [2, 3, 2],
    )
    // This node reports its newest block as final at once, possibly also one of the abandoned branch.
    const stagesOf = (hash: string | undefined) =>
      reader.log.lifecycle.filter(({ block_hash }) => block_hash === hash).map(({ to_stage }) => to_stage)
    await until('the new branch is final', () => poll() && stagesOf(next?.end.eth_block_hash).includes('Finalized'))
    // The node verifies what it finalizes, so a final block is complete and no longer tracked as active.
    assert.equal(stagesOf(next?.end.eth_block_hash).at(-1), 'Verified')
  })

  test('retries an unreachable node, and reports skipped blocks as a gap of the ring', async () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    const deps = { log, clock: systemClock, random: createSeededRandom(1) }
    await using gone = await startEvmNodeSource(
      { url: 'http://127.0.0.1:9', path: folder.file('gone'), pollMs: 20 },
      deps,
    )
    await until('the failure is reported', () => gone.status().failure !== undefined)
    assert.match(gone.status().failure ?? '', /^eth_chainId: no connection/)

    await using node = await startEvmNode()
    const { accounts, own } = await prepare(node)
    await using source = await startEvmNodeSource({ url: node.url, path, pollMs: 50, behindMax: 4 }, deps)
    using reader = createReader(path)
    const poll = (): boolean => {
      reader.poll()
      return true
    }
    await until('the first block is seen', () => poll() && reader.blocks.length === 1)
    for (let block = 0; block < 10; block++) await node.call('evm_mine')
    // Depending on the polls, either all blocks were read, or some were skipped.
    await callByAll(node, accounts, own)
    await until('the head is seen', () => poll() && reader.blocks.at(-1)?.txns.length === 12)
    assert.equal(reader.gaps() > 0, source.status().skippedBlocks > 0)
    assert.deepEqual(reader.log.dropped, [])
  })
})
