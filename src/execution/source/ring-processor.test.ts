import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { recordedDataFolder, skipWithoutRecordedData } from '../../../test/recorded-data.ts'
import type { RawEvent } from '../../contract/stream-events.ts'
import { ExecRecorder } from '../../evm/event/recorder.ts'
import { EVENT } from '../../evm/event/type.ts'
import { type OpenedRing, RingFollower } from '../../evm/ring/follow.ts'
import { createSmallRing, SMALL_LIMITS, type SmallRing } from '../../evm/ring/test-ring.ts'
import { idOf, recordBlock, recordOpenBlock, type TestBlock } from '../../evm/test-block.ts'
import { openRingFile } from '../../platform/ring-file/reader.ts'
import { BlockStore } from '../rpc/block-store.ts'
import { callMethod, testMethods } from '../rpc/test-rpc.ts'
import { HEADS_MAX } from './evm-node/recorded-heads.ts'
import type { SourceMessage } from './message.ts'
import { type OnBlock, RingProcessor, type RingProcessorOptions } from './ring-processor.ts'

const OPTIONS: RingProcessorOptions = {
  path: 'ring',
  seed: 7,
  topAccessesMs: 5000,
  topAccessesResetMs: 300_000,
  blockBytesMax: 2 ** 26,
}

type Rig = { ring: SmallRing; recorder: ExecRecorder; read: RingProcessor; step(nowMs?: number): SourceMessage[] }

type RigOptions = { large?: boolean; open?: () => OpenedRing | undefined; isOwnRing?: boolean }

function createRig(options: RigOptions = {}): Rig {
  const ring = createSmallRing(
    options.large === true
      ? { capacity: 2 ** 18, payloadBytes: 2 ** 26, windowStepBytes: 2 ** 20 }
      : { capacity: 2 ** 12, payloadBytes: 2 ** 20, windowStepBytes: 2 ** 14 },
  )
  const recorder = new ExecRecorder(ring.writer)
  const open = options.open ?? (() => ({ ...ring.source, isReplaced: () => false, close() {} }))
  const follower = new RingFollower(open, { start: 'oldest', reader: { limits: SMALL_LIMITS } })
  let messages: SourceMessage[] = []
  const { isOwnRing = false } = options
  const onBlock: OnBlock = (content) => void messages.push({ kind: 'block', block: content })
  const read = new RingProcessor(follower, { ...OPTIONS, isOwnRing }, onBlock)
  const step = (nowMs = 0): SourceMessage[] => {
    recorder.flush()
    messages = []
    for (let steps = 0; steps < 10_000; steps++) {
      const result = read.step(nowMs)
      messages.push(...result.messages)
      if (result.isIdle) break
    }
    return messages
  }
  return { ring, recorder, read, step }
}

const block = (number: number, more: Partial<TestBlock> = {}): TestBlock => ({
  number,
  txns: [{ accesses: [{ contract: 1, slot: 1, isModified: true }], logs: 1 }, { accesses: [{ contract: 1, slot: 1 }] }],
  ...more,
})

function kindsOf(messages: readonly SourceMessage[]): string[] {
  return messages.map((message) => {
    if (message.kind === 'lifecycle') return `${message.change.to_stage} ${message.change.block_number}`
    return message.kind
  })
}

const of = <Kind extends SourceMessage['kind']>(messages: readonly SourceMessage[], kind: Kind) =>
  messages.filter((message): message is SourceMessage & { kind: Kind } => message.kind === kind)

