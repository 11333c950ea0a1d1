import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { loadFileMapper } from '../files/mapped.ts'
import { makeTestFolder } from '../files/test-folder.ts'
import { createRecordingFile } from './recording.ts'

const SECTIONS = [
  { bytes: 2, content: Buffer.from('H') },
  { bytes: 4, content: 'slots' },
  { bytes: 4, content: 'payloads' },
] as const

describe('a recording', () => {
  test('begins again where an earlier one was killed', async () => {
    using folder = makeTestFolder()
    const path = folder.file('x.ring')
    for (const part of ['slots', 'payloads', 'whole']) writeFileSync(`${path}.${part}.partial`, 'left by a process')
    {
      await using file = createRecordingFile(path, await loadFileMapper())
      assert(!existsSync(path), 'a process killed from here on leaves no file under this name')
      file.writeSlots(0, Buffer.from('ab'))
      file.writePayloads(1, Buffer.from('c'))
      await file.finish(SECTIONS)
    }
    assert.equal(readFileSync(path, 'latin1'), 'H\0ab\0\0\0c\0\0')
    assert.deepEqual(readdirSync(folder.path), ['x.ring'])
  })

  test('is refused at the start where the file exists or is being recorded', async () => {
    using folder = makeTestFolder()
    const mapper = await loadFileMapper()
    assert(mapper.ok)
    const path = folder.file('x.ring')
    {
      await using file = createRecordingFile(path, mapper)
      file.writeSlots(0, Buffer.from('ab'))
      assert.throws(() => createRecordingFile(path, mapper), { code: 'EEXIST' })
      assert.throws(() => createRecordingFile(path, { ok: false, reason: 'no locks' }), { code: 'EEXIST' })
      await file.finish(SECTIONS)
    }
    assert.throws(() => createRecordingFile(path, mapper), { code: 'EEXIST' })
    assert.equal(readFileSync(path, 'latin1'), 'H\0ab\0\0\0\0\0\0')
    assert.deepEqual(readdirSync(folder.path), ['x.ring'])
  })

  test('is refused where another one has just removed the part that was locked', async () => {
    using folder = makeTestFolder()
    const path = folder.file('x.ring')
    const mapper = await loadFileMapper()
    assert(mapper.ok)
    const tryLock = (descriptor: number) => {
      rmSync(`${path}.slots.partial`)
      return mapper.tryLock(descriptor)
    }
    assert.throws(() => createRecordingFile(path, { ...mapper, tryLock }), { code: 'EEXIST' })
  })

  test('does not replace a file that appears before its end', async () => {
    using folder = makeTestFolder()
    const path = folder.file('x.ring')
    {
      await using file = createRecordingFile(path, await loadFileMapper())
      writeFileSync(path, 'of another process')
      await assert.rejects(file.finish(SECTIONS), { code: 'EEXIST' })
    }
    assert.equal(readFileSync(path, 'latin1'), 'of another process')
    assert.deepEqual(readdirSync(folder.path), ['x.ring'])
  })

  test('that cannot be opened leaves neither a file nor a descriptor', async () => {
    using folder = makeTestFolder()
    const mapper = await loadFileMapper()
    const path = folder.file('x.ring')
    mkdirSync(`${path}.payloads.partial`)
    const before = readdirSync('/proc/self/fd').length
    assert.throws(() => createRecordingFile(path, mapper), /directory/)
    assert.equal(readdirSync('/proc/self/fd').length, before)
    assert.deepEqual(readdirSync(folder.path), ['x.ring.payloads.partial'])
  })
})
