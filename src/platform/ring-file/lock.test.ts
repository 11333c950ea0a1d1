import assert from 'node:assert/strict'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadFileMapper } from '../files/mapped.ts'
import { makeTestFolder } from '../files/test-folder.ts'
import { isHeldByWriter } from './lock.ts'

test('detects a writer by its lock without trying the lock', async () => {
  using folder = makeTestFolder()
  const path = folder.file('ring')
  writeFileSync(path, 'x')
  assert.equal(isHeldByWriter(path), false)
  const mapper = await loadFileMapper()
  assert(mapper.ok)
  const descriptor = openSync(path, 'r+')
  assert.equal(mapper.tryLock(descriptor), true)
  assert.equal(isHeldByWriter(path), true)
  closeSync(descriptor)
  assert.equal(isHeldByWriter(path), false)
  const silent = (): string => {
    throw new Error('no /proc here')
  }
  assert.deepEqual([isHeldByWriter(path, silent), isHeldByWriter(folder.file('none'))], [undefined, undefined])
})
