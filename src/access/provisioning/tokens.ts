import { ServiceError } from '../../core/error.ts'
import { actorName, type Subscription, type Token } from '../store/model.ts'
import type { AccessTransaction } from '../store/store.ts'
import { createToken } from '../token.ts'
import { lookUp, makeId, type Provisioning, runChange } from './context.ts'

/** A new token with its secret, which is not stored. */
export type IssuedToken = { readonly secret: string; readonly record: Token }

export const GRACE_MS_MAX = 7 * 24 * 3_600_000

/** Issues the first token of a subscription, or a new one after the last was revoked. */
export async function issueToken(
  on: Provisioning,
  input: { subscription: string },
): Promise<IssuedToken & { subscription: Subscription }> {
  return runChange(on, async (tx) => {
    const subscription = await lookUp(tx, 'subscriptions', input.subscription)
    refuseCancelled(subscription)
    const live = await liveTokens(tx, subscription.id)
    if (live.length > 0) {
      throw new ServiceError(
        'already-exists',
        `subscription "${subscription.name}" has a token (slc_…${live[0]?.last4}); a subscription has one`,
        {
          fix: `Replace it with: sluice token rotate ${subscription.name}`,
        },
      )
    }
    const issued = await putNewToken(on, tx, subscription.id)
    return {
      audit: { action: 'token.issue', subjects: [subscription.id, issued.record.id], after: auditOf(issued.record) },
      result: { ...issued, subscription },
    }
  })
}

/** Issues a new token and ends the current one at once or after `graceMs`; both share one quota. */
export async function rotateToken(
  on: Provisioning,
  input: { subscription: string; graceMs: number },
): Promise<IssuedToken & { subscription: Subscription; ended: readonly Token[] }> {
  if (!(input.graceMs >= 0 && input.graceMs <= GRACE_MS_MAX)) {
    throw new ServiceError('invalid-value', 'the grace of a rotation is at most 7 days')
  }
  return runChange(on, async (tx) => {
    const subscription = await lookUp(tx, 'subscriptions', input.subscription)
    refuseCancelled(subscription)
    const before = await liveTokens(tx, subscription.id)
    const ended = await endTokens(tx, subscription.id, on.nowMs, input.graceMs)
    const issued = await putNewToken(on, tx, subscription.id)
    return {
      audit: {
        action: 'token.rotate',
        subjects: [subscription.id, issued.record.id, ...ended.map((token) => token.id)],
        before: before.map(auditOf),
        after: { issued: auditOf(issued.record), ended: ended.map(auditOf) },
      },
      result: { ...issued, subscription, ended },
    }
  })
}

/** Revokes every token of the subscription. */
export async function revokeTokens(
  on: Provisioning,
  input: { subscription: string },
): Promise<{ subscription: Subscription; ended: readonly Token[] }> {
  return runChange(on, async (tx) => {
    const subscription = await lookUp(tx, 'subscriptions', input.subscription)
    const before = await liveTokens(tx, subscription.id)
    const ended = await endTokens(tx, subscription.id, on.nowMs, 0)
    if (ended.length === 0)
      throw new ServiceError('wrong-state', `subscription "${subscription.name}" has no token to revoke`, {
        fix: `Issue one with: sluice token issue ${subscription.name}`,
      })
    return {
      audit: {
        action: 'token.revoke',
        subjects: [subscription.id, ...ended.map((token) => token.id)],
        before: before.map(auditOf),
      },
      result: { subscription, ended },
    }
  })
}

async function liveTokens(tx: Pick<AccessTransaction, 'find'>, subscriptionId: string): Promise<Token[]> {
  return (await tx.find('tokens', { subscriptionId })).filter((token) => token.state !== 'revoked')
}

export async function putNewToken(
  on: Provisioning,
  tx: AccessTransaction,
  subscriptionId: string,
): Promise<IssuedToken> {
  const { secret, sha256, last4 } = createToken(on.random)
  const record: Token = {
    id: makeId('tok', on.random),
    revision: 0,
    subscriptionId,
    sha256,
    last4,
    state: 'active',
    createdAt: on.nowMs,
    createdBy: actorName(on.actor),
    notAfter: null,
  }
  await tx.put('tokens', record)
  return { secret, record }
}

/** At most one old token stays valid: the active token may retire, one that is already retiring is revoked. */
export async function endTokens(
  tx: AccessTransaction,
  subscriptionId: string,
  nowMs: number,
  graceMs: number,
): Promise<Token[]> {
  const live = await liveTokens(tx, subscriptionId)
  const ended = live.map((token): Token => {
    if (graceMs === 0 || token.state === 'retiring') return { ...token, state: 'revoked' }
    return { ...token, state: 'retiring', notAfter: nowMs + graceMs }
  })
  for (const token of ended) await tx.put('tokens', token)
  return ended
}

function refuseCancelled(subscription: Subscription): void {
  if (subscription.state !== 'cancelled') return
  throw new ServiceError('wrong-state', `subscription "${subscription.name}" is cancelled`)
}

/** The fields of a token for the audit log, without its hash. */
function auditOf(token: Token): object {
  return { id: token.id, last4: token.last4, state: token.state, notAfter: token.notAfter }
}