describe('reading a ring', () => {
  test('passes on the block first, then messages in the order of the events: stage, TPS, contention; accesses every 5 s', () => {
    const { recorder, step } = createRig()
    recordBlock(recorder, block(1))
    recorder.add('BLOCK_QC', { id: idOf(1), block_number: 1n }, { timeNs: 2_000_000_000_000_000_000n })
    const reported = step()
    assert.deepEqual(kindsOf(reported), [
      'block',
      'Proposed 1',
      'tps',
      'contention',
      'lifecycle-record',
      'Voted 1',
      'top-accesses',
      'progress',
    ])
    const { record } = of(reported, 'lifecycle-record')[0] ?? assert.fail()
    assert.deepEqual([record.gas_used, record.eth_block_hash], [42_000, idOf(1, 0xe)])
    recordBlock(recorder, block(2))
    assert.equal(of(step(4999), 'top-accesses').length, 0)
    assert.equal(of(step(5000), 'top-accesses').length, 1)
    assert.equal(of(step(20_000), 'top-accesses').length, 0, 'nothing has changed')
  })

  test('consensus events of blocks that were never seen are counted', () => {
    const { recorder, step } = createRig()
    recordBlock(recorder, block(9))
    recorder.add('BLOCK_QC', { id: idOf(8), block_number: 8n }, { timeNs: 1n })
    recorder.add('BLOCK_FINALIZED', { id: idOf(7), block_number: 7n }, { timeNs: 2n })
    assert.equal(of(step(), 'progress').at(-1)?.position.stats.unknownBlocks, 2)
  })

  test('a block after one without an end is passed on', () => {
    const { recorder, step } = createRig()
    recordOpenBlock(recorder, block(1))
    recordBlock(recorder, block(2))
    assert.deepEqual(
      of(step(), 'block').map(({ block: { number } }) => number),
      [2],
    )
  })

  test('a block after one that is dropped late, for an event of another block, is passed on', () => {
    const { recorder, step, ring } = createRig()
    recordOpenBlock(recorder, block(1))
    recorder.flush()
    const misplaced = { type: EVENT.TXN_END, payload: new Uint8Array(), timeNs: 5n, accountIndex: 0 }
    ring.writer.record({ ...misplaced, blockSeqno: 2, txnIndex: 0 })
    recordBlock(recorder, block(2))
    assert.deepEqual(
      of(step(), 'block').map(({ block: { number } }) => number),
      [2],
    )
  })

  test('events that were in the ring before it was opened are reported with the time of their recording, later ones without', () => {
    const { recorder, step } = createRig()
    recordBlock(recorder, block(1))
    const timeNs = 1_800_000_000_250_000_000n
    recorder.add('BLOCK_QC', { id: idOf(1), block_number: 1n }, { timeNs })
    assert.equal(of(step(), 'progress').at(-1)?.position.recordedMs, 1_800_000_000_250)
    recorder.add('BLOCK_VERIFIED', { block_number: 1n }, { timeNs })
    assert.equal(of(step(1000), 'progress').at(-1)?.position.recordedMs, undefined)
  })

  test('raw events: only wanted ones, complete from the next block on, with hash and number', () => {
    const { recorder, read, step } = createRig()
    const header = { txn_hash: `0x${'5'.repeat(64)}`, sender: `0x${'6'.repeat(40)}` } as const
    recordOpenBlock(recorder, block(1))
    step()
    read.selectRawEvents({ names: ['TxnLog', 'BlockEnd', 'BlockFinalized'], version: 1 })
    recorder.add('BLOCK_END', { eth_block_hash: idOf(1), gas_used: 1n }, { timeNs: 3n })
    const during = step()
    assert.equal(of(during, 'events').length, 0, 'an incomplete block is not reported')
    assert.deepEqual(of(during, 'raw-events-active')[0]?.names, ['TxnLog', 'BlockEnd', 'BlockFinalized'])
    recordBlock(recorder, block(2, { txns: [{ accesses: [], logs: 2, header }] }))
    recorder.add('BLOCK_FINALIZED', { id: idOf(2), block_number: 2n }, { timeNs: 4n })
    const reported = step()
    const events = of(reported, 'events').flatMap((message) => message.events)
    assert.deepEqual(
      events.map(({ name }) => name),
      ['TxnLog', 'TxnLog', 'BlockEnd', 'BlockFinalized'],
    )
    const [log] = events.map(({ json }) => JSON.parse(json) as RawEvent)
    assert.deepEqual(
      [log?.event_name, log?.block_number, log?.txn_idx, log?.txn_hash, log?.commit_stage, log?.payload.type],
      ['TxnLog', 2, 0, header.txn_hash, 'Proposed', 'TxnLog'],
    )
    assert.deepEqual(events[0]?.header?.addresses?.[0], header.sender)
    const finalized = JSON.parse(events[3]?.json ?? '') as RawEvent
    assert.deepEqual([finalized.block_number, finalized.txn_idx, finalized.commit_stage], [2, null, 'Finalized'])
    // The raw form of an event comes before what was folded from it.
    const order = kindsOf(reported)
    assert(order.indexOf('events') < order.indexOf('tps'))
    assert(order.lastIndexOf('events') < order.indexOf('Finalized 2'))
  })

  test('a gap drops the open block and is reported with its range; the next block is correct', () => {
    const { recorder, ring, step } = createRig()
    recordOpenBlock(recorder, block(1))
    step()
    for (let at = 0; ring.writer.lastSeqno < 3 * 4096; at++) {
      recordBlock(recorder, block(10 + at))
      recorder.flush()
    }
    const reported = step()
    const gap = of(reported, 'gap')[0] ?? assert.fail()
    assert.equal(gap.blocksDropped, 1)
    assert(gap.toSeqno > gap.fromSeqno)
    const position = of(reported, 'progress').at(-1)?.position
    assert.equal(position?.stats.eventsLost, gap.toSeqno - gap.fromSeqno + 1)
    assert.equal((position?.stats.events ?? 0) + (position?.stats.eventsLost ?? 0), ring.writer.lastSeqno)
    recordBlock(recorder, block(99_999))
    const after = of(step(), 'contention')[0]?.data
    assert.deepEqual([after?.block_number, after?.contended_slot_count, after?.total_txn_count], [99_999, 1, 2])
  })

  test('top accesses are delayed until no other message is due, for a limited time', () => {
    const { recorder, read, step } = createRig()
    const kindsAt = (nowMs: number) => kindsOf(read.step(nowMs).messages)
    recordBlock(recorder, block(1))
    step(0)
    for (const [number, dueMs, isReported] of [
      [2, 5000, false],
      [3, 10_200, true],
    ] as const) {
      recordBlock(recorder, block(number))
      recorder.flush()
      const reported = kindsAt(dueMs)
      assert.deepEqual([reported.includes('contention'), reported.includes('top-accesses')], [true, isReported])
      assert.equal(kindsAt(dueMs).includes('top-accesses'), !isReported)
    }
  })

  test('overwritten payloads are reported as a gap', () => {
    const ring = createSmallRing({ capacity: 2 ** 12, payloadBytes: 2 ** 15, windowStepBytes: 2 ** 10 })
    const recorder = new ExecRecorder(ring.writer)
    const follower = new RingFollower(() => ({ ...ring.source, isReplaced: () => false, close() {} }), {
      start: 'oldest',
      reader: { limits: SMALL_LIMITS },
    })
    const read = new RingProcessor(follower, OPTIONS, () => {})
    const stepAll = (): SourceMessage[] => Array.from({ length: 20 }, () => read.step(0).messages).flat()
    recordOpenBlock(recorder, block(1))
    recorder.flush()
    stepAll()
    recorder.add('BLOCK_END', {}, { timeNs: 1n })
    for (let number = 2; number < 40; number++) recordBlock(recorder, block(number))
    recorder.flush()
    const reported = stepAll()
    const gap = of(reported, 'gap')[0] ?? assert.fail('the loss is not reported')
    const { stats } = of(reported, 'progress').at(-1)?.position ?? assert.fail()
    assert(gap.blocksDropped >= 1 && stats.payloadsLost > 0)
    assert(stats.payloadsLost <= gap.toSeqno - gap.fromSeqno + 1)
    const last = of(reported, 'contention').at(-1)?.data
    assert.deepEqual([last?.block_number, last?.contended_slot_count], [39, 1])
  })

  test('a replaced ring resets windows and keeps known blocks', () => {
    const second = createSmallRing({ capacity: 2 ** 12, payloadBytes: 2 ** 20, windowStepBytes: 2 ** 14 })
    const first = createSmallRing({ capacity: 2 ** 12, payloadBytes: 2 ** 20, windowStepBytes: 2 ** 14 })
    let isReplaced = false
    const rig = createRig({
      open: () => ({ ...(isReplaced ? second : first).source, isReplaced: () => isReplaced, close() {} }),
    })
    recordBlock(new ExecRecorder(first.writer), block(1))
    const one = new ExecRecorder(first.writer)
    recordBlock(one, block(1))
    one.flush()
    rig.step()
    const two = new ExecRecorder(second.writer)
    recordBlock(two, block(2))
    two.flush()
    isReplaced = true
    const reported = rig.step(5000)
    assert(kindsOf(reported).indexOf('restart') < kindsOf(reported).indexOf('Proposed 2'))
    assert.equal(of(reported, 'restart')[0]?.previousSeqno, first.writer.lastSeqno)
    assert.equal(of(reported, 'tps')[0]?.tps, null, 'the window starts again')
  })

  test('reports a missing, refused or unreadable ring once, and again when that changes', () => {
    let state: 'missing' | 'refused' | 'unreadable' | 'good' = 'missing'
    const good = createSmallRing({ capacity: 64 })
    const other = createSmallRing({ capacity: 64 })
    other.image.fill(0xab, 8, 40)
    const rig = createRig({
      open: () => {
        if (state === 'missing') return undefined
        if (state === 'unreadable') throw new Error("EACCES: permission denied, open '/x/ring'")
        return { ...(state === 'good' ? good : other).source, isReplaced: () => false, close() {} }
      },
    })
    const messages: SourceMessage[] = []
    let now = 0
    for (state of ['missing', 'refused', 'unreadable', 'good'] as const) {
      // The path is checked once a second; the steps between have the last result.
      for (let steps = 0; steps < 30; steps++) messages.push(...rig.step((now += 100)))
    }
    const failures = of(messages, 'failure').map(({ failure }) => failure)
    assert.deepEqual(
      failures.map((failure) => failure?.code),
      ['missing', 'refused', 'unreadable', undefined],
    )
    assert.match(failures[0]?.message ?? '', /there is no event ring at ring/)
    assert.match(failures[1]?.message ?? '', new RegExp('ab'.repeat(32)), 'the hash found is in the message')
  })

  test('a ring that could not be read for a moment is readable again with its next events', () => {
    const ring = createSmallRing({ capacity: 2 ** 12, payloadBytes: 2 ** 20, windowStepBytes: 2 ** 14 })
    let isBroken = false
    const read: OpenedRing['read'] = (...range) => {
      if (isBroken) throw new Error('EIO: i/o error, read')
      ring.source.read(...range)
    }
    const rig = createRig({ open: () => ({ ...ring.source, read, isReplaced: () => false, close() {} }) })
    rig.step()
    isBroken = true
    const broken = rig.step()
    isBroken = false
    const recorder = new ExecRecorder(ring.writer)
    recordBlock(recorder, block(1))
    recorder.flush()
    const failures = of([...broken, ...rig.step()], 'failure').map(({ failure }) => failure?.code)
    assert.deepEqual(failures, ['unreadable', undefined])
  })

  test('R13: a block of 25,000 transactions', () => {
    const { recorder, step } = createRig({ large: true })
    const txns = Array.from({ length: 25_000 }, (_, at) => ({
      accesses: at % 5000 === 0 ? [{ contract: 1, slot: 1 }] : [],
    }))
    for (const number of [3, 4]) recordBlock(recorder, block(number))
    step()
    recordBlock(recorder, { number: 5, txns })
    const reported = step()
    assert.equal(of(reported, 'tps')[0]?.tps, 2 + 2 + 12_500)
    assert.deepEqual(
      [of(reported, 'contention')[0]?.data.total_txn_count, of(reported, 'contention')[0]?.data.contended_slot_count],
      [25_000, 1],
    )
    const { block: content } = of(reported, 'block')[0] ?? assert.fail()
    const store = new BlockStore({ blocksMax: 4, bytesMax: 2 ** 28 }, { stageOf: () => undefined })
    store.add(content)
    const shown = callMethod(testMethods(store).eth_getBlockByNumber, ['0x5', true]) as { transactions: unknown[] }
    assert.equal(shown.transactions.length, 25_000)
  })

  test('R16: the rejection of an older proposal applies to that proposal', () => {
    const { recorder, step, ring } = createRig()
    recordBlock(recorder, block(7, { fork: 1 }))
    const rejected = { type: EVENT.BLOCK_REJECT, payload: Uint8Array.of(13, 0, 0, 0), timeNs: 5n, accountIndex: 0 }
    recordOpenBlock(recorder, block(7, { fork: 2 }))
    recorder.flush()
    // The event refers to the block by the sequence number of its start, the first of this ring.
    ring.writer.record({ ...rejected, blockSeqno: 1, txnIndex: -1 })
    recorder.add('BLOCK_END', { eth_block_hash: idOf(7), gas_used: 1n }, { timeNs: 3n })
    const reported = step()
    assert.deepEqual(
      of(reported, 'lifecycle').map(({ change }) => [change.to_stage, change.block_hash]),
      [
        ['Proposed', idOf(7, 1)],
        ['Proposed', idOf(7, 2)],
        ['Rejected', idOf(7, 1)],
      ],
    )
    assert.equal(of(reported, 'contention').length, 2, 'the block that was open is folded to its end')
  })
})

