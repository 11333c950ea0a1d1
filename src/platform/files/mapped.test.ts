import assert from 'node:assert/strict'
import { closeSync, openSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { loadRingMapper, openLiveRing, openRingFile } from '../ring-file/reader.ts'
import { createRingFile } from '../ring-file/writer.ts'
import { type FileMapper, loadFileMapper } from './mapped.ts'
import { makeTestFolder } from './test-folder.ts'

const BYTES = Uint8Array.from({ length: 1000 }, (_, at) => at & 0xff)

async function loaded(): Promise<Extract<FileMapper, { ok: true }>> {
  const mapper = await loadFileMapper()
  assert(mapper.ok, mapper.ok ? '' : mapper.reason)
  return mapper
}

describe('a mapped file', () => {
  test('shares reads and writes with other openers of the file', async () => {
    using folder = makeTestFolder()
    const path = folder.file('mapped')
    writeFileSync(path, BYTES)
    const descriptor = openSync(path, 'r+')
    const file = (await loaded()).map(descriptor, { isWritable: true })
    closeSync(descriptor)
    assert.equal(file.sizeBytes, 1000)
    const read = new Uint8Array(8)
    file.read(996, read, 1, 6)
    assert.deepEqual([...read], [0, 228, 229, 230, 231, 0, 0, 0], 'zeros behind the end')
    writeFileSync(path, Uint8Array.of(9, 9), { flag: 'r+' })
    file.read(0, read, 0, 3)
    assert.deepEqual([...read.subarray(0, 3)], [9, 9, 2])
    file.write(10, Uint8Array.of(1, 2, 3))
    file.storeU64(16, 2 ** 40 + 5)
    const seen = readFileSync(path)
    assert.deepEqual([...seen.subarray(9, 14)], [9, 1, 2, 3, 13])
    assert.equal(seen.readBigUInt64LE(16), BigInt(2 ** 40 + 5))
    file.close()
    file.close()
    file.read(0, read, 0, 8)
    assert.deepEqual(read, new Uint8Array(8), 'a closed file is empty, and nothing breaks')
  })

  test('is read as a ring like any other file', async () => {
    using folder = makeTestFolder()
    const mapper = await loaded()
    writeFileSync(folder.file('ring'), BYTES)
    writeFileSync(folder.file('empty'), '')
    const file = openRingFile(folder.file('ring'), { mapper }) ?? assert.fail()
    const read = new Uint8Array(20)
    file.read(300, read, 0, 20)
    assert.deepEqual(read, BYTES.slice(300, 320))
    assert.deepEqual([file.sizeBytes, file.isStatic, file.isReplaced()], [1000, false, false])
    file.close()
    const empty = openRingFile(folder.file('empty'), { mapper }) ?? assert.fail()
    assert.equal(empty.sizeBytes, 0)
    empty.close()
  })

  test('a ring that is truncated, grows again and is truncated to nothing reads as it does by position', async () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    // Several pages: what lies behind the last one of the file cannot be touched.
    const large = new Uint8Array(100_000).map((_, at) => at % 251)
    writeFileSync(path, large)
    const files = [openRingFile(path, { mapper: await loaded() }), openRingFile(path)].map((it) => it ?? assert.fail())
    const ranges = [
      [0, 192],
      [39_990, 20],
      [50_000, 40_000],
      [99_990, 20],
    ] as const
    for (const bytes of [100_000, 40_000, 192, 0, 100_000, 0]) {
      truncateSync(path, bytes)
      for (const [position, length] of ranges) {
        const [mapped, positional] = files.map((file) => {
          const target = new Uint8Array(length).fill(0xee)
          file.read(position, target, 0, length)
          return target
        })
        assert.deepEqual(mapped, positional, `${length} bytes at ${position} of ${bytes}`)
      }
    }
    for (const file of files) file.close()
  })

  test('maps a live ring when requested and possible, and reads it by position otherwise', async () => {
    using folder = makeTestFolder()
    const mapper = await loaded()
    const path = folder.file('ring')
    assert.equal(openLiveRing(path, mapper), undefined)
    writeFileSync(path, BYTES)
    const noMapping: FileMapper = {
      ...mapper,
      map: () => {
        throw new Error('no memory')
      },
    }
    for (const [way, given, expected] of [
      ['mapped', mapper, 'mapped'],
      ['mapped', noMapping, 'positional'],
      ['mapped', { ok: false, reason: '' }, 'positional'],
      ['positional', mapper, 'positional'],
      // The folder of a test is not on hugetlbfs; test/faults/hugetlbfs.test.ts has one that is.
      ['auto', mapper, 'positional'],
    ] as const) {
      const file = openLiveRing(path, await loadRingMapper(path, way, async () => given)) ?? assert.fail()
      assert.equal(file.mode, expected)
      const read = new Uint8Array(3)
      file.read(500, read, 0, 3)
      assert.deepEqual(read, BYTES.slice(500, 503))
      file.close()
    }
  })

  test('without the foreign-function interface, gives the reason and reads and writes by position', async () => {
    using folder = makeTestFolder()
    const mapper = await loadFileMapper(() => Promise.reject(new Error('no such binary')))
    assert.deepEqual(mapper, { ok: false, reason: 'files cannot be mapped here: no such binary' })
    using writer = createRingFile(folder.file('ring'), { bytes: 64, header: BYTES.slice(0, 4), mapper, isMapped: true })
    assert.equal(writer.storeU64, undefined)
    writer.write(8, Uint8Array.of(7))
    const file = openRingFile(folder.file('ring'), { mapper }) ?? assert.fail()
    const read = new Uint8Array(9)
    file.read(0, read, 0, 9)
    assert.deepEqual([...read], [0, 1, 2, 3, 0, 0, 0, 0, 7])
    file.close()
  })
})

describe('a ring file being written', () => {
  for (const isMapped of [false, true]) {
    test(`${isMapped ? 'mapped' : 'by position'}: appears complete, refuses a second writer and is removed with its writer`, async () => {
      using folder = makeTestFolder()
      const mapper = await loaded()
      const path = folder.file('ring')
      const create = () => createRingFile(path, { bytes: 4096, header: BYTES.slice(0, 8), mapper, isMapped })
      const first = create()
      assert.equal(readFileSync(path).length, 4096)
      assert.throws(create, /ring is being written by another process/)
      first.write(100, Uint8Array.of(5, 6))
      assert.deepEqual([...readFileSync(path).subarray(99, 103)], [0, 5, 6, 0])
      const reader = openRingFile(path) ?? assert.fail()
      first[Symbol.dispose]()
      assert.equal(openRingFile(path), undefined)
      assert.equal(reader.isReplaced(), true)
      reader.close()
      using second = create()
      assert.equal(second.storeU64 !== undefined, isMapped)
    })
  }

  test('a file left by a dead writer is replaced', async () => {
    using folder = makeTestFolder()
    writeFileSync(folder.file('ring'), 'left behind')
    using writer = createRingFile(folder.file('ring'), { bytes: 64, header: BYTES.slice(0, 2), mapper: await loaded() })
    assert.equal(readFileSync(writer.path).length, 64)
  })
})
