import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { shareSeeds } from './share-seeds.ts'
import { WORLDS } from './worlds.ts'

/**
 * `npm run sim`: runs every world over ten thousand seeds, or one world over the given seeds, on all cores. Exits with 1 at the first violated
 * invariant, and when an expected event never occurred.
 */
const { values } = parseArgs({
  options: {
    world: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    seeds: { type: 'string', default: '10000' },
  },
})
/** From this many seeds on every event of a world must have occurred. */
const SEEDS_FOR_ALL_EVENTS = 200

const firstSeed = Number(values.seed)
const seeds = Number(values.seeds)
const worlds = WORLDS.filter(({ name }) => values.world === undefined || values.world === name)
if (worlds.length === 0 || !Number.isSafeInteger(firstSeed) || !(Number.isSafeInteger(seeds) && seeds > 0)) {
  process.stderr.write(
    `usage: npm run sim -- [--world ${WORLDS.map(({ name }) => name).join('|')}] [--seed N] [--seeds N]\n`,
  )
  process.exit(2)
}

const isTerminal = process.stderr.isTTY
for (const world of worlds) {
  const startMs = performance.now()
  const count = Math.ceil(seeds / (world.oneIn ?? 1))
  try {
    const { seen, never } = await shareSeeds(world.name, {
      firstSeed,
      seeds: count,
      threads: availableParallelism(),
      onSeed: (done) => isTerminal && process.stderr.write(`\r${world.name}: ${done} of ${count} `),
    })
    const seconds = Number(((performance.now() - startMs) / 1000).toFixed(1))
    process.stdout.write(
      `${isTerminal ? '\r' : ''}${JSON.stringify({ world: world.name, firstSeed, seeds: count, seconds, ...seen })}\n`,
    )
    if (never.length > 0 && count >= SEEDS_FOR_ALL_EVENTS) {
      process.stderr.write(`${world.name}: never happened: ${never.join(', ')}\n`)
      process.exitCode = 1
    }
  } catch (error) {
    process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
