import { allCases, type CaseFigure, startMeasuredSluice } from '../test/request-cost/measure.ts'

/**
 * The longest uninterrupted CPU time that one request takes on an event loop: a corpus of worst-case requests to every
 * endpoint of a complete Sluice over the embedded chain, one at a time.
 *   node bench/work.ts [rounds] [name]      runs per case, of which the best counts; only cases whose name contains this
 */
const rounds = Number(process.argv[2] ?? 3)
const only = process.argv[3] ?? ''

await using measured = await startMeasuredSluice()
const figures: CaseFigure[] = []
for (const work of allCases().filter(({ name }) => name.includes(only))) {
  const figure = await measured.measure(work, rounds)
  figures.push(figure)
  process.stderr.write(`${JSON.stringify(figure).slice(0, 400)}\n`)
}
const byWork = figures.toSorted((one, other) => (other.worst?.cpuMs ?? 0) - (one.worst?.cpuMs ?? 0))
process.stdout.write(
  `${JSON.stringify({
    bench: 'work',
    cases: figures.length,
    over50Ms: figures.filter(({ worst }) => (worst?.cpuMs ?? 0) > 50).length,
    worst: byWork.slice(0, 12).map(({ name, worst }) => ({ name, cpuMs: worst?.cpuMs, program: worst?.program })),
  })}\n`,
)
