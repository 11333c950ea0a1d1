import { buildRouteMap } from '@stricli/core'
import {
  command,
  cutFlags,
  flag,
  listFlags,
  optionalArgument,
  secretFlags,
  subscriptionArgument,
} from '../../define.ts'

const load = () => import('./run/token.ts')

export const tokenRoutes = buildRouteMap({
  docs: { brief: 'Tokens: one per subscription, shown once' },
  routes: {
    issue: command({
      brief: 'Issue a token to a subscription without one',
      examples: ['acme-prod --print-token'],
      flags: secretFlags,
      args: [subscriptionArgument],
      load: async () => (await load()).issueTokenCommand,
    }),
    rotate: command({
      brief: 'Replace the token; the old one is revoked at once, or after --grace',
      details:
        'With --grace one earlier token stays valid: if the one before it still has a grace, that is revoked at once, after a confirmation.',
      examples: ['acme-prod --yes --print-token', 'acme-prod --grace 1h --print-token'],
      flags: {
        ...secretFlags,
        grace: flag.text('Keep the old token valid for this time (up to 7d), on the same quota', 'TIME'),
        yes: flag.switch('Skip the confirmation'),
      },
      args: [subscriptionArgument],
      load: async () => (await load()).rotateTokenCommand,
    }),
    revoke: command({
      brief: 'Revoke the token; calls are refused within a second',
      examples: ['acme-prod --yes'],
      flags: cutFlags,
      args: [subscriptionArgument],
      load: async () => (await load()).revokeTokenCommand,
    }),
    list: command({
      brief: 'List tokens by their last four characters',
      examples: ['', 'acme-prod'],
      flags: listFlags,
      args: [optionalArgument('SUB', 'Only this subscription')],
      load: async () => (await load()).listTokens,
    }),
  },
})
