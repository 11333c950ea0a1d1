import assert from 'node:assert/strict'
import { constants, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { openAppendFile } from './append.ts'
import { makeTestFolder } from './test-folder.ts'

/** The flags the system has for an open file. */
function flagsOf(path: string): number {
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      if (readlinkSync(`/proc/self/fd/${fd}`) !== path) continue
    } catch {
      continue
    }
    return Number.parseInt(/^flags:\s+(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '', 8)
  }
  assert.fail(`${path} is not open`)
}

for (const mode of ['write', 'write-through'] as const) {
  test(`${mode}: created for its owner only, keeps its content when opened again, and only write-through waits for the disk`, async () => {
    using folder = makeTestFolder()
    const path = folder.file('lines')
    for (const [at, text] of [
      [0, 'first\n'],
      [6, 'second\nhalf'],
    ] as const) {
      await using file = await openAppendFile(path, mode)
      assert.equal(await file.size(), at)
      assert.equal((flagsOf(path) & constants.O_DSYNC) !== 0, mode === 'write-through')
      assert.equal(await file.writeAt(at, text), at + text.length)
    }
    assert.equal(statSync(path).mode & 0o777, 0o600)
    await using file = await openAppendFile(path, 'read')
    assert.ok(file !== undefined)
    const lines = await Array.fromAsync(file.lines(0, 100))
    assert.deepEqual(
      lines.map(({ bytes, ended }) => [Buffer.from(bytes).toString(), ended]),
      [
        ['first', true],
        ['second', true],
        ['half', false],
      ],
    )
  })
}

test('opening for reading creates no file', async () => {
  using folder = makeTestFolder()
  assert.equal(await openAppendFile(folder.file('none'), 'read'), undefined)
})
