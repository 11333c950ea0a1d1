import { createHash } from 'node:crypto'
import { ServiceError } from '../../core/service-error.ts'
import type { IndexerCredential, Subscription } from '../model.ts'
import type { AccessTransaction } from '../store.ts'
import { createSecretText } from '../token.ts'
import { act, lookUp, makeId, type Provisioning } from './context.ts'

/** Database credentials at the one moment they can be seen. */
export type IssuedCredential = { readonly password: string; readonly record: IndexerCredential }

/** Grants the subscription its database user, or replaces the password of the one it has. */
export async function grantIndexer(
  on: Provisioning,
  input: { subscription: string; rotate: boolean },
): Promise<IssuedCredential & { subscription: Subscription }> {
  return act(on, async (tx) => {
    const subscription = await lookUp(tx, 'subscriptions', input.subscription)
    if (subscription.state === 'cancelled')
      throw new ServiceError('wrong-state', `subscription "${subscription.name}" is cancelled`)
    if (!subscription.products.includes('indexer')) {
      throw new ServiceError('wrong-state', `subscription "${subscription.name}" does not include indexer`)
    }
    const [live] = await liveCredentials(tx, subscription.id)
    if (live !== undefined && !input.rotate) {
      throw new ServiceError(
        'already-exists',
        `subscription "${subscription.name}" has the database user ${live.username}`,
        {
          fix: `Replace its password with: sluice indexer rotate ${subscription.name}`,
        },
      )
    }
    if (live === undefined && input.rotate) {
      throw new ServiceError('not-found', `subscription "${subscription.name}" has no database user`, {
        fix: `Grant one with: sluice indexer grant ${subscription.name}`,
      })
    }
    if (live !== undefined) await tx.put('indexerCredentials', { ...live, state: 'revoked' })
    const issued = await putNewCredential(on, tx, subscription.id)
    return {
      audit: {
        action: input.rotate ? 'indexer.rotate' : 'indexer.grant',
        subjects: [subscription.id, issued.record.id],
        after: { username: issued.record.username },
      },
      result: { ...issued, subscription },
    }
  })
}

export async function revokeIndexer(
  on: Provisioning,
  input: { subscription: string },
): Promise<{ subscription: Subscription; ended: readonly IndexerCredential[] }> {
  return act(on, async (tx) => {
    const subscription = await lookUp(tx, 'subscriptions', input.subscription)
    const ended = await endCredentials(tx, subscription.id)
    if (ended.length === 0)
      throw new ServiceError('wrong-state', `subscription "${subscription.name}" has no database user`)
    return {
      audit: {
        action: 'indexer.revoke',
        subjects: [subscription.id, ...ended.map((credential) => credential.id)],
        before: ended.map(({ username }) => ({ username })),
      },
      result: { subscription, ended },
    }
  })
}

export async function putNewCredential(
  on: Provisioning,
  tx: AccessTransaction,
  subscriptionId: string,
): Promise<IssuedCredential> {
  const password = createSecretText(on.random, 32)
  const id = makeId('idx', on.random)
  const record: IndexerCredential = {
    id,
    revision: 0,
    subscriptionId,
    username: `u_${id.slice(4, 16)}`,
    sha256: createHash('sha256').update(password).digest('hex'),
    state: 'active',
    createdAt: on.nowMs,
  }
  await tx.put('indexerCredentials', record)
  return { password, record }
}

export async function endCredentials(tx: AccessTransaction, subscriptionId: string): Promise<IndexerCredential[]> {
  const live = await liveCredentials(tx, subscriptionId)
  for (const credential of live) await tx.put('indexerCredentials', { ...credential, state: 'revoked' })
  return live
}

async function liveCredentials(tx: AccessTransaction, subscriptionId: string): Promise<IndexerCredential[]> {
  return (await tx.find('indexerCredentials', { subscriptionId })).filter((credential) => credential.state === 'active')
}
