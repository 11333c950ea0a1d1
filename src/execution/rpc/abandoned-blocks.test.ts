import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ethBlock, txnHashOf } from '../../../test/support/execution/eth-blocks.ts'
import type { Stage } from '../../contract/stream-events.ts'
import { createManualClock } from '../../core/clock.ts'
import type { WaitingWork } from '../../core/work.ts'
import { idOf } from '../../evm/test-block.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { Views } from '../api/views.ts'
import { BlockArchive } from '../archive/archive.ts'
import { search } from '../history/search.ts'
import { figuresOf, openTestHistory, recordOf } from '../history/test-history.ts'
import { MessageHandler, type MessageHandlerDeps } from '../stream/message-handler.ts'
import { BlockStore } from './block-store.ts'
import { Blocks } from './blocks.ts'
import { countingMeter } from './test-rpc.ts'

type Hub = MessageHandlerDeps['hub']

const ignore = (): void => {}
const hub: Hub = { publish: ignore, publishEvents: ignore, publishWarning: ignore, onRawEventsActive: ignore }

/** The views, memory and archive of the service, fed with messages of a source. */
async function createRig(archive?: BlockArchive, blocksMax = 64) {
  const views = new Views()
  const memory = new BlockStore({ blocksMax, bytesMax: 2 ** 30 }, { stageOf: (id) => views.lifecycle.stageOf(id) })
  const blocks = new Blocks(memory, archive)
  const history = await openTestHistory()
  const metrics = { publish: { observe: ignore }, finalize: { observe: ignore }, ringRestarts: { inc: ignore } }
  const messageHandler = new MessageHandler({
    hub,
    views,
    blocks,
    history,
    liveness: { beat: ignore },
    metrics: metrics as unknown as MessageHandlerDeps['metrics'],
    log: silentLogger,
  })
  const enter = (number: number, variant: number, stage: Stage): void => {
    const record = recordOf(number, stage, variant)
    messageHandler.handle([{ kind: 'lifecycle', change: record, record }])
  }
  return {
    blocks,
    history,
    views,
    /** Its figures, at its end. */
    fold(number: number, variant: number) {
      const { contention, conflicts } = figuresOf(number, variant)
      messageHandler.handle([
        { kind: 'tps', tps: 100, blockNumber: number, id: idOf(number, variant) },
        { kind: 'contention', data: contention, conflicts },
      ])
    },
    /** A proposal of a number with the first transactions of block `of`, executed to its end. */
    execute(of: number, variant: number, txns = 2, number = of) {
      const { block } = ethBlock({ number: of, txns, logsPerTxn: 0 })
      const content = { ...block, number, id: idOf(number, variant), hash: idOf(number, 0xe0 + variant) }
      messageHandler.handle([{ kind: 'block', block: content }])
      enter(number, variant, 'Proposed')
    },
    enter,
    forget: (number: number, variant: number) =>
      messageHandler.handle([{ kind: 'forgotten', ids: [idOf(number, variant)] }]),
  }
}

async function run<Result>(work: WaitingWork<Result>): Promise<Result> {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    await step.value
  }
}

const blockOfTxn = async (blocks: Blocks, number: number, index: number) =>
  (await run(blocks.byTxn(txnHashOf(number, index), countingMeter())))?.held.id

const openArchive = (folder: string) =>
  BlockArchive.open({ folder, blocksMax: 100, bytesMax: 2 ** 26 }, { log: silentLogger, clock: createManualClock() })

