import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { type LoggedRecord, openRecordLog, type RecordLog } from './record-log.ts'
import { makeTestFolder } from './test-folder.ts'

const LIMITS = { segmentBytes: 2 ** 20, headBytesMax: 1000, bodyBytesMax: 2 ** 20 }

async function open(folder: string, options: Partial<typeof LIMITS> = {}) {
  const records: LoggedRecord[] = []
  const log = await openRecordLog({ folder, ...LIMITS, ...options }, ({ head, place }) =>
    records.push({ head: Buffer.from(head), place }),
  )
  return { log, records, heads: records.map(({ head }) => head.toString()) }
}

async function fill(log: RecordLog, names: readonly string[], bodyBytes = 100): Promise<void> {
  for (const name of names) await log.append(Buffer.from(name), Buffer.alloc(bodyBytes, name))
}

const fileOf = (folder: string, at = 0) => `${folder}/${readdirSync(folder).toSorted().at(at)}`

describe('a record log', () => {
  test('returns heads when it is opened again, and bodies on request, over several files', async () => {
    using folder = makeTestFolder()
    const names = Array.from({ length: 50 }, (_, at) => `record ${at}`)
    {
      const { log } = await open(folder.path, { segmentBytes: 1000 })
      await using _log = log
      await fill(log, names)
    }
    const { log, records, heads } = await open(folder.path)
    await using _log = log
    assert.deepEqual(heads, names)
    assert.ok(log.segments.length > 5)
    for (const [at, { place }] of records.entries())
      assert.deepEqual(await log.read(place), Buffer.alloc(100, names[at] ?? ''), names[at] ?? '')
    assert.equal(
      log.bytes,
      readdirSync(folder.path).reduce((sum, name) => sum + statSync(folder.file(name)).size, 0),
    )
  })

  test('a body larger than what is read at once, and an empty one', async () => {
    using folder = makeTestFolder()
    {
      const { log } = await open(folder.path)
      await using _log = log
      await fill(log, ['large', 'next'], 300_000)
      await log.append(Buffer.from('empty'), Buffer.alloc(0))
    }
    const { log, records, heads } = await open(folder.path)
    await using _log = log
    assert.deepEqual(heads, ['large', 'next', 'empty'])
    const bodies = await Promise.all(records.map(({ place }) => log.read(place)))
    assert.deepEqual(
      bodies.map((body) => body?.length),
      [300_000, 300_000, 0],
    )
  })

  test('a file that ends within a record is read up to it, wherever it ends', async (t) => {
    using folder = makeTestFolder()
    {
      const { log } = await open(folder.path)
      await using _log = log
      await fill(log, ['a', 'b', 'c'])
    }
    const path = fileOf(folder.path)
    const whole = readFileSync(path)
    const recordBytes = whole.length / 3
    const ends = Array.from({ length: whole.length }, (_, at) => at)
    t.diagnostic(`${ends.length} lengths`)
    for (const end of ends) {
      truncateSync(path, 0)
      writeFileSync(path, whole.subarray(0, end))
      const { log, heads } = await open(folder.path)
      await using _log = log
      assert.deepEqual(heads, ['a', 'b', 'c'].slice(0, Math.floor(end / recordBytes)), `${end} bytes`)
    }
  })

  test('a changed byte never changes a record: it is missing, and at most the rest of its file with it', async (t) => {
    using folder = makeTestFolder()
    const names = ['a', 'b', 'c', 'd']
    {
      const { log } = await open(folder.path)
      await using _log = log
      await fill(log, names)
    }
    const path = fileOf(folder.path)
    const whole = readFileSync(path)
    const changes: { at: number; bits: number }[] = []
    checkProperty(
      t,
      fc.property(
        fc.nat(whole.length - 1),
        fc.integer({ min: 1, max: 255 }),
        (at, bits) => void changes.push({ at, bits }),
      ),
      100,
      1000,
    )
    for (const { at, bits } of changes) {
      const damaged = Buffer.from(whole)
      damaged[at] = (damaged[at] as number) ^ bits
      writeFileSync(path, damaged)
      const { log, records, heads } = await open(folder.path)
      await using _log = log
      assert.deepEqual(heads, names.slice(0, heads.length))
      for (const [index, { place }] of records.entries()) {
        const body = await log.read(place)
        if (body !== undefined) assert.deepEqual(body, Buffer.alloc(100, names[index] ?? ''))
        else assert.equal(index, Math.floor(at / (whole.length / 4)), 'only the changed one is damaged')
      }
      assert.ok(heads.length >= Math.floor(at / (whole.length / 4)), 'records before the change are there')
    }
  })

  test('a removed file takes its records with it, and a later process continues with a new one', async () => {
    using folder = makeTestFolder()
    const { log } = await open(folder.path, { segmentBytes: 200 })
    const first = await log.append(Buffer.from('a'), Buffer.alloc(300))
    await fill(log, ['b', 'c'])
    await log.removeOldest()
    assert.equal(await log.read(first), undefined)
    await log[Symbol.asyncDispose]()
    {
      const again = await open(folder.path)
      await using _log = again.log
      assert.deepEqual(again.heads, ['b', 'c'])
      await fill(again.log, ['d'])
    }
    const last = await open(folder.path)
    await using _log = last.log
    assert.deepEqual(last.heads, ['b', 'c', 'd'])
  })

  test('refuses a record beyond its limits, and goes on', async () => {
    using folder = makeTestFolder()
    const { log } = await open(folder.path)
    await using _log = log
    await assert.rejects(log.append(Buffer.alloc(1001), Buffer.alloc(0)), RangeError)
    await assert.rejects(log.append(Buffer.alloc(1), Buffer.alloc(2 ** 20 + 1)), RangeError)
    await fill(log, ['a'])
  })
})
