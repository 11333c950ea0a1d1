import { buildRouteMap } from '@stricli/core'
import {
  type CutFlags,
  command,
  cutFlags,
  flag,
  type ListFlags,
  listFlags,
  optionalArgument,
  positional,
  type SecretFlags,
  secretFlags,
  subscriptionArgument,
} from '../../define.ts'

const load = () => import('./run/token.ts')

export const tokenRoutes = buildRouteMap({
  docs: { brief: 'Tokens: one per subscription, shown once' },
  routes: {
    issue: command<SecretFlags, [string]>({
      brief: 'Issue a token to a subscription without one',
      examples: ['acme-prod --print-token'],
      parameters: { flags: secretFlags, positional: positional(subscriptionArgument) },
      load: async () => (await load()).issueTokenCommand,
    }),
    rotate: command<SecretFlags & { grace?: string; yes?: boolean }, [string]>({
      brief: 'Replace the token; the old one is revoked at once, or after --grace',
      examples: ['acme-prod --yes --print-token', 'acme-prod --grace 1h --print-token'],
      parameters: {
        flags: {
          ...secretFlags,
          grace: flag.text('Keep the old token valid for this time (up to 7d), on the same quota', 'TIME'),
          yes: flag.switch('Skip the confirmation'),
        },
        positional: positional(subscriptionArgument),
      },
      load: async () => (await load()).rotateTokenCommand,
    }),
    revoke: command<CutFlags, [string]>({
      brief: 'Revoke the token; calls are refused within a second',
      examples: ['acme-prod --yes'],
      parameters: { flags: cutFlags, positional: positional(subscriptionArgument) },
      load: async () => (await load()).revokeTokenCommand,
    }),
    list: command<ListFlags, [string?]>({
      brief: 'List tokens by their last four characters',
      examples: ['', 'acme-prod'],
      parameters: {
        flags: listFlags,
        aliases: { o: 'output' },
        positional: positional(optionalArgument('SUB', 'Only this subscription')),
      },
      load: async () => (await load()).listTokens,
    }),
  },
})
