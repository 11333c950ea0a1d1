import { buildRouteMap } from '@stricli/core'
import { type CommonFlags, command, commonFlags, flag, optionalWord, word, words } from '../../define.ts'

const load = () => import('./run/ring.ts')

const file = word('FILE', 'A ring, or a snapshot of one, plain or compressed with zstd')

export type RingFoldFlags = CommonFlags & { readonly counters?: string; readonly top?: string }

export type RingRecordFlags = CommonFlags & {
  readonly seconds?: string
  readonly ring?: string
  readonly from?: 'oldest' | 'newest'
}

export type RingWatchFlags = CommonFlags & { readonly seconds?: string }

export const ringRoutes = buildRouteMap({
  docs: { brief: 'Execution event ring' },
  routes: {
    inspect: command<CommonFlags, [string]>({
      brief: 'Show the header, the schema and the events of a ring, counted by type',
      examples: ['snapshot.zst', 'snapshot.zst --json'],
      parameters: { flags: commonFlags, positional: words(file) },
      load: async () => (await load()).inspectRingCommand,
    }),
    fold: command<RingFoldFlags, [string]>({
      brief: 'Fold a ring or snapshot into TPS, contention, lifecycle and top accesses',
      details:
        'With --json one JSON object a line: each block with its TPS and ContentionData, then the lifecycle record of each block, then TopAccesses.',
      examples: ['snapshot.zst', 'snapshot.zst --json', 'snapshot.zst --json --counters 100000'],
      parameters: {
        flags: {
          ...commonFlags,
          counters: flag.text(
            'Counters of the top accesses (default 1000); more keys than counters make counts estimates',
            'N',
          ),
          top: flag.text('Length of the top lists (default 10)', 'N'),
        },
        positional: words(file),
      },
      load: async () => (await load()).foldRingCommand,
    }),
    record: command<RingRecordFlags, [string]>({
      brief: 'Record a live ring into a new file',
      details:
        'The file is a snapshot that every command here reads; a name that ends in .zst makes it a compressed one.',
      examples: [
        'recording.zst --seconds 1 --ring snapshot.ring',
        'recording.ring --ring snapshot.ring --from oldest --seconds 1',
      ],
      parameters: {
        flags: {
          ...commonFlags,
          seconds: flag.text('How long (default 10)', 'N'),
          ring: flag.text('The ring to record (default: the one the execution service reads)', 'PATH'),
          from: {
            kind: 'enum',
            values: ['oldest', 'newest'],
            optional: true,
            brief: 'Begin with the oldest or the newest block (default newest)',
          },
        },
        positional: words(word('FILE', 'The new file')),
      },
      load: async () => (await load()).recordRingCommand,
    }),
    watch: command<RingWatchFlags, [string?]>({
      brief: 'Watch a ring live',
      details:
        'On a terminal a picture that is drawn again twice a second; elsewhere one line a block. Ends with Ctrl-C.',
      examples: ['--seconds 1', 'snapshot.ring --seconds 1'],
      parameters: {
        flags: { ...commonFlags, seconds: flag.text('End after so long', 'N') },
        positional: words(optionalWord('FILE', 'The ring (default: the one the execution service reads)')),
      },
      load: async () => (await load()).watchRingCommand,
    }),
  },
})
