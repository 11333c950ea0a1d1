import assert from 'node:assert/strict'
import { ftruncateSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { createSeededRandom, randomInt } from '../../core/random.ts'
import { seedFor } from '../../core/test-seed.ts'
import { openCheckpointFile } from './checkpoint-file.ts'
import { makeTestFolder } from './test-folder.ts'

const SIZES = { reservedBytes: 8192, contentBytesMax: 100_000 }

describe('checkpoint file', () => {
  test('returns the last save after it is opened again; both files are 0600 and have their space', async () => {
    using folder = makeTestFolder()
    const path = folder.file('spool')
    for (const content of ['', 'one', 'two', 'three', '', 'a longer one, ü']) {
      await using file = await openCheckpointFile(path, SIZES)
      await file.save('replaced at once')
      await file.save(content)
      await using again = await openCheckpointFile(path, SIZES)
      assert.equal(again.found, content)
      assert.equal(again.isDamaged, false)
    }
    for (const name of [`${path}.a`, `${path}.b`]) {
      assert.equal(statSync(name).mode & 0o777, 0o600)
      assert.ok(statSync(name).blocks * 512 >= SIZES.reservedBytes, 'the blocks are allocated')
    }
  })

  test('a save that was cut at any byte leaves the save before it', async () => {
    using folder = makeTestFolder()
    const path = folder.file('spool')
    await using file = await openCheckpointFile(path, SIZES)
    const random = createSeededRandom(seedFor('checkpoint file').seed)
    let before = ''
    for (let round = 0; round < 100; round++) {
      const content = 'x'.repeat(randomInt(random, 200)) + round
      const target = round % 2 === 0 ? `${path}.b` : `${path}.a`
      const old = readFileSync(target)
      await file.save(content)
      const whole = readFileSync(target)
      const cut = randomInt(random, 64 + content.length)
      writeFileSync(target, Buffer.concat([whole.subarray(0, cut), old.subarray(cut)]))
      await using reopened = await openCheckpointFile(path, SIZES)
      const isSame = readFileSync(target).equals(whole)
      assert.equal(reopened.found, isSame ? content : before, `cut at ${cut}`)
      writeFileSync(target, whole)
      before = content
    }
  })

  test('a damaged file without any complete save is reported', async () => {
    using folder = makeTestFolder()
    const path = folder.file('spool')
    {
      await using file = await openCheckpointFile(path, SIZES)
      await file.save('one')
    }
    const bytes = readFileSync(`${path}.b`)
    bytes[66] = (bytes[66] as number) ^ 1
    writeFileSync(`${path}.b`, bytes)
    await using again = await openCheckpointFile(path, SIZES)
    assert.deepEqual([again.found, again.isDamaged], ['', true])
  })

  test('discarded content does not come back, and a later save does', async () => {
    using folder = makeTestFolder()
    const path = folder.file('spool')
    await using file = await openCheckpointFile(path, SIZES)
    for (const content of ['one', 'two', 'three']) await file.save(content)
    await file.discard()
    {
      await using again = await openCheckpointFile(path, SIZES)
      assert.equal(again.found, '')
    }
    truncateSync(`${path}.a`, 0)
    await file.save('four')
    await using again = await openCheckpointFile(path, SIZES)
    assert.equal(again.found, 'four')
  })

  test('a discard that ends after the first of the files does not bring back the save before the last', async (t) => {
    for (const contents of [
      ['one', 'two'],
      ['one', 'two', 'three'],
    ]) {
      using folder = makeTestFolder()
      const path = folder.file('spool')
      await using file = await openCheckpointFile(path, SIZES)
      for (const content of contents) await file.save(content)
      await using handle = await open(`${path}.a`)
      let truncated = 0
      const truncate = t.mock.method(
        Object.getPrototypeOf(handle) as FileHandle,
        'truncate',
        function (this: FileHandle) {
          truncated += 1
          if (truncated > 1) return Promise.reject(new Error('the process was killed here'))
          ftruncateSync(this.fd, 0)
          return Promise.resolve()
        },
      )
      await assert.rejects(file.discard(), /was killed here/)
      truncate.mock.restore()
      await using again = await openCheckpointFile(path, SIZES)
      assert.equal(again.found, contents.at(-1))
    }
  })

  test('a content over the maximum is refused', async () => {
    using folder = makeTestFolder()
    await using file = await openCheckpointFile(folder.file('spool'), { reservedBytes: 0, contentBytesMax: 10 })
    await assert.rejects(file.save('x'.repeat(11)), /at most 10 bytes/)
  })
})
