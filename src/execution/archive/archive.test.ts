import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ethBlock, txnHashOf } from '../../../test/support/execution/eth-blocks.ts'
import { crash } from '../../../test/support/process/crash.ts'
import { createManualClock } from '../../core/clock.ts'
import { finish, type WaitingWork } from '../../core/work.ts'
import { idOf } from '../../evm/test-block.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { HeldBlock } from '../rpc/held-block.ts'
import type { BlockContent } from '../source/message.ts'
import { BlockArchive } from './archive.ts'

const MIB = 2 ** 20

function open(folder: string, options: { blocksMax?: number; bytesMax?: number } = {}, clock = createManualClock()) {
  return BlockArchive.open({ folder, blocksMax: 100, bytesMax: 64 * MIB, ...options }, { log: silentLogger, clock })
}

const block = (number: number, txns = 2) => ethBlock({ number, txns, logsPerTxn: 1 }).block

/** The same block number in another proposal. */
function proposal(number: number, variant: number): BlockContent {
  return { ...block(number), id: idOf(number, variant), hash: idOf(number, 0xe0 + variant) }
}

function add(archive: BlockArchive, content: BlockContent): void {
  archive.add(content, new HeldBlock(content, 0))
}

/** Runs work that may wait. */
async function run<Result>(work: WaitingWork<Result>): Promise<Result> {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    await step.value
  }
}

async function loadNumber(archive: BlockArchive, number: number): Promise<HeldBlock | undefined> {
  const entry = archive.byNumber(number)
  return entry && run(archive.load(entry))
}

const bytesOn = (folder: string) =>
  readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)

