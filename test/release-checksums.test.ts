import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { checksumsOf } from '../scripts/release/checksums.ts'
import { makeTestFolder } from '../src/platform/files/test-folder.ts'

test('the checksums of a release are those of its files, in order, without folders and without themselves', () => {
  using folder = makeTestFolder()
  for (const name of ['b.tgz', 'a.deb', 'SHA256SUMS']) writeFileSync(folder.file(name), name)
  mkdirSync(folder.file('c'))
  writeFileSync(folder.file('c/inside'), '')
  const line = (name: string) => `${hash('sha256', name)}  ${name}\n`
  assert.equal(checksumsOf(folder.path), `${line('a.deb')}${line('b.tgz')}`)
})
