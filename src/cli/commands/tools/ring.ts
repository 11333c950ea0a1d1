import { buildRouteMap } from '@stricli/core'
import { argument, command, commonFlags, flag, optionalArgument } from '../../define.ts'

const load = () => import('./run/ring.ts')

const file = argument('FILE', 'A ring or a snapshot, optionally compressed with zstd')

export const ringRoutes = buildRouteMap({
  docs: { brief: 'Execution event ring' },
  routes: {
    inspect: command({
      brief: 'Show the header and schema of a ring, and its events by type',
      examples: ['snapshot.zst', 'snapshot.zst --json'],
      args: [file],
      load: async () => (await load()).inspectRingCommand,
    }),
    fold: command({
      brief: 'Fold a ring or snapshot into TPS, contention, lifecycle and top accesses',
      details:
        'With --json one JSON object per line: each block with its TPS and ContentionData, then the lifecycle record of each block, then TopAccesses.',
      examples: ['snapshot.zst', 'snapshot.zst --json', 'snapshot.zst --json --counters 100000'],
      flags: {
        ...commonFlags,
        counters: flag.text(
          'Counters of the top accesses (default 1000); with more keys than counters the counts are estimates',
          'N',
        ),
        top: flag.text('Length of the top lists (default 10)', 'N'),
      },
      args: [file],
      load: async () => (await load()).foldRingCommand,
    }),
    record: command({
      brief: 'Record a live ring into a new file',
      details: 'The file is a snapshot for the other ring commands. A name that ends in .zst compresses it.',
      examples: [
        'recording.zst --seconds 1 --ring snapshot.ring',
        'recording.ring --ring snapshot.ring --from oldest --seconds 1',
      ],
      flags: {
        ...commonFlags,
        seconds: flag.text('Duration in seconds (default 10)', 'N'),
        ring: flag.text('The ring to record (default: the one the execution service reads)', 'PATH'),
        from: flag.choice('Start at the oldest or the newest block (default newest)', ['oldest', 'newest']),
      },
      args: [argument('FILE', 'The new file')],
      load: async () => (await load()).recordRingCommand,
    }),
    watch: command({
      brief: 'Watch a ring live',
      details:
        'On a terminal the view refreshes twice a second; elsewhere it prints one line per block. Quit with Ctrl-C.',
      examples: ['--seconds 1', 'snapshot.ring --seconds 1'],
      flags: { ...commonFlags, seconds: flag.text('Stop after this many seconds', 'N') },
      args: [optionalArgument('FILE', 'The ring (default: the one the execution service reads)')],
      load: async () => (await load()).watchRingCommand,
    }),
  },
})
