import { createHash } from 'node:crypto'
import { ServiceError } from '../../core/error.ts'
import type { IndexerCredential, Subscription } from '../store/model.ts'
import type { AccessTransaction } from '../store/store.ts'
import { createSecretText } from '../token.ts'
import { lookUpToChange, makeId, type Provisioning, runChange } from './context.ts'

/** New database credentials with the password, which is not stored. */
export type IssuedCredential = { readonly password: string; readonly record: IndexerCredential }

/** Creates the database user of the subscription, or replaces its password. */
export async function grantIndexer(
  on: Provisioning,
  input: { subscription: string; rotate: boolean },
): Promise<IssuedCredential & { subscription: Subscription }> {
  return runChange(on, async (tx) => {
    const subscription = await lookUpToChange(on, tx, 'subscriptions', input.subscription)
    if (subscription.state === 'cancelled')
      throw new ServiceError('wrong-state', `subscription "${subscription.name}" is cancelled`)
    if (!subscription.products.includes('indexer')) {
      throw new ServiceError('wrong-state', `subscription "${subscription.name}" does not include indexer`, {
        fix: `Add it with: sluice sub add-product ${subscription.name} indexer`,
      })
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
    const issued = await putNewCredential(on, tx, subscription.id, live)
    return {
      audit: {
        action: input.rotate ? 'indexer.rotate' : 'indexer.grant',
        subjects: [subscription.id, issued.record.id],
        ...(live === undefined ? {} : { before: { username: live.username, createdAt: live.createdAt } }),
        after: { username: issued.record.username, createdAt: issued.record.createdAt },
      },
      result: { ...issued, subscription },
    }
  })
}

export async function revokeIndexer(
  on: Provisioning,
  input: { subscription: string },
): Promise<{ subscription: Subscription; ended: readonly IndexerCredential[] }> {
  return runChange(on, async (tx) => {
    const subscription = await lookUpToChange(on, tx, 'subscriptions', input.subscription)
    const ended = await endCredentials(tx, subscription.id)
    if (ended.length === 0)
      throw new ServiceError('wrong-state', `subscription "${subscription.name}" has no database user`, {
        fix: `Grant one with: sluice indexer grant ${subscription.name}`,
      })
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

/** A new database user, or a new password for the existing one, whose name stays. */
export async function putNewCredential(
  on: Provisioning,
  tx: AccessTransaction,
  subscriptionId: string,
  live?: IndexerCredential,
): Promise<IssuedCredential> {
  const password = createSecretText(on.random, 32)
  const sha256 = createHash('sha256').update(password).digest('hex')
  const id = makeId('idx', on.random)
  const fresh = { id, revision: 0, subscriptionId, username: `u_${id.slice(4, 16)}`, state: 'active' } as const
  const record: IndexerCredential = { ...(live ?? fresh), sha256, createdAt: on.nowMs }
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
