import assert from 'node:assert/strict'
import { test } from 'node:test'
import { showCheckProgress } from './check-progress.ts'

/** What a terminal, or a file, is written for these counts of checked rows. */
function shownFor(isTTY: boolean, counts: readonly number[]): string[] {
  const written: string[] = []
  check(isTTY, written, counts)
  return written
}

function check(isTTY: boolean, written: string[], counts: readonly number[]): void {
  using progress = showCheckProgress({ isTTY, write: (text: string | Uint8Array) => written.push(String(text)) > 0 })
  for (const rows of counts) {
    if (rows < 0) throw new Error('the disk fails')
    progress.update('usage_hours', rows)
  }
}

test('the check of a large table shows its rows on a terminal, one line in all', () => {
  assert.deepEqual(shownFor(true, [200, 99_999]), [], 'a small table')
  assert.deepEqual(shownFor(true, [99_800, 100_000, 100_200, 200_000]), [
    '\r\u001B[Kusage_hours: 100000 rows checked',
    '\r\u001B[Kusage_hours: 200000 rows checked',
    '\r\u001B[K',
  ])
  assert.deepEqual(shownFor(false, [100_000, 200_000]), [])
})

test('the line is cleared where the check fails, before its error is printed', () => {
  const written: string[] = []
  assert.throws(() => check(true, written, [100_000, -1]), /the disk fails/)
  assert.equal(written.at(-1), '\r\u001B[K')
})
