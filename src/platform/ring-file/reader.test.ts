import assert from 'node:assert/strict'
import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import { makeTestFolder } from '../files/test-folder.ts'
import { openRingFile, type RingFile } from './reader.ts'

const BYTES = Uint8Array.from({ length: 1000 }, (_, at) => at & 0xff)

function read(file: RingFile | undefined, position: number, length: number): Uint8Array {
  const target = new Uint8Array(length + 2).fill(0xee)
  assert(file !== undefined)
  file.read(position, target, 1, length)
  assert.deepEqual([target[0], target.at(-1)], [0xee, 0xee], 'nothing beside the range is touched')
  return target.slice(1, -1)
}

describe('a ring file', () => {
  for (const [kind, content, isStatic] of [
    ['plain', BYTES, false],
    ['compressed', zstdCompressSync(BYTES), true],
  ] as const) {
    test(`${kind}: returns its bytes by position, and zeros beyond its end`, () => {
      using folder = makeTestFolder()
      writeFileSync(folder.file('ring'), content)
      const file = openRingFile(folder.file('ring'))
      assert.deepEqual([file?.sizeBytes, file?.isStatic], [1000, isStatic])
      assert.deepEqual(read(file, 300, 20), BYTES.slice(300, 320))
      assert.deepEqual(read(file, 995, 10), Uint8Array.of(...BYTES.slice(995), 0, 0, 0, 0, 0))
      assert.deepEqual(read(file, 5000, 3), new Uint8Array(3))
      assert.deepEqual(read(file, 0, 0), new Uint8Array(0))
      file?.close()
    })
  }

  test('shows what is written after it was opened', () => {
    using folder = makeTestFolder()
    writeFileSync(folder.file('ring'), BYTES)
    const file = openRingFile(folder.file('ring'))
    writeFileSync(folder.file('ring'), Uint8Array.of(7, 7, 7), { flag: 'r+' })
    assert.deepEqual(read(file, 0, 4), Uint8Array.of(7, 7, 7, 3))
    file?.close()
  })

  test('notices that the path holds another file, or none, and stays readable', () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    writeFileSync(path, BYTES)
    const file = openRingFile(path)
    assert.equal(file?.isReplaced(), false)
    writeFileSync(folder.file('ring.123'), Uint8Array.of(1))
    assert.equal(file?.isReplaced(), false)
    renameSync(folder.file('ring.123'), path)
    assert.equal(file?.isReplaced(), true)
    rmSync(path)
    assert.equal(file?.isReplaced(), true)
    assert.deepEqual(read(file, 5, 2), Uint8Array.of(5, 6))
    file?.close()
  })

  test('an uncompressed file can be opened as a snapshot', () => {
    using folder = makeTestFolder()
    writeFileSync(folder.file('ring'), BYTES)
    const file = openRingFile(folder.file('ring'), { isSnapshot: true })
    assert.equal(file?.isStatic, true)
    file?.close()
  })

  test('returns undefined for a missing file; other errors name the path', () => {
    using folder = makeTestFolder()
    assert.equal(openRingFile(folder.file('nothing')), undefined)
    assert.throws(() => openRingFile(folder.path), /EISDIR/)
    if (process.getuid?.() === 0) return
    writeFileSync(folder.file('closed'), BYTES)
    chmodSync(folder.file('closed'), 0)
    assert.throws(() => openRingFile(folder.file('closed')), /EACCES.*closed/)
  })

  test('refuses a snapshot that decompresses to more than unpackedBytesMax', () => {
    using folder = makeTestFolder()
    writeFileSync(folder.file('bomb'), zstdCompressSync(new Uint8Array(1_000_000)))
    assert.throws(
      () => openRingFile(folder.file('bomb'), { unpackedBytesMax: 999_999 }),
      /bomb unpacks to more than 999999 bytes/,
    )
    assert.equal(openRingFile(folder.file('bomb'), { unpackedBytesMax: 1_000_000 })?.sizeBytes, 1_000_000)
  })
})
