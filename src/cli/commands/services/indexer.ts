import { buildRouteMap } from '@stricli/core'
import {
  argument,
  command,
  commonFlags,
  cutFlags,
  flag,
  optionalArgument,
  secretFlags,
  serviceFlags,
  subscriptionArgument,
} from '../../define.ts'

const load = () => import('./run/indexer.ts')
const loadData = () => import('./run/indexer-data.ts')

export const indexerRoutes = buildRouteMap({
  docs: { brief: 'Indexer: its own process, credentials, coverage, queries' },
  routes: {
    run: command({
      brief: 'Run the indexer as its own process',
      details:
        'Writes the tables from the nodes of upstreams.nodes and serves SQL on port 8123. If sluice serve runs beside it, set indexer.enabled = false there, use two state folders and one shared store.',
      examples: [''],
      flags: serviceFlags,
      load: async () =>
        (await import('./run/serve-until-signal.ts')).runnerOf(
          (await import('../../../processes/indexer.ts')).startIndexerProcess,
        ),
    }),
    grant: command({
      brief: 'Create the database user of a subscription; the password is shown once',
      examples: ['acme-sql --print-token'],
      flags: secretFlags,
      args: [subscriptionArgument],
      load: async () => (await load()).grantIndexerCommand,
    }),
    rotate: command({
      brief: 'Replace the database password; the user name stays',
      examples: ['acme-sql --yes --print-token'],
      flags: { yes: flag.switch('Skip the confirmation'), ...secretFlags },
      args: [subscriptionArgument],
      load: async () => (await load()).rotateIndexerCommand,
    }),
    revoke: command({
      brief: 'Revoke the database user',
      examples: ['acme-sql --yes'],
      flags: cutFlags,
      args: [subscriptionArgument],
      load: async () => (await load()).revokeIndexerCommand,
    }),
    status: command({
      brief: 'Show coverage of the tables, missing slots and running queries',
      examples: ['', '--json'],
      load: async () => (await loadData()).indexerStatus,
    }),
    backfill: command({
      brief: 'Write a range of slots from the upstream nodes into the tables; safe to interrupt and restart',
      examples: ['1 20'],
      flags: {
        detach: flag.switch('Return at once and continue in the background'),
        stop: flag.switch('Stop the running backfill'),
        ...commonFlags,
      },
      args: [optionalArgument('FROM', 'First slot'), optionalArgument('TO', 'Last slot')],
      load: async () => (await loadData()).indexerBackfill,
    }),
    query: command({
      brief: 'Run a query as the operator, with the same rules as for customers',
      examples: ["'select table_name, to_slot, lag_slots from coverage'", "'select count() from blocks' --format JSON"],
      flags: {
        format: flag.text('ClickHouse output format (default TabSeparatedWithNames)', 'NAME'),
        ...commonFlags,
      },
      args: [argument('SQL', 'The query')],
      load: async () => (await loadData()).indexerQuery,
    }),
  },
})