describe('a ring that follows a node', () => {
  test('finalizes every block that the recorder of the node still keeps, also with blocks of other branches', () => {
    const { recorder, step } = createRig({ isOwnRing: true })
    const propose = (number: number, fork = 0) => {
      const block_number = BigInt(number)
      recorder.add('BLOCK_START', { id: idOf(number, fork), block_number }, { timeNs: block_number })
      recorder.add('BLOCK_END', {}, { timeNs: block_number })
    }
    for (let number = 1; number <= HEADS_MAX; number++) {
      propose(number)
      if (number % 100 === 0) propose(number, 1)
      if (number % 500 === 0) step()
    }
    step()
    recorder.add('BLOCK_FINALIZED', { id: idOf(1), block_number: 1n }, { timeNs: 10_000n })
    recorder.add('BLOCK_VERIFIED', { block_number: 1n }, { timeNs: 10_000n })
    assert.deepEqual(
      kindsOf(step()).filter((kind) => kind !== 'progress'),
      ['Finalized 1', 'Verified 1'],
    )
    // The chain moves past all others at once: each is reported, so that no copy keeps them.
    const last = { id: idOf(HEADS_MAX), block_number: BigInt(HEADS_MAX) }
    recorder.add('BLOCK_FINALIZED', last, { timeNs: 20_000n })
    recorder.add('BLOCK_VERIFIED', last, { timeNs: 20_000n })
    const forgotten = of(step(), 'forgotten').flatMap(({ ids }) => ids)
    assert.equal(new Set(forgotten).size, HEADS_MAX - 2 + Math.floor(HEADS_MAX / 100))
  })
})

