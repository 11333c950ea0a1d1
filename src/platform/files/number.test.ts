import assert from 'node:assert/strict'
import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename } from 'node:path'
import { test } from 'node:test'
import { openNumberFile } from './number.ts'
import { makeTestFolder } from './test-folder.ts'

test('reads back the number that was written, and undefined before', () => {
  using folder = makeTestFolder()
  const file = openNumberFile(folder.file('n'))
  assert.equal(file.read(), undefined)
  file.write(7)
  file.write(2 ** 53 - 1)
  assert.equal(openNumberFile(folder.file('n')).read(), 2 ** 53 - 1)
  assert.equal(readFileSync(folder.file('n'), 'utf8'), '9007199254740991\n')
})

test('replaces the number without a sync; nothing else is left in the folder', async () => {
  using folder = makeTestFolder()
  const file = openNumberFile(folder.file('n'))
  for (const value of [7, 8]) {
    await file.replace(value)
    assert.equal(file.read(), value)
  }
  assert.deepEqual(readdirSync(folder.path), ['n'])
  assert.equal(statSync(folder.file('n')).mode & 0o777, 0o600)
})

test('refuses a file that does not hold a number, with its path', () => {
  using folder = makeTestFolder()
  for (const text of ['', 'x', '-1', '1.5', '99999999999999999', '1\n2\n']) {
    writeFileSync(folder.file('n'), text)
    assert.throws(() => openNumberFile(folder.file('n')).read(), /n does not hold a number/, JSON.stringify(text))
  }
})

test('syncs the file before it takes the name, and the folder afterwards, so that a crash cannot bring back an older number', () => {
  using folder = makeTestFolder()
  const calls: string[] = []
  const names = new Map<number, string>()
  const record = (call: string, descriptor: number): void => void calls.push(`${call} ${names.get(descriptor)}`)
  const file = openNumberFile(folder.file('n'), {
    openSync(path, flags, mode) {
      const descriptor = openSync(path, flags, mode)
      names.set(descriptor, path === folder.path ? 'folder' : basename(path))
      return descriptor
    },
    writeSync(descriptor, text) {
      record('write', descriptor)
      return writeSync(descriptor, text)
    },
    fsyncSync(descriptor) {
      record('sync', descriptor)
      fsyncSync(descriptor)
    },
    closeSync(descriptor) {
      record('close', descriptor)
      closeSync(descriptor)
    },
    renameSync(from, to) {
      calls.push(`rename ${basename(from)} ${basename(to)}`)
      renameSync(from, to)
    },
  })
  file.write(7)
  assert.equal(file.read(), 7)
  assert.deepEqual(calls, [
    'write n.next',
    'sync n.next',
    'close n.next',
    'rename n.next n',
    'sync folder',
    'close folder',
  ])
})