describe('blocks on disk', () => {
  test('are found by number, hash, id and transaction in a later process, with the same content', async () => {
    using folder = makeTestFolder()
    const written = [1, 2, 3].map((number) => block(number, 20))
    {
      await using archive = await open(folder.path)
      for (const content of written) add(archive, content)
    }
    await using archive = await open(folder.path)
    assert.deepEqual([archive.size, archive.range], [3, { from: 1, to: 3 }])
    for (const content of written) {
      const held = (await loadNumber(archive, content.number)) ?? assert.fail('it is not there')
      const original = new HeldBlock(content, 0)
      assert.deepEqual(held.txnHashes, original.txnHashes)
      assert.deepEqual(held.bloom, original.bloom)
      const [read, wanted] = [finish(held.read()), finish(original.read())]
      assert.deepEqual(read?.receipt(3), wanted?.receipt(3))
      assert.equal(archive.byHash(content.hash), archive.byNumber(content.number))
      assert.equal(archive.byHash(content.id), archive.byNumber(content.number))
      const found = await run(archive.byTxn(txnHashOf(content.number, 7)))
      assert.ok(found.some(({ facts }) => facts.number === content.number))
    }
    assert.deepEqual(await run(archive.byTxn(`0x${'ab'.repeat(32)}`)), [])
    assert.equal(archive.byNumber(4), undefined)
  })

  test('are bounded in number: the oldest are removed, and at least 15 of 16 parts stay', async () => {
    using folder = makeTestFolder()
    await using archive = await open(folder.path, { blocksMax: 32 })
    for (let number = 1; number <= 100; number++) {
      add(archive, block(number))
      await archive.flushed()
      assert.ok(archive.size <= 32, `${archive.size}`)
      if (number > 32) assert.ok(archive.size >= 30, `${archive.size}`)
    }
    assert.equal(archive.range?.to, 100)
    assert.ok(readdirSync(folder.path).length <= 17)
  })

  test('are bounded in bytes', async () => {
    using folder = makeTestFolder()
    await using archive = await open(folder.path, { bytesMax: 64 * 1024 })
    for (let number = 1; number <= 60; number++) {
      // Call data that hardly shrinks.
      const content = ethBlock({ number, txns: 20, logsPerTxn: 1, inputBytes: 200 }).block
      content.payloads.set(randomBytes(2000), content.payloads.length - 2000)
      add(archive, content)
      await archive.flushed()
      assert.ok(archive.bytes <= 64 * 1024, `${archive.bytes}`)
      assert.ok(bytesOn(folder.path) <= 64 * 1024, `${bytesOn(folder.path)} on disk`)
    }
    assert.ok(archive.size > 5 && archive.size < 60, `${archive.size}`)
  })

  test('of several proposals the final one is served, also in a later process', async () => {
    using folder = makeTestFolder()
    {
      await using archive = await open(folder.path)
      for (const variant of [1, 2, 3]) add(archive, proposal(7, variant))
      archive.settle(idOf(7, 2), 'final')
      archive.settle(idOf(7, 2), 'final')
      await archive.flushed()
      assert.equal(archive.byNumber(7)?.facts.id, idOf(7, 2))
    }
    await using archive = await open(folder.path)
    assert.equal(archive.size, 3)
    assert.equal(archive.byNumber(7)?.facts.id, idOf(7, 2))
    assert.equal(archive.highestFinal()?.facts.id, idOf(7, 2))
    assert.equal(archive.byHash(idOf(7, 3))?.facts.id, idOf(7, 3))
  })

  test('a block that the source reports again is not written again', async () => {
    using folder = makeTestFolder()
    await using archive = await open(folder.path)
    add(archive, block(1))
    await archive.flushed()
    const { bytes } = archive
    add(archive, block(1))
    await archive.flushed()
    assert.equal(archive.bytes, bytes)
  })

  for (const [name, other] of [
    ['a block below all', proposal(1, 9)],
    ['another chain id', { ...proposal(8, 9), chainId: 99 }],
  ] as const) {
    test(`are removed when the source has another chain: ${name}`, async () => {
      using folder = makeTestFolder()
      await using archive = await open(folder.path)
      for (const number of [4, 5, 6]) add(archive, block(number))
      archive.settle(idOf(5), 'final')
      await archive.flushed()
      add(archive, other)
      await archive.flushed()
      assert.deepEqual([archive.size, archive.range?.from], [1, other.number])
      assert.ok(await loadNumber(archive, other.number))
    })
  }

  test('are removed when the source has another chain: another final block in the place of a final one', async () => {
    using folder = makeTestFolder()
    await using archive = await open(folder.path)
    for (const number of [4, 5, 6]) add(archive, block(number))
    archive.settle(idOf(5), 'final')
    add(archive, proposal(5, 9))
    archive.settle(idOf(5, 9), 'final')
    add(archive, proposal(6, 9))
    await archive.flushed()
    assert.deepEqual([archive.size, archive.byNumber(6)?.facts.id], [1, idOf(6, 9)])
  })

  test('stay where a proposal is written after another one of its number is final', async () => {
    using folder = makeTestFolder()
    for (const isNewProcess of [false, true]) {
      await using archive = await open(folder.path)
      for (let number = 1; number <= 21; number++) add(archive, block(number))
      if (!isNewProcess) await archive.flushed()
      add(archive, proposal(21, 9))
      archive.settle(idOf(21), 'final')
      add(archive, proposal(21, 8))
      archive.settle(idOf(21, 9), 'rejected')
      await archive.flushed()
      assert.deepEqual([archive.size, archive.range], [23, { from: 1, to: 21 }])
      assert.equal(archive.byNumber(21)?.facts.id, idOf(21))
    }
  })

  test('damage costs blocks and nothing else', async () => {
    using folder = makeTestFolder()
    {
      await using archive = await open(folder.path)
      for (const number of [1, 2, 3]) add(archive, block(number, 50))
    }
    const path = folder.file(readdirSync(folder.path)[0] ?? '')
    const bytes = readFileSync(path)
    bytes[bytes.length - 20] = (bytes[bytes.length - 20] as number) ^ 1
    writeFileSync(path, bytes)
    writeFileSync(folder.file('9999999999.log'), 'something else')
    writeFileSync(folder.file('notes.txt'), 'not a file of the archive')
    await using archive = await open(folder.path)
    assert.equal(archive.size, 3)
    assert.equal(await loadNumber(archive, 3), undefined, 'damaged')
    assert.equal(archive.byNumber(3), undefined, 'not served any more')
    assert.ok(await loadNumber(archive, 2))
    add(archive, block(4))
    await archive.flushed()
    assert.ok(await loadNumber(archive, 4))
  })

  test('a disk that fails is left alone for a while, and used again', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    await using archive = await open(folder.path, { blocksMax: 16 }, clock)
    add(archive, block(1))
    await archive.flushed()
    // The next block needs a new file, and its name is taken by a folder.
    const taken = folder.file('0000000002.log')
    mkdirSync(taken)
    add(archive, block(2))
    await archive.flushed()
    add(archive, block(3))
    await archive.flushed()
    assert.deepEqual([archive.size, archive.skipped], [1, 2])
    rmdirSync(taken)
    clock.advance(10_000)
    add(archive, block(4))
    await archive.flushed()
    assert.deepEqual([archive.size, archive.range], [2, { from: 1, to: 4 }])
  })

  test('a source that is faster than the disk does not pile up blocks', async () => {
    using folder = makeTestFolder()
    await using archive = await open(folder.path, { blocksMax: 1000 })
    const contents = Array.from({ length: 200 }, (_, at) => block(at + 1))
    for (const content of contents) add(archive, content)
    await archive.flushed()
    assert.equal(archive.size, 64)
    assert.equal(archive.skipped, 136)
  })

  test('a process that is killed at any time leaves whole blocks', async () => {
    using folder = makeTestFolder()
    let before = 0
    for (let round = 0; round < 4; round++) {
      const child = fork(join(import.meta.dirname, '../../../test/support/execution/archive-child.ts'), [
        folder.path,
        String(before),
      ])
      let last = before
      child.on('message', (number) => (last = Number(number)))
      const wanted = before + 20 + round * 7
      while (last < wanted) await once(child, 'message')
      await crash(child)
      await using archive = await open(folder.path, { blocksMax: 10_000 })
      assert.ok((archive.range?.to ?? 0) >= last, `reported ${last}, there are ${archive.range?.to}`)
      for (let number = 1; number <= last; number++) assert.equal((await loadNumber(archive, number))?.number, number)
      before = archive.range?.to ?? 0
    }
  })
})
