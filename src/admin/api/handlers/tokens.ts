import { lookUp } from '../../../access/provisioning/context.ts'
import { grantIndexer, revokeIndexer } from '../../../access/provisioning/indexer-credentials.ts'
import { type IssuedToken, issueToken, revokeTokens, rotateToken } from '../../../access/provisioning/tokens.ts'
import type { Subscription } from '../../../access/store/model.ts'
import type { AdminBodies } from '../../../contract/schemas/admin.ts'
import { isoTime, toWireJson } from '../../../contract/wire-json.ts'
import { ServiceError } from '../../../core/error.ts'
import { parseDuration } from '../../../core/human-units.ts'
import { mapInSlices } from '../../../platform/process/time-slices.ts'
import type { AdminCall, AdminHandlers } from '../handler.ts'
import { type HandlerDeps, provisioningOf } from './deps.ts'
import { cursorOf, pageOf, paramOf, textOf } from './query.ts'

type SecretHandlers = Pick<
  AdminHandlers,
  'tokenList' | 'tokenIssue' | 'tokenRotate' | 'tokenRevoke' | 'indexerGrant' | 'indexerRotate' | 'indexerRevoke'
>

/** Tokens and database users: the secrets of a subscription. */
export function secretHandlers(deps: HandlerDeps): SecretHandlers {
  const { store } = deps

  function wireOf(call: AdminCall, { secret, record, subscription }: IssuedToken & { subscription: Subscription }) {
    const { id, last4 } = record
    const wire = { subscription: subscription.name, subscription_id: subscription.id, token_id: id, last4 }
    // A dry run has made no token that works.
    return call.isDryRun
      ? { subscription: wire.subscription, subscription_id: wire.subscription_id }
      : { ...wire, token: secret }
  }

  const grant = (rotate: boolean) => async (call: AdminCall) => {
    const input = { subscription: paramOf(call, 'subscription'), rotate }
    const { record, password, subscription } = await grantIndexer(provisioningOf(deps, call), input)
    const wire = { subscription: subscription.name, subscription_id: subscription.id }
    const body = call.isDryRun ? wire : { ...wire, username: record.username, password }
    return { status: rotate ? 200 : 201, body }
  }

  return {
    async tokenList(call) {
      const name = textOf(call, 'subscription')
      const where = name === undefined ? {} : { subscriptionId: (await lookUp(store, 'subscriptions', name)).id }
      const page = await store.page('tokens', { ...pageOf(call), where })
      const subscriptions = await store.getAll(
        'subscriptions',
        page.items.map(({ subscriptionId }) => subscriptionId),
      )
      const lastUsed = await store.lastUsedOf(page.items.map(({ id }) => id))
      const items = await mapInSlices(page.items, ({ sha256: _sha256, ...token }) => ({
        ...(toWireJson(token) as object),
        subscription: subscriptions.get(token.subscriptionId)?.name ?? null,
        last_used_at: isoTime(lastUsed.get(token.id)),
      }))
      return { body: { items, next_cursor: cursorOf(page.next) } }
    },

    async tokenIssue(call) {
      const issued = await issueToken(provisioningOf(deps, call), { subscription: paramOf(call, 'subscription') })
      return { status: 201, body: wireOf(call, issued) }
    },

    async tokenRotate(call) {
      const { grace } = (call.body as AdminBodies['tokenRotate']) ?? {}
      const graceMs = grace === undefined ? 0 : parseDuration(grace)
      if (graceMs === undefined)
        throw new ServiceError('invalid-value', `"${grace}" is not a time span: write 1h, 30m or 2d`)
      const input = { subscription: paramOf(call, 'subscription'), graceMs }
      const issued = await rotateToken(provisioningOf(deps, call), input)
      const ended = issued.ended.map(({ id, last4, state, notAfter }) => ({ id, last4, state, notAfter }))
      return { body: { ...wireOf(call, issued), ended: toWireJson(ended) } }
    },

    async tokenRevoke(call) {
      const input = { subscription: paramOf(call, 'subscription') }
      const { subscription, ended } = await revokeTokens(provisioningOf(deps, call), input)
      const revoked = ended.map(({ id, last4 }) => ({ id, last4 }))
      return { body: { subscription: subscription.name, subscription_id: subscription.id, revoked } }
    },

    indexerGrant: grant(false),
    indexerRotate: grant(true),

    async indexerRevoke(call) {
      const input = { subscription: paramOf(call, 'subscription') }
      const { subscription, ended } = await revokeIndexer(provisioningOf(deps, call), input)
      const revoked = ended.map(({ username }) => username)
      return { body: { subscription: subscription.name, subscription_id: subscription.id, revoked } }
    },
  }
}
