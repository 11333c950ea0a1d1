import { buildRouteMap } from '@stricli/core'
import { type CutFlags, command, cutFlags, flag, type SecretFlags, secretFlags, word, words } from './define.ts'
import { notInBuild } from './not-in-build.ts'

const load = () => import('./run/indexer.ts')

const subscription = word('SUB', 'Subscription name or id')

export const indexerRoutes = buildRouteMap({
  docs: { brief: 'Indexer: database credentials' },
  routes: {
    grant: command<SecretFlags, [string]>({
      brief: 'Give a subscription its database user; the password is shown once',
      examples: ['acme-sql --print-token'],
      parameters: { flags: secretFlags, positional: words(subscription) },
      load: async () => (await load()).grantIndexerCommand,
    }),
    rotate: command<SecretFlags & { yes?: boolean }, [string]>({
      brief: 'Replace the database password; the user name stays',
      examples: ['acme-sql --yes --print-token'],
      parameters: { flags: { yes: flag.switch('Do not ask'), ...secretFlags }, positional: words(subscription) },
      load: async () => (await load()).rotateIndexerCommand,
    }),
    revoke: command<CutFlags, [string]>({
      brief: 'End the database user',
      examples: ['acme-sql --yes'],
      parameters: { flags: cutFlags, positional: words(subscription) },
      load: async () => (await load()).revokeIndexerCommand,
    }),
    status: notInBuild('indexer status', 'Tables, coverage and lag'),
    backfill: notInBuild('indexer backfill', 'Fill a range of slots'),
    query: notInBuild('indexer query', 'Run a query as the operator'),
  },
})
