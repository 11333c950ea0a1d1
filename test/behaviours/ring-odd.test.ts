import assert from 'node:assert/strict'
import { closeSync, openSync, readFileSync, readSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { describe, test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { createSeededRandom } from '../../src/core/random.ts'
import { seedFor } from '../../src/core/test-seed.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { type RandomRingOptions, writeRandomRing } from '../support/execution/random-ring.ts'
import { foldReference, type ReferenceFold } from '../support/execution/reference-fold.ts'
import { readReferenceRing } from '../support/execution/reference-ring.ts'

type Top = { key: string | [string, string]; count: number }[]
type TopLine = {
  TopAccesses: { account: Top; storage: Top }
  accuracy: Record<'account' | 'storage', { seen: number; error_max: number }>
}

/** More counters than a history has keys: the counts are exact. */
const EXACT = ['--counters', '5000', '--top', '50']

async function foldBySluice(path: string, options: readonly string[]) {
  const { code, stdout, stderr } = await sluiceHere(['ring', 'fold', path, '--json', ...options])
  assert.equal(code, 0, stderr)
  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
  return {
    blocks: lines.filter((line) => !('Lifecycle' in line || 'TopAccesses' in line)),
    lifecycle: lines.flatMap((line) => ('Lifecycle' in line ? [line.Lifecycle as object] : [])),
    top: lines.at(-1) as TopLine,
  }
}

/** The highest counts, of equal ones those with the lower key. */
function topOf(counts: ReadonlyMap<string, number>): [key: string, count: number][] {
  return [...counts].toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, 50)
}

function counted(top: Top): [key: string, count: number][] {
  return top.map(({ key, count }) => [typeof key === 'string' ? key : key.join(' '), count])
}

async function compare(path: string, slow: ReferenceFold): Promise<void> {
  const { blocks, lifecycle, top } = await foldBySluice(path, EXACT)
  assert.deepEqual(blocks, slow.blocks)
  assert.deepEqual(lifecycle, slow.lifecycle)
  assert.deepEqual(counted(top.TopAccesses.account), topOf(slow.accounts))
  assert.deepEqual(counted(top.TopAccesses.storage), topOf(slow.storage))
  const few = await foldBySluice(path, ['--counters', '7', '--top', '7'])
  for (const [kind, truth] of [
    ['account', slow.accounts],
    ['storage', slow.storage],
  ] as const) {
    const { seen, error_max } = few.top.accuracy[kind]
    const kept = counted(few.top.TopAccesses[kind])
    assert.equal(
      seen,
      [...truth.values()].reduce((sum, count) => sum + count, 0),
    )
    assert(error_max <= seen / 7)
    for (const [key, count] of kept) {
      const exact = truth.get(key) ?? 0
      assert(exact <= count && count <= exact + error_max, `${key}: ${count}, truly ${exact}, error ${error_max}`)
    }
    for (const [key, count] of truth)
      if (count > seen / 7)
        assert(
          kept.some(([known]) => known === key),
          key,
        )
  }
}

describe('every kind of ring file folds to the result of the reference fold', () => {
  for (const [name, runs, options] of [
    ['whole histories', 12, { blocks: 12, corruptedPerMille: 0 }],
    ['histories with losses and errors', 30, { blocks: 14, corruptedPerMille: 3 }],
    ['histories that are mostly damage', 8, { blocks: 8, corruptedPerMille: 60 }],
  ] as [string, number, RandomRingOptions][]) {
    test(name, { timeout: 600_000 }, async () => {
      let [events, folded] = [0, 0]
      const reasons = new Set<string | null>()
      await fc.assert(
        fc.asyncProperty(fc.nat(), async (seed) => {
          const random = createSeededRandom(seed)
          using folder = makeTestFolder()
          const path = folder.file('ring')
          const ring = writeRandomRing(path, random, options)
          if (random.float() < 0.2) truncateSync(path, ring.bytes - Math.floor(random.float() * 2 ** 20))
          if (random.float() < 0.2) expirePayloads(path, random.float())
          const slow = foldReference(readReferenceRing(path))
          await compare(path, slow)
          if (random.float() < 0.1) {
            writeFileSync(folder.file('ring.zst'), zstdCompressSync(readFileSync(path)))
            await compare(folder.file('ring.zst'), slow)
          }
          events += ring.events
          const reported = slow.blocks as { reason?: string | null }[]
          folded += reported.filter(({ reason }) => reason === null).length
          for (const { reason } of reported) if (reason !== undefined) reasons.add(reason)
        }),
        seedFor(name, runs),
      )
      assert(events > runs * 100, `${events} events`)
      assert(folded > 0)
      if (options.corruptedPerMille > 0) assert(reasons.size > 4, [...reasons].join())
    })
  }
})

/** Moves the start of the window into what was written: payloads below it count as overwritten. */
function expirePayloads(path: string, share: number): void {
  const file = openSync(path, 'r+')
  const header = Buffer.alloc(192)
  readSync(file, header, 0, 192, 0)
  const [next, window] = [header.readBigUInt64LE(72), header.readBigUInt64LE(128)]
  const written = Number(next - window) / 16
  const start = Buffer.alloc(8)
  start.writeBigUInt64LE(window + BigInt(Math.floor((written % 2 ** 16) * share)) * 16n)
  writeSync(file, start, 0, 8, 128)
  closeSync(file)
}
