import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCheckpointFile } from '../../platform/files/checkpoint-file.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import type { UsageRow } from '../store/model.ts'
import { UsageQueue } from './queue.ts'
import { openUsageSpool, type SpooledUsage } from './spool.ts'

const counts = (calls: number) => ({ calls, units: 2 * calls, refused: 0 })
const row = (subscriptionId: string, methods?: UsageRow['methods']): UsageRow => ({
  subscriptionId,
  hour: 3_600_000,
  interface: 'rpc',
  ...counts(3),
  bytes: 0,
  ...(methods === undefined ? {} : { methods }),
})

test('the next process finds every row as it was saved, with its methods', async () => {
  using folder = makeTestFolder()
  const usage: SpooledUsage = {
    id: 'spool',
    seq: 7,
    planned: [{ rows: [row('sub_a', { getSlot: counts(1), other: counts(2) })], used: [['tok_a', 60_000]] }],
    open: {
      rows: [
        row('sub_b', { getBalance: counts(3) }),
        row('sub_c'),
        { ...row('sub_d'), bytes: 2 ** 40 },
        { ...row('sub_e', { getSlot: counts(1) }), bytes: 7 },
      ],
      used: [],
    },
  }
  {
    await using spool = await openUsageSpool(folder.file('usage-spool'), { log: silentLogger })
    assert.equal(spool.found, undefined)
    await spool.save(usage)
  }
  await using next = await openUsageSpool(folder.file('usage-spool'), { log: silentLogger })
  assert.deepEqual(next.found, usage)
})

test('a spool from before bytes were counted is read, with no bytes', async () => {
  using folder = makeTestFolder()
  {
    await using file = await openCheckpointFile(folder.file('usage-spool'), {
      reservedBytes: 1024,
      contentBytesMax: 1024,
    })
    const packed = [
      ['sub_a', 3_600_000, 'rpc', 3, 6, 0, { getSlot: counts(3) }],
      ['sub_b', 3_600_000, 'ws', 3, 6, 0],
    ]
    await file.save(`{"id":"spool","seq":7,"planned":0}\n${JSON.stringify([[packed, []]])}`)
  }
  await using spool = await openUsageSpool(folder.file('usage-spool'), { log: silentLogger })
  assert.deepEqual(spool.found?.open.rows, [row('sub_a', { getSlot: counts(3) }), { ...row('sub_b'), interface: 'ws' }])
})

test('rows of the same hour are merged, method by method', () => {
  const queue = new UsageQueue()
  queue.add({ ...row('sub_a', { getSlot: counts(3) }), bytes: 100 })
  queue.add({ ...row('sub_a', { getSlot: counts(1), other: counts(2) }), bytes: 11 })
  const [merged] = queue.content().rows
  assert.deepEqual([merged?.calls, merged?.units, merged?.bytes], [6, 12, 111])
  assert.deepEqual(merged?.methods, { getSlot: counts(4), other: counts(2) })
})

test('a row with many methods counts for as much as it holds', () => {
  const queue = new UsageQueue()
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`method${at}`, counts(1)]))
  queue.add(row('sub_old', many))
  queue.add(row('sub_new'))
  assert.equal(queue.dropBeyond(11), 1, 'twelve rows are held: eleven by the old one')
  assert.deepEqual(
    queue.content().rows.map(({ subscriptionId }) => subscriptionId),
    ['sub_new'],
  )
})
