import { buildRouteMap } from '@stricli/core'
import {
  argument,
  type CommonFlags,
  type CutFlags,
  command,
  commonFlags,
  cutFlags,
  flag,
  optionalArgument,
  positional,
  type SecretFlags,
  secretFlags,
  subscriptionArgument,
} from '../../define.ts'

const load = () => import('./run/indexer.ts')
const loadData = () => import('./run/indexer-data.ts')

export const indexerRoutes = buildRouteMap({
  docs: { brief: 'Indexer: credentials, coverage, queries' },
  routes: {
    grant: command<SecretFlags, [string]>({
      brief: 'Create the database user of a subscription; the password is shown once',
      examples: ['acme-sql --print-token'],
      parameters: { flags: secretFlags, positional: positional(subscriptionArgument) },
      load: async () => (await load()).grantIndexerCommand,
    }),
    rotate: command<SecretFlags & { yes?: boolean }, [string]>({
      brief: 'Replace the database password; the user name stays',
      examples: ['acme-sql --yes --print-token'],
      parameters: {
        flags: { yes: flag.switch('Skip the confirmation'), ...secretFlags },
        positional: positional(subscriptionArgument),
      },
      load: async () => (await load()).rotateIndexerCommand,
    }),
    revoke: command<CutFlags, [string]>({
      brief: 'Revoke the database user',
      examples: ['acme-sql --yes'],
      parameters: { flags: cutFlags, positional: positional(subscriptionArgument) },
      load: async () => (await load()).revokeIndexerCommand,
    }),
    status: command<CommonFlags>({
      brief: 'Show coverage of the tables, missing slots and running queries',
      examples: ['', '--json'],
      parameters: { flags: commonFlags },
      load: async () => (await loadData()).indexerStatus,
    }),
    backfill: command<CommonFlags & { detach?: boolean; stop?: boolean }, [string | undefined, string | undefined]>({
      brief: 'Write a range of slots from the upstream nodes into the tables; safe to interrupt and restart',
      examples: ['1 20'],
      parameters: {
        flags: {
          detach: flag.switch('Return at once and continue in the background'),
          stop: flag.switch('Stop the running backfill'),
          ...commonFlags,
        },
        positional: positional(optionalArgument('FROM', 'First slot'), optionalArgument('TO', 'Last slot')),
      },
      load: async () => (await loadData()).indexerBackfill,
    }),
    query: command<CommonFlags & { format?: string }, [string]>({
      brief: 'Run a query as the operator, with the same rules as for customers',
      examples: ["'select table_name, to_slot, lag_slots from coverage'", "'select count() from blocks' --format JSON"],
      parameters: {
        flags: {
          format: flag.text('ClickHouse output format (default TabSeparatedWithNames)', 'NAME'),
          ...commonFlags,
        },
        positional: positional(argument('SQL', 'The query')),
      },
      load: async () => (await loadData()).indexerQuery,
    }),
  },
})
