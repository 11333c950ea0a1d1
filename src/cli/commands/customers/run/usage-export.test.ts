import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeTestFolder } from '../../../../platform/files/test-folder.ts'
import { writeNewFile } from './usage-export.ts'

test('an export that breaks off leaves no file', async () => {
  using folder = makeTestFolder()
  async function* lines(isWhole: boolean): AsyncGenerator<string> {
    // More than is written at once.
    for (let at = 0; at < 1000; at++) yield `${'x'.repeat(1000)}\n`
    if (!isWhole) throw new Error('the store is gone')
  }
  await assert.rejects(writeNewFile(folder.file('usage.csv'), lines(false)), /the store is gone/)
  assert.deepEqual(readdirSync(folder.path), [])
  await writeNewFile(folder.file('usage.csv'), lines(true))
  assert.equal(readFileSync(folder.file('usage.csv'), 'utf8').length, 1_001_000)
})
