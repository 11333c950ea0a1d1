import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deshredTransaction } from '../../../test/support/gateway/upstream-updates.ts'
import { createRandom } from '../../../test/support/process/property.ts'
import { makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { copyDataSet } from '../../../test/support/shreds/decoded-sets.ts'
import { until } from '../../platform/process/test-wait.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'
import { createInputMemory, openInputWriter } from './input-ring.ts'
import { encodeRecord } from './node-streams/records.ts'
import { createOutputMemory, openOutputWriter } from './output-ring.ts'
import type { FromDecoded, ToDecoded } from './protocol.ts'
import { runDecoded } from './run.ts'
import { createDecodedSource, type DecodedTransaction } from './source.ts'

const ENGINE = { slotsMax: 8, slotsBehindMax: 4, bytesMax: 64 * 1024 * 1024, shredsPerSlotMax: 32_768 }
const ADDRESSES_AT = 56
const REPORT_MS = 200

/** An account of a lookup table whose address at index i has the bytes i. */
function tableData(): Uint8Array {
  const data = new Uint8Array(ADDRESSES_AT + 256 * 32)
  data[0] = 1
  for (let i = 0; i < 256; i++) data.fill(i, ADDRESSES_AT + i * 32, ADDRESSES_AT + (i + 1) * 32)
  return data
}

function transactionWithTable(): Uint8Array {
  const { dataSets } = makeBlock({ slot: 100, parentSlot: 99, batchBytes: [20_000] }, createRandom(1))
  const wire = dataSets[0]?.transactions.find((bytes) => {
    const parse = parseTransaction(bytes)
    return parse.ok && parse.transaction.addressTableLookups.length > 0
  })
  assert.ok(wire !== undefined)
  return wire
}

test('addresses that a node could not load come from the tables of the engine, which requests those that it lacks', async () => {
  const output = createOutputMemory(1024 * 1024)
  const records = createOutputMemory(1024 * 1024)
  const queue = openOutputWriter(records)
  const wire = transactionWithTable()
  const parse = parseTransaction(wire)
  assert.ok(parse.ok)
  const [lookup] = parse.transaction.addressTableLookups
  assert.ok(lookup !== undefined)
  const send = (slot: number, mark: number): undefined => {
    const place = { slot, startIndex: 0, endIndex: 32 }
    const given = deshredTransaction(place, wire.with(1, mark))
    queue.write(encodeRecord({ kind: 'transaction', source: 0, stream: 1, ...place, arrivalNanos: mark, ...given }))
  }
  const received: DecodedTransaction[] = []
  using _reading = createDecodedSource(output).read({
    onDataSet: (set) => void received.push(...copyDataSet(set).transactions),
    onSlot: () => undefined,
    onLost: () => assert.fail('nothing is lost on the way'),
    onBatchEnd: () => undefined,
  })
  const posted: FromDecoded[] = []
  let nowMs = 0
  const steps: (() => ToDecoded | undefined)[] = [
    // The first slot of a stream is not believed before it goes on.
    () => send(100, 1),
    () => send(104, 2),
    () => void (nowMs += REPORT_MS),
    () => {
      const wanted = posted.flatMap((message) => (message.kind === 'tables' ? message.wanted : []))
      return { kind: 'tables', accounts: wanted.map((key) => ({ key, data: tableData(), slot: 104 })) }
    },
    () => send(105, 3),
    () => ({ kind: 'stop' }),
  ]
  runDecoded(
    {
      ...{ engine: ENGINE, lookupTablesMax: 16, input: createInputMemory(64), output },
      upstream: { records, slotsMax: 64, bytesMax: 1024 * 1024 },
    },
    {
      clock: { monotonicMs: () => nowMs },
      post: (message) => void posted.push(message),
      poll: () => (steps.length === 0 ? undefined : (steps.shift() as (typeof steps)[number])()),
    },
  )
  await until('both are read', () => received.length === 2)
  const [before, after] = received
  assert.deepEqual([before?.hasUnknownTable, before?.loadedWritable, before?.loadedReadonly], [true, [], []])
  const addressesAt = (indexes: Uint8Array) => [...indexes].map((index) => Array(32).fill(index))
  assert.equal(after?.hasUnknownTable, false)
  assert.deepEqual(
    after.loadedWritable.map((address) => [...address]),
    addressesAt(lookup.writableIndexes),
  )
  assert.deepEqual(
    after.loadedReadonly.map((address) => [...address]),
    addressesAt(lookup.readonlyIndexes),
  )
  assert.deepEqual(after.parsed.signatures[0], parse.transaction.signatures[0]?.with(0, 3))
  const report = posted.findLast((message) => message.kind === 'report')
  assert.equal(report?.unresolved, 1)
})

test('shreds of another generation are delivered at lower slots, and readers are informed of the restart', async () => {
  const [input, output] = [createInputMemory(256), createOutputMemory(1024 * 1024)]
  const writer = openInputWriter(input)
  const offer = (slot: number, generation: number): undefined => {
    const block = makeBlock({ slot, parentSlot: slot - 1, batchBytes: [100] }, createRandom(slot))
    for (const packet of block.fecSets.flat()) writer.offer(packet, 0, packet.length, 0, true, generation)
    writer.publish()
  }
  const slots: string[] = []
  using _reading = createDecodedSource(output).read({
    ...{ onDataSet: () => undefined, onBatchEnd: () => undefined, onLost: () => assert.fail('nothing is lost') },
    onSlot: ({ kind, slot }) => void slots.push(`${kind} ${slot}`),
  })
  const steps: (() => ToDecoded | undefined)[] = [
    () => offer(5000, 0),
    () => undefined,
    () => offer(3, 1),
    () => undefined,
    () => ({ kind: 'stop' }),
  ]
  runDecoded(
    { engine: ENGINE, lookupTablesMax: 16, input, output, upstream: undefined },
    {
      clock: { monotonicMs: () => 0 },
      post: () => undefined,
      poll: () => (steps.length === 0 ? undefined : (steps.shift() as (typeof steps)[number])()),
    },
  )
  await until('all is read', () => slots.length === 5)
  const restarted = ['first-shred 5000', 'completed 5000', 'lost 5000', 'first-shred 3', 'completed 3']
  assert.deepEqual(slots, restarted)
})
