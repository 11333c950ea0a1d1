import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { createRandom, seedOf } from '../../../test/support/process/property.ts'
import { makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { Engine } from './engine.ts'
import type { DecodedEvent } from './events.ts'
import type { LoadedAddresses } from './lookup-tables.ts'
import { dataSetLength, decodeMessage, encodeEvent } from './messages.ts'

test('every event comes out of the output ring as it went in, with loaded addresses or the note that they are missing', (t) => {
  const random = createRandom(seedOf(t))
  const block = makeBlock({ slot: 2 ** 40, parentSlot: 2 ** 40 - 1, batchBytes: [40_000, 0, 3000, 500] }, random)
  const events: DecodedEvent[] = []
  const engine = new Engine({ slotsMax: 4, slotsBehindMax: 4, bytesMax: 2 ** 24, shredsPerSlotMax: 32_768 }, (event) =>
    events.push(event),
  )
  // The last FEC set is lost.
  for (const packet of block.fecSets.slice(0, -1).flat()) engine.push(packet, 0, packet.length, 1.5, true)
  engine.end()
  assert.deepEqual(new Set(events.map(({ kind }) => kind)), new Set(['data-set', 'marker', 'gap', 'slot-report']))

  const loadedOf = (i: number): LoadedAddresses => {
    if (i % 3 === 1) return { ok: false, unknownTables: [] }
    const some = (count: number, value: number) => Array.from({ length: count }, () => new Uint8Array(32).fill(value))
    return { ok: true, writable: some(i % 3, 1 + (i % 200)), readonly: some(i % 2, 50) }
  }
  for (const event of events) {
    const record = Buffer.concat(encodeEvent(event, loadedOf))
    const message = decodeMessage(Uint8Array.from(record))
    if (event.kind !== 'data-set') {
      // JSON has no undefined.
      assert.deepEqual(JSON.parse(JSON.stringify(message)), JSON.parse(JSON.stringify(event)))
      continue
    }
    assert.ok(message.kind === 'data-set')
    const { transactions, ...rest } = message
    const { transactions: parsed, ...expected } = event
    const loadedOfAll = parsed.map((_, i) => loadedOf(i))
    assert.equal(dataSetLength(event, loadedOfAll), record.length)
    assert.deepEqual(
      { ...rest, entriesBytes: Buffer.from(rest.entriesBytes) },
      { ...expected, entriesBytes: Buffer.from(expected.entriesBytes) },
    )
    const made = block.dataSets.find(({ from }) => from * 32 === event.startIndex)
    assert.equal(transactions.length, parsed.length)
    for (const [i, { bytes, isUnresolved, loadedWritable, loadedReadonly }] of transactions.entries()) {
      assert.equal(Buffer.compare(bytes, made?.transactions[i] ?? Buffer.of()), 0)
      const loaded = loadedOf(i)
      assert.equal(isUnresolved, !loaded.ok)
      if (loaded.ok)
        assert.deepEqual(
          [loadedWritable.map((each) => [...each]), loadedReadonly.map((each) => [...each])],
          [loaded.writable.map((each) => [...each]), loaded.readonly.map((each) => [...each])],
        )
    }
  }
})