describe('an abandoned proposal', () => {
  test('is not served by number, by transaction or as the latest block, but by hash', async () => {
    const rig = await createRig()
    await using _history = rig.history
    const { blocks } = rig
    rig.execute(4, 1)
    rig.execute(5, 1, 3)
    assert.equal(await blockOfTxn(blocks, 5, 2), idOf(5, 1))
    rig.enter(5, 1, 'Rejected')
    assert.equal(blocks.byNumber(5), undefined)
    assert.equal(await blockOfTxn(blocks, 5, 2), undefined)
    assert.deepEqual(blocks.ranges, [{ from: 4, to: 4 }])
    assert.equal(blocks.latest?.id, idOf(4, 1))
    assert.equal(blocks.byHash(idOf(5, 1))?.id, idOf(5, 1))
  })

  test('has no figures by number, also where the finalized one was not seen', async () => {
    const rig = await createRig()
    await using _history = rig.history
    rig.execute(5, 1)
    rig.fold(5, 1)
    assert.equal(rig.views.contentionOf(5)?.block_id, idOf(5, 1))
    rig.enter(5, 1, 'Rejected')
    assert.deepEqual([rig.views.contentionOf(5), rig.views.recentBlocks(9)], [undefined, []])
  })

  test('does not hide the final one, also after the stages of both are forgotten', async () => {
    const rig = await createRig()
    await using _history = rig.history
    rig.execute(5, 1)
    rig.execute(5, 2, 3)
    rig.enter(5, 1, 'Finalized')
    rig.enter(5, 2, 'Rejected')
    for (const variant of [1, 2]) rig.forget(5, variant)
    assert.equal(rig.blocks.byNumber(5)?.id, idOf(5, 1))
    assert.equal(await blockOfTxn(rig.blocks, 5, 0), idOf(5, 1))
    assert.equal(await blockOfTxn(rig.blocks, 5, 2), undefined)
    // The same block is executed again after a restart of the node.
    rig.execute(5, 2, 3)
    assert.equal(await blockOfTxn(rig.blocks, 5, 2), undefined)
  })

  test('is one whose number has another final block, also without a rejection', async () => {
    const rig = await createRig()
    await using _history = rig.history
    rig.execute(5, 1)
    rig.enter(5, 1, 'Finalized')
    rig.execute(5, 2, 3)
    assert.equal(await blockOfTxn(rig.blocks, 5, 2), undefined)
    assert.equal(rig.blocks.latest?.id, idOf(5, 1))
  })

  test('is served again once it is executed again, as after a failure of the node', async () => {
    const rig = await createRig()
    await using _history = rig.history
    rig.execute(4, 1)
    rig.execute(5, 1, 3)
    rig.enter(5, 1, 'Rejected')
    rig.execute(5, 1, 3)
    assert.equal(rig.blocks.byNumber(5)?.id, idOf(5, 1))
    assert.equal(rig.blocks.latest?.id, idOf(5, 1))
    assert.equal(await blockOfTxn(rig.blocks, 5, 2), idOf(5, 1))
    assert.deepEqual(rig.blocks.ranges, [{ from: 4, to: 5 }])
    rig.enter(5, 1, 'Finalized')
    assert.equal(rig.blocks.highest(['Finalized'])?.id, idOf(5, 1))
    assert.equal(rig.history.proposals.byId(idOf(5, 1))?.record?.current_stage, 'Finalized')
  })

  test('does not hide a transaction that is also in a block of another number', async () => {
    const rig = await createRig()
    await using _history = rig.history
    rig.execute(5, 1)
    // The second proposal has the transactions of block 5 one number later.
    rig.execute(5, 2, 2, 6)
    rig.enter(6, 2, 'Rejected')
    assert.equal(await blockOfTxn(rig.blocks, 5, 1), idOf(5, 1))
  })

  test('is not found by a search for one of its transactions or its number', async () => {
    const rig = await createRig()
    await using _history = rig.history
    rig.execute(5, 1, 3)
    rig.enter(5, 1, 'Rejected')
    const deps = { history: rig.history, blocks: rig.blocks, names: new Map<string, string>() }
    const find = async (text: string) => (await run(search(text, deps, countingMeter()))).results
    assert.deepEqual(await find(txnHashOf(5, 2)), [])
    assert.deepEqual(await find('5'), [])
    assert.equal((await find(idOf(5, 1))).length, 1)
  })

  test('is not served from disk, also in a later process', async () => {
    using folder = makeTestFolder()
    {
      await using archive = await openArchive(folder.path)
      const rig = await createRig(archive, 1)
      await using _history = rig.history
      rig.execute(5, 1, 3)
      rig.execute(6, 1, 2)
      rig.execute(6, 2, 3)
      rig.enter(5, 1, 'Rejected')
      rig.enter(6, 1, 'Finalized')
      await archive.flushed()
      await check(rig.blocks)
      // Not a sign of another chain: the archive still has a block of this number.
      rig.execute(5, 2)
      await archive.flushed()
      assert.equal(archive.size, 4)
      rig.enter(5, 2, 'Rejected')
      rig.execute(7, 1)
      await archive.flushed()
    }
    await using archive = await openArchive(folder.path)
    const rig = await createRig(archive)
    await using _history = rig.history
    await check(rig.blocks)

    async function check(blocks: Blocks): Promise<void> {
      assert.equal(blocks.byNumber(5), undefined)
      assert.equal(await blockOfTxn(blocks, 5, 2), undefined)
      assert.equal(blocks.byNumber(6)?.id, idOf(6, 1))
      assert.equal(await blockOfTxn(blocks, 6, 1), idOf(6, 1))
      assert.equal(await blockOfTxn(blocks, 6, 2), undefined)
      assert.equal(blocks.byHash(idOf(6, 2))?.id, idOf(6, 2))
      assert.equal(blocks.range?.from, 6)
    }
  })
})
