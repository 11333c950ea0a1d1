import { CHAIN_CELLS, CHAIN_TESTS, SHORT_CHAIN_TESTS } from '../test/chain-tests.ts'
import type { TestTally } from './run-tests.ts'

export type ChainMatrix = {
  readonly isFull: boolean
  readonly seed: number
  /** Runs these files with the variables of the environment. */
  readonly run: (files: string[]) => Promise<TestTally>
  readonly report: (line: string) => void
}

/**
 * Runs the tests on localnet again on chains of another consensus and slot length: all of them in every cell, or in the short form a few of them in a cell
 * that the seed chooses. Each test has its short counts in a cell: an hour of slots at 50 ms would be eight at 400. The results are added to those of
 * the complete run.
 */
export async function runChainMatrix(tally: TestTally, { isFull, seed, run, report }: ChainMatrix): Promise<TestTally> {
  const cells = isFull ? CHAIN_CELLS : [CHAIN_CELLS[seed % CHAIN_CELLS.length] as string]
  const total: TestTally = { ...tally, failures: [...tally.failures], skips: [...tally.skips] }
  for (const cell of cells) {
    report(`\n-- localnet as ${cell}; to repeat: SLUICE_TEST_CHAIN=${cell}`)
    const { passed, failures, skips } = await withVariables({ SLUICE_TEST_CHAIN: cell, SLUICE_FULL: undefined }, () =>
      run([...(isFull ? CHAIN_TESTS : SHORT_CHAIN_TESTS)]),
    )
    total.passed += passed
    total.failures.push(...failures.map((failure) => `${cell}: ${failure}`))
    total.skips.push(...skips.map(({ test, reason }) => ({ test: `${cell}: ${test}`, reason })))
  }
  return total
}

/** Runs with variables of the environment set, or unset where undefined, and restores them. */
async function withVariables<Value>(
  variables: Readonly<Record<string, string | undefined>>,
  run: () => Promise<Value>,
): Promise<Value> {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const)
  const set = (entries: readonly (readonly [string, string | undefined])[]) => {
    for (const [name, value] of entries) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
  set(Object.entries(variables))
  try {
    return await run()
  } finally {
    set(before)
  }
}