describe('the recorded block', { skip: skipWithoutRecordedData() }, () => {
  test('gives the recorded JSON-RPC responses, field by field', () => {
    const folder = join(recordedDataFolder, 'rings')
    const follower = new RingFollower(() => openRingFile(join(folder, 'emn-1b-15m.snapshot.zst')), { start: 'oldest' })
    const store = new BlockStore({ blocksMax: 4, bytesMax: 2 ** 28 }, { stageOf: () => 'Finalized' })
    const read = new RingProcessor(follower, OPTIONS, (content) => store.add(content))
    const messages: SourceMessage[] = []
    for (let steps = 0; steps < 100; steps++) messages.push(...read.step(0).messages)
    assert.equal(of(messages, 'tps')[0]?.tps, null, 'one block is no whole window')
    const methods = testMethods(store)
    const sample = (name: string) =>
      JSON.parse(readFileSync(join(folder, 'json-rpc-samples', `${name}.json`), 'utf8')) as Record<string, unknown>
    const header = sample('0.header')
    const shown = callMethod(methods.eth_getBlockByNumber, [header['number'], false]) as Record<string, unknown>
    for (const [name, value] of Object.entries(header)) {
      // An estimate on both sides.
      if (name !== 'size') assert.deepEqual(shown[name], value, name)
    }
    const { hash } = sample('0.tx.0')
    assert.deepEqual(callMethod(methods.eth_getTransactionByHash, [hash]), sample('0.tx.0'))
    assert.deepEqual(callMethod(methods.eth_getTransactionReceipt, [hash]), sample('0.tx-receipt.0'))
    const logs = callMethod(methods.eth_getLogs, [{ fromBlock: header['number'], toBlock: 'latest' }]) as unknown[]
    assert.deepEqual(logs[0], sample('0.log.0'))
  })
})
