import assert from 'node:assert/strict'
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { LedgerFile } from './ledger-file.ts'
import { RecordFile, readRecords } from './record-file.ts'

const MIB = 1024 * 1024
const block = (slot: number, bytes = 10) => ({
  slot,
  core: new Uint8Array(bytes).fill(slot),
  writes: Uint8Array.of(slot, 1),
})
const slotsOf = (file: LedgerFile) => [...file.readAll()].map(({ slot }) => slot)

test('reads blocks in order, across files', () => {
  using folder = makeTestFolder()
  {
    using file = new LedgerFile(folder.path)
    for (let slot = 0; slot < 5; slot++) file.append(block(slot, 4 * MIB))
  }
  assert.equal(readdirSync(folder.path).length, 3)
  using again = new LedgerFile(folder.path)
  const blocks = [...again.readAll()]
  assert.deepEqual(
    blocks.map(({ slot }) => slot),
    [0, 1, 2, 3, 4],
  )
  assert.deepEqual(Buffer.from(blocks[3]?.writes ?? []), Buffer.from([3, 1]))
  again.append(block(5))
  again.dropBelow(4)
  using third = new LedgerFile(folder.path)
  assert.deepEqual(slotsOf(third), [4, 5])
})

test('reading stops at the first damaged record and removes everything after it', () => {
  using folder = makeTestFolder()
  {
    using file = new LedgerFile(folder.path)
    for (let slot = 0; slot < 5; slot++) file.append(block(slot, 4 * MIB))
  }
  const [first = '', second = ''] = readdirSync(folder.path).sort()
  const bytes = readFileSync(folder.file(second))
  bytes[100] = 99
  writeFileSync(folder.file(second), bytes)
  using file = new LedgerFile(folder.path)
  assert.deepEqual(slotsOf(file), [0, 1])
  file.append(block(2))
  using again = new LedgerFile(folder.path)
  assert.deepEqual(slotsOf(again), [0, 1, 2])
  assert.equal(readdirSync(folder.path).sort()[0], first)
})

test('truncating a record file at any byte keeps the complete records before it', () => {
  using folder = makeTestFolder()
  const path = folder.file('records')
  const ends: number[] = [0]
  {
    using file = RecordFile.open(path, 0)
    for (let i = 0; i < 4; i++) {
      file.append(new Uint8Array(i * 3).fill(i), Uint8Array.of(i))
      ends.push(file.bytes)
    }
  }
  for (let size = ends.at(-1) as number; size >= 0; size--) {
    truncateSync(path, size)
    const complete = ends.filter((end) => end <= size).length - 1
    assert.equal([...readRecords(path)].length, complete, `cut to ${size}`)
  }
})
