import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { runChainMatrix } from '../scripts/chain-matrix.ts'
import { CHAIN_CELLS, CHAIN_TESTS, OTHER_CHAIN_TESTS, SHORT_CHAIN_TESTS } from './chain-tests.ts'
import { onChainCell, parseChainCell } from './support/solana/chain-cell.ts'

const root = join(import.meta.dirname, '..')
const SOURCES = new Set([
  'test/support/solana/localnet.ts',
  'test/support/solana/rpc-server.ts',
  'src/localnet/service.ts',
])

/** Whether the file starts a localnet, or imports one of the test folder that does. */
function usesChain(path: string, known: Map<string, boolean>): boolean {
  const before = known.get(path)
  if (before !== undefined) return before
  known.set(path, false)
  const text = readFileSync(join(root, path), 'utf8')
  const imports = [...text.matchAll(/from '(\.[^']+)'/g)].map(([, to]) => normalize(join(dirname(path), to as string)))
  const uses =
    text.includes("SLUICE_LOCALNET__ENABLED: 'true'") ||
    imports.some((to) => SOURCES.has(to) || (to.startsWith('test/') && usesChain(to, known)))
  known.set(path, uses)
  return uses
}

test('every test on a localnet is run on all chains, or says why not', () => {
  const known = new Map<string, boolean>()
  const files = globSync('test/{behaviours,faults,threats,packaging}/**/*.test.ts', { cwd: root })
  const found = files.filter((path) => usesChain(path, known)).toSorted()
  assert.ok(found.length > 50, `only ${found.length} tests were found`)
  assert.deepEqual([...CHAIN_TESTS, ...OTHER_CHAIN_TESTS.keys()].toSorted(), found)
  assert.ok(SHORT_CHAIN_TESTS.every((path) => CHAIN_TESTS.includes(path)))
  assert.ok(CHAIN_TESTS.every((path) => existsSync(join(root, path))))
})

test('the long form runs all tests on every chain; the short form a few on one, by the seed', async () => {
  const runs = async (isFull: boolean, seed: number) => {
    const seen: string[] = []
    const run = async (files: readonly string[]) => {
      assert.equal(process.env['SLUICE_FULL'], undefined)
      seen.push(`${process.env['SLUICE_TEST_CHAIN']} ${files.length}`)
      return { passed: 1, failures: ['a.test.ts: x'], skips: [] }
    }
    const tally = await runChainMatrix({ passed: 5, failures: [], skips: [] }, { isFull, seed, run, report() {} })
    return { seen, tally }
  }
  const before = process.env['SLUICE_TEST_CHAIN']
  const fullBefore = process.env['SLUICE_FULL']
  process.env['SLUICE_FULL'] = '1'
  const full = await runs(true, 1)
  assert.equal(process.env['SLUICE_FULL'], '1')
  if (fullBefore === undefined) delete process.env['SLUICE_FULL']
  assert.deepEqual(
    full.seen,
    CHAIN_CELLS.map((cell) => `${cell} ${CHAIN_TESTS.length}`),
  )
  assert.equal(full.tally.passed, 9)
  assert.equal(full.tally.failures[3], 'alpenglow-200: a.test.ts: x')
  assert.deepEqual((await runs(false, 6)).seen, [`alpenglow-400 ${SHORT_CHAIN_TESTS.length}`])
  assert.equal(process.env['SLUICE_TEST_CHAIN'], before)
})

test('a chain is named by consensus and slot length; a test that names its own keeps it', () => {
  assert.deepEqual(parseChainCell('alpenglow-200'), { consensus: 'alpenglow', slotMs: 200 })
  assert.throws(() => parseChainCell('alpenglow'), /give a chain such as alpenglow-200/)
  const before = process.env['SLUICE_TEST_CHAIN']
  process.env['SLUICE_TEST_CHAIN'] = 'alpenglow-200'
  try {
    assert.deepEqual(onChainCell({ slotMs: 50 }), { slotMs: 200, consensus: 'alpenglow' })
    assert.deepEqual(onChainCell({ slotMs: 5000 }), { slotMs: 5000, consensus: 'alpenglow' })
    assert.deepEqual(onChainCell({ slotMs: 50, consensus: 'tower' }), { slotMs: 50, consensus: 'tower' })
  } finally {
    if (before === undefined) delete process.env['SLUICE_TEST_CHAIN']
    else process.env['SLUICE_TEST_CHAIN'] = before
  }
})
