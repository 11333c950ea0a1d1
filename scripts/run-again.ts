import type { TestTally } from './run-tests.ts'

/** More failed files than this are not caused by a busy machine. */
const FILES_MAX = 12
const TIMES = 2

/**
 * Runs files that failed in parallel again, one by one. A file that then passes every time counts as unstable, not as failed; it is reported with
 * its first error and counted.
 */
export async function runAgain(
  tally: TestTally,
  runAlone: (file: string) => Promise<TestTally>,
  report: (line: string) => void,
): Promise<{ failures: string[]; unstable: string[] }> {
  const files = new Set(tally.failures.map(fileOf))
  const unstable: string[] = []
  if (files.size === 0) return { failures: [], unstable }
  if (files.size > FILES_MAX || [...files].some((file) => !file.endsWith('.test.ts')))
    return { failures: tally.failures, unstable }
  for (const file of files) {
    report(`\nAGAIN   ${file}, alone, ${TIMES} times`)
    let passes = 0
    while (passes < TIMES && (await runAlone(file)).failures.length === 0) passes += 1
    if (passes === TIMES) unstable.push(...tally.failures.filter((failure) => fileOf(failure) === file))
  }
  for (const failure of unstable) report(`UNSTABLE  ${failure}: failed in parallel, passed ${TIMES} times alone`)
  return { failures: tally.failures.filter((failure) => !unstable.includes(failure)), unstable }
}

function fileOf(failure: string): string {
  return failure.replace(/:.*/s, '')
}
