import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { createFileAtomic } from './atomic.ts'
import { linkOrCopy, linkOrMove } from './link.ts'
import { makeTestFolder } from './test-folder.ts'

const failWith = (code: string) => () => Promise.reject(Object.assign(new Error(`${code}: link`), { code }))

test('a file is created where the file system has no hard links, and replaces none', async () => {
  for (const code of ['EPERM', 'ENOTSUP', 'ENOSYS']) {
    using folder = makeTestFolder()
    const create = (text: string) =>
      createFileAtomic(folder.file('backup'), (put) => put(text), { link: failWith(code) })
    await create('one')
    await assert.rejects(create('two'), { code: 'already-exists' })
    assert.equal(readFileSync(folder.file('backup'), 'utf8'), 'one')
    assert.equal(statSync(folder.file('backup')).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(folder.path), ['backup'], 'no temporary file is left')
  }
})

test('other failures of a link are reported, and a file that cannot be moved takes no name', async () => {
  using folder = makeTestFolder()
  writeFileSync(folder.file('draft'), 'x')
  await assert.rejects(linkOrMove(folder.file('draft'), folder.file('file'), failWith('EIO')), { code: 'EIO' })
  await assert.rejects(linkOrMove(folder.file('none'), folder.file('file'), failWith('EPERM')), { code: 'ENOENT' })
  assert.deepEqual(readdirSync(folder.path), ['draft'])
})

test('a file is kept by a copy with its mode where the file system has no hard links', async () => {
  using folder = makeTestFolder()
  writeFileSync(folder.file('old'), 'x', { mode: 0o600 })
  await linkOrCopy(folder.file('old'), folder.file('kept'), failWith('EPERM'))
  assert.equal(readFileSync(folder.file('kept'), 'utf8'), 'x')
  assert.equal(statSync(folder.file('kept')).mode & 0o777, 0o600)
  await assert.rejects(linkOrCopy(folder.file('old'), folder.file('kept'), failWith('EPERM')), { code: 'EEXIST' })
})
