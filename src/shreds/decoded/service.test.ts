import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { createRandom } from '../../../test/support/process/property.ts'
import { type MadeBlock, makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { oneLeader, openSink, type Rig, startRig } from '../../../test/support/shreds/rig.ts'
import { until } from '../../platform/process/test-wait.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'
import type { TableAccount, TableChanges } from './lookup-tables.ts'
import { type DecodedMessage, type DeliveredSet, decodeMessage } from './messages.ts'
import { openOutputReader } from './output-ring.ts'

function blocksFrom(slot: number, count: number): MadeBlock[] {
  let chainedRoot = new Uint8Array(32)
  return Array.from({ length: count }, (_, i) => {
    const plan = { slot: slot + i, parentSlot: slot + i - 1, chainedRoot, batchBytes: [20_000, 500, 40_000] }
    const block = makeBlock(plan, createRandom(slot + i))
    chainedRoot = Uint8Array.from(block.lastRoot)
    return block
  })
}

/** Collects the messages that one reader gets. */
function follow(rig: Rig) {
  assert.ok(rig.shreds.decoded)
  const reader = openOutputReader(rig.shreds.decoded.output)
  const messages: DecodedMessage[] = []
  let lost = 0
  const read = (): DecodedMessage[] => {
    for (let record = reader.next(); record !== undefined; record = reader.next()) {
      messages.push(decodeMessage(record.payload))
      lost += record.lost
    }
    return messages
  }
  return {
    lost: () => lost,
    messages: read,
    sets: (): DeliveredSet[] => read().filter((message) => message.kind === 'data-set'),
  }
}

test('shreds that the relay accepts come out as transactions for every reader, and customers get the shreds as before', async () => {
  using sink = await openSink()
  await using rig = await startRig(
    {},
    { isDecoding: true, leaders: oneLeader, setUp: ({ put }) => put('one', { port: sink.port }) },
  )
  const followers = [follow(rig), follow(rig)]
  const blocks = blocksFrom(500, 4)
  const packets = blocks.flatMap(({ fecSets }) => fecSets.flatMap((set) => set.filter((_, i) => i % 3 !== 0)))
  const forged = Uint8Array.from(blocks[0]?.fecSets[0]?.[0] ?? [])
  forged[200] = (forged[200] as number) ^ 1
  await rig.send([forged, ...packets, ...packets.slice(0, 50)])
  await until('the destination has all', () => sink.packets.length === packets.length)
  const made = blocks.flatMap(({ dataSets }) => dataSets)
  for (const { sets, lost } of followers) {
    await until('all data sets are decoded', () => sets().length >= made.length)
    const wires = sets().flatMap(({ transactions }) =>
      transactions.map(({ bytes }) => Buffer.from(bytes).toString('hex')),
    )
    const expected = made.flatMap(({ transactions }) => transactions.map((wire) => Buffer.from(wire).toString('hex')))
    assert.deepEqual(wires.sort(), expected.sort())
    assert.ok(sets().every(({ isVerified }) => isVerified))
    assert.equal(lost(), 0)
  }
  await until('counts are reported', () => rig.shreds.decoded?.status()?.counts.shreds.accepted === packets.length)
  assert.deepEqual([rig.shreds.decoded?.status()?.inputDropped, rig.shreds.decoded?.status()?.newestSlot], [0, 503])
})

test('shreds of a slot whose leader is not known are decoded and marked as not verified', async () => {
  await using rig = await startRig({}, { isDecoding: true })
  const { sets } = follow(rig)
  const [block] = blocksFrom(500, 1)
  await rig.send(block?.fecSets.flat() ?? [])
  await until('all data sets are decoded', () => sets().length === 3)
  assert.ok(sets().every(({ isVerified }) => !isVerified))
})

test('lookup tables are requested once, and transactions before the response are delivered without loaded addresses', async () => {
  const changes: TableChanges[] = []
  let publish = (_accounts: readonly TableAccount[]): void => undefined
  const lookupTables = {
    change: (change: TableChanges) => void changes.push(change),
    clear: () => undefined,
    onAccounts(listener: typeof publish) {
      publish = listener
      return { [Symbol.dispose]: () => undefined }
    },
  }
  await using rig = await startRig({}, { isDecoding: true, leaders: oneLeader, lookupTables })
  const { sets } = follow(rig)
  const block = makeBlock({ slot: 500, parentSlot: 499, batchBytes: [20_000] }, createRandom(7))
  await rig.send(block.fecSets.flat())
  await until('it is decoded', () => sets().length === 1)
  const lookupsOf = (wire: Uint8Array) => {
    const parsed = parseTransaction(wire)
    return parsed.ok ? parsed.transaction.addressTableLookups : []
  }
  const keysOf = (wire: Uint8Array) => lookupsOf(wire).map(({ accountKey }) => accountKey)
  const hex = (key: Uint8Array): string => Buffer.from(key).toString('hex')
  const used = new Set(block.dataSets[0]?.transactions.flatMap((wire) => keysOf(wire).map(hex)))
  assert.ok(used.size > 0)
  for (const { bytes, isUnresolved, loadedWritable } of sets()[0]?.transactions ?? [])
    assert.deepEqual([isUnresolved, loadedWritable.length], [keysOf(bytes).length > 0, 0])
  await until('they are requested', () => changes.flatMap(({ wanted }) => wanted).length === used.size)
  assert.deepEqual(new Set(changes.flatMap(({ wanted }) => wanted.map(hex))), used)

  const data = new Uint8Array(56 + 256 * 32)
  data[0] = 1
  for (let i = 0; i < 256; i++) data.fill(i, 56 + 32 * i, 56 + 32 * (i + 1))
  publish(changes.flatMap(({ wanted }) => wanted.map((key) => ({ key, data, slot: 500 }))))
  // The message with the tables overtakes no shred that was sent before it, so some slots may still come without.
  const isResolved = (): boolean =>
    sets()
      .at(-1)
      ?.transactions.some((each) => each.loadedWritable.length > 0) === true
  for (let slot = 501; !isResolved(); slot++) {
    assert.ok(slot < 560, 'the tables arrive')
    await rig.send(makeBlock({ slot, parentSlot: slot - 1, batchBytes: [20_000] }, createRandom(slot)).fecSets.flat())
    await until('it is decoded', () => sets().length === slot - 499)
  }
  for (const { bytes, isUnresolved, loadedWritable, loadedReadonly } of sets().at(-1)?.transactions ?? []) {
    const isKnown = keysOf(bytes).every((key) => used.has(hex(key)))
    assert.equal(isUnresolved, !isKnown)
    if (!isKnown || keysOf(bytes).length === 0) continue
    assert.deepEqual([loadedWritable.length, loadedReadonly.length], [1, 1])
    assert.equal(loadedWritable[0]?.[0], lookupsOf(bytes)[0]?.writableIndexes[0])
  }
})

test('a thread that dies is restarted: readers stay, learn of it, and decoding goes on', async () => {
  let publish = (_accounts: readonly TableAccount[]): void => undefined
  let cleared = 0
  const lookupTables = {
    change: () => undefined,
    clear: () => void cleared++,
    onAccounts(listener: typeof publish) {
      publish = listener
      return { [Symbol.dispose]: () => undefined }
    },
  }
  await using rig = await startRig({}, { isDecoding: true, leaders: oneLeader, lookupTables })
  const { sets, messages, lost } = follow(rig)
  const [first, second] = blocksFrom(500, 2) as [MadeBlock, MadeBlock]
  await rig.send(first.fecSets.flat())
  await until('the first block is decoded', () => sets().length === 3)
  const starts = () => messages().filter(({ kind }) => kind === 'started').length
  const before = starts()
  // Accounts that are not a list make the thread throw.
  publish(7 as unknown as [])
  await until('it is degraded', () => rig.reasons.has('shreds decoded'), 20_000)
  await until('it is back', () => !rig.reasons.has('shreds decoded') && starts() === before + 1, 20_000)
  await rig.send(second.fecSets.flat())
  await until('the second block is decoded', () => sets().length === 6)
  assert.deepEqual([lost(), cleared], [0, 1])
})

test('with the product off there is no engine', async () => {
  await using rig = await startRig()
  assert.equal(rig.shreds.decoded, undefined)
})
