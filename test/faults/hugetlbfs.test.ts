import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'

/** The smallest ring, 140,509,184 bytes, in pages of 2 MiB. */
const PAGES = 67

type Outcome =
  | { stage: 'done'; ways: string[]; positional: string; throughMapping: string; expected: string }
  | { stage: 'mount' | 'map' | 'read'; message: string }

/**
 * A node's ring lies on hugetlbfs. Where the kernel lets us mount one and has huge pages to give, a ring is read from there by both
 * ways. Where it has none (`sysctl vm.nr_overcommit_hugepages=80` lends them) or we may not mount, the refusal must be a clear one.
 */
test('positional reads and a mapping give the same events of a ring on hugetlbfs', { timeout: 60_000 }, (t) => {
  using folder = makeTestFolder()
  const script = join(import.meta.dirname, '../support/execution/hugetlbfs-ring.ts')
  const outcome = runInNamespace(script, folder.path)
  if (outcome.stage === 'done') {
    assert.deepEqual(outcome.ways, ['positional', 'mapped'], 'a ring on hugetlbfs is mapped by default')
    assert.equal(outcome.positional, outcome.expected)
    assert.equal(outcome.throughMapping, outcome.expected)
    assert.match(outcome.expected, /"gaps":0.*"payloadsLost":0/)
    return
  }
  t.diagnostic(`NOT READ FROM HUGETLBFS: the kernel refused at "${outcome.stage}": ${outcome.message}`)
  if (outcome.stage === 'mount') return assert.match(outcome.message, /permi|denied|unknown filesystem type/i)
  assert.equal(outcome.stage, 'map')
  assert(freePages() < PAGES, `${outcome.message}, though there are ${freePages()} huge pages`)
  assert.equal(outcome.message, 'a file of 140509184 bytes cannot be mapped (error 12)')
})

function runInNamespace(script: string, folder: string): Outcome {
  try {
    const args = ['-m', process.execPath, script, folder]
    return JSON.parse(execFileSync('unshare', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })) as Outcome
  } catch (error) {
    return { stage: 'mount', message: String((error as { stderr?: string }).stderr ?? error) }
  }
}

function freePages(): number {
  const [, free = '0'] = /^HugePages_Free:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8')) ?? []
  return Number(free) + Number(readFileSync('/proc/sys/vm/nr_overcommit_hugepages', 'utf8'))
}
