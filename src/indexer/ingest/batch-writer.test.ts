import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { type Logger, silentLogger } from '../../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { indexerMetrics } from '../metrics.ts'
import type { StoreProcess } from '../store/process.ts'
import type { StoreRequest } from '../store/protocol.ts'
import { BatchWriter, type PendingBlock } from './batch-writer.ts'

/** A writer over a store that records its requests. */
function openWriter(batchBlocks = 10, response: string | null = null) {
  const logged: unknown[] = []
  const requests: StoreRequest[] = []
  const released: number[] = []
  const store = {
    progress: { ranges: [{ from: 1, to: 4 }], recent: [], finalizedSlot: 0, lastBatch: '' },
    async ask(request: StoreRequest) {
      requests.push(request)
      return response
    },
  } as unknown as StoreProcess
  const registry = createMetricsRegistry()
  const writer = new BatchWriter(
    { batchBlocks, batchMs: 100 },
    {
      store,
      clock: createManualClock(),
      log: { ...silentLogger, warn: (fields: unknown) => void logged.push(fields) } as Logger,
      metrics: indexerMetrics(registry),
      progress: () => ({ finalizedSlot: 0, tipSlot: 0 }),
      onWritten() {},
      release: async (blocks) => void released.push(...blocks.map(({ id }) => id)),
    },
  )
  const replaced = () => registry.value('sluice_indexer_replaced_blocks_total', {})
  /** What was asked of the store, in short. */
  const asked = () =>
    requests.map((request) =>
      request.kind === 'write'
        ? `write ${request.ids.join()} ${request.range.from}-${request.range.to} from ${request.rewindFrom}`
        : request.kind === 'rewind'
          ? `rewind ${request.fromSlot}`
          : request.kind,
    )
  return { writer, asked, released, replaced, logged }
}

const block = (slot: number, id: number): PendingBlock => ({
  ...{ id, slot, parentSlot: slot - 1, blockhash: `${id}`, parentBlockhash: '', transactions: 1 },
  raw: { slot, source: 'stream', bytes: new Uint8Array() },
})

test('written blocks of a fork are deleted by the write of those in their place, and by nothing before', async () => {
  const { writer, asked, replaced } = openWriter()
  for (const slot of [5, 6]) await writer.append(block(slot, slot))
  await writer.flush()
  await writer.replaceFrom(6, 1)
  assert.deepEqual(asked(), ['write 5,6 5-6 from undefined'])
  assert.equal(writer.headSlot, 6, 'the rows are still there')
  await writer.append(block(6, 60))
  await writer.flush()
  await writer.append(block(7, 70))
  await writer.flush()
  assert.deepEqual(asked().slice(1), ['write 60 6-6 from 6', 'write 70 7-7 from undefined'])
  assert.deepEqual([replaced(), writer.headSlot], [1, 7])
})

test('blocks of a fork that are not written yet are only released', async () => {
  const { writer, asked, released, replaced } = openWriter()
  for (const slot of [5, 6]) await writer.append(block(slot, slot))
  await writer.replaceFrom(6, 1)
  await writer.append(block(7, 70))
  await writer.flush()
  assert.deepEqual([asked(), released, replaced()], [['write 5,70 5-7 from undefined'], [6], 0])
})

test('a fork that is itself replaced before it was written deletes from the lowest slot', async () => {
  const { writer, asked, released, replaced } = openWriter()
  await writer.replaceFrom(4, 1)
  await writer.append(block(4, 40))
  await writer.replaceFrom(3, 2)
  await writer.append(block(3, 30))
  await writer.flush()
  assert.deepEqual([asked(), released, replaced()], [['write 30 3-3 from 3'], [40], 2])
})

test('dead blocks are deleted at once, with those that were to be replaced', async () => {
  const { writer, asked, released } = openWriter()
  await writer.replaceFrom(3, 2)
  await writer.append(block(3, 30))
  await writer.deleteFrom(3)
  assert.deepEqual([asked(), released, writer.headSlot], [['rewind 3'], [30], 2])
  await writer.append(block(3, 31))
  await writer.flush()
  assert.deepEqual(asked().slice(1), ['write 31 3-3 from undefined'])
  await writer.append(block(4, 41))
  await writer.deleteFrom(4)
  assert.equal(asked().length, 2, 'nothing of it was written')
})

test('accounts that could not be moved to their table are logged, at most once a minute', async () => {
  const { writer, logged } = openWriter(1, 'Out of Memory Error')
  for (const slot of [5, 6]) await writer.append(block(slot, slot))
  assert.deepEqual(logged, [{ reason: 'Out of Memory Error' }])
})
