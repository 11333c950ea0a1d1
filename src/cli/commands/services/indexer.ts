import { buildRouteMap } from '@stricli/core'
import {
  type CommonFlags,
  type CutFlags,
  command,
  commonFlags,
  cutFlags,
  flag,
  optionalWord,
  type SecretFlags,
  secretFlags,
  subscriptionWord,
  word,
  words,
} from '../../define.ts'

const load = () => import('./run/indexer.ts')
const loadData = () => import('./run/indexer-data.ts')

export const indexerRoutes = buildRouteMap({
  docs: { brief: 'Indexer: credentials, coverage, queries' },
  routes: {
    grant: command<SecretFlags, [string]>({
      brief: 'Give a subscription its database user; the password is shown once',
      examples: ['acme-sql --print-token'],
      parameters: { flags: secretFlags, positional: words(subscriptionWord) },
      load: async () => (await load()).grantIndexerCommand,
    }),
    rotate: command<SecretFlags & { yes?: boolean }, [string]>({
      brief: 'Replace the database password; the user name stays',
      examples: ['acme-sql --yes --print-token'],
      parameters: { flags: { yes: flag.switch('Do not ask'), ...secretFlags }, positional: words(subscriptionWord) },
      load: async () => (await load()).rotateIndexerCommand,
    }),
    revoke: command<CutFlags, [string]>({
      brief: 'End the database user',
      examples: ['acme-sql --yes'],
      parameters: { flags: cutFlags, positional: words(subscriptionWord) },
      load: async () => (await load()).revokeIndexerCommand,
    }),
    status: command<CommonFlags>({
      brief: 'How far the tables reach, what is missing, and what runs',
      examples: ['', '--json'],
      parameters: { flags: commonFlags },
      load: async () => (await loadData()).indexerStatus,
    }),
    backfill: command<CommonFlags & { detach?: boolean; stop?: boolean }, [string | undefined, string | undefined]>({
      brief: 'Write a range of slots from the nodes into the tables; may be broken off and started again',
      examples: ['1 20'],
      parameters: {
        flags: {
          detach: flag.switch('Return at once and let it run'),
          stop: flag.switch('Stop the one that runs'),
          ...commonFlags,
        },
        positional: words(optionalWord('FROM', 'First slot'), optionalWord('TO', 'Last slot')),
      },
      load: async () => (await loadData()).indexerBackfill,
    }),
    query: command<CommonFlags & { format?: string }, [string]>({
      brief: 'Ask the tables as the operator, under the rules that hold for customers',
      examples: ["'select table_name, to_slot, lag_slots from coverage'", "'select count() from blocks' --format JSON"],
      parameters: {
        flags: { format: flag.text('Format of ClickHouse (default TabSeparatedWithNames)', 'NAME'), ...commonFlags },
        positional: words(word('SQL', 'The query')),
      },
      load: async () => (await loadData()).indexerQuery,
    }),
  },
})
