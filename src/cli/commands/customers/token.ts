import { buildRouteMap } from '@stricli/core'
import {
  type CutFlags,
  command,
  cutFlags,
  flag,
  type ListFlags,
  listFlags,
  optionalWord,
  type SecretFlags,
  secretFlags,
  subscriptionWord,
  words,
} from '../../define.ts'

const load = () => import('./run/token.ts')

export const tokenRoutes = buildRouteMap({
  docs: { brief: 'Tokens: one per subscription, shown once' },
  routes: {
    issue: command<SecretFlags, [string]>({
      brief: 'Issue a token where the last one was revoked',
      examples: ['acme-prod --print-token'],
      parameters: { flags: secretFlags, positional: words(subscriptionWord) },
      load: async () => (await load()).issueTokenCommand,
    }),
    rotate: command<SecretFlags & { grace?: string; yes?: boolean }, [string]>({
      brief: 'Replace the token; the old one ends at once, or after --grace',
      examples: ['acme-prod --yes --print-token', 'acme-prod --grace 1h --print-token'],
      parameters: {
        flags: {
          ...secretFlags,
          grace: flag.text('Keep the old token this long (up to 7d), on the same quota', 'TIME'),
          yes: flag.switch('Do not ask'),
        },
        positional: words(subscriptionWord),
      },
      load: async () => (await load()).rotateTokenCommand,
    }),
    revoke: command<CutFlags, [string]>({
      brief: 'End the token now; calls are refused within a second',
      examples: ['acme-prod --yes'],
      parameters: { flags: cutFlags, positional: words(subscriptionWord) },
      load: async () => (await load()).revokeTokenCommand,
    }),
    list: command<ListFlags, [string?]>({
      brief: 'List tokens by their last four characters',
      examples: ['', 'acme-prod'],
      parameters: {
        flags: listFlags,
        aliases: { o: 'output' },
        positional: words(optionalWord('SUB', 'Only of this subscription')),
      },
      load: async () => (await load()).listTokens,
    }),
  },
})
