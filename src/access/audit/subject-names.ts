import type { AccessView } from '../store/store.ts'
import { displayToken } from '../token.ts'

export type SubjectNames = Readonly<Record<string, string>>

/** The present names of customers, subscriptions and nodes, database users, and the last characters of tokens. */
export async function namesOf(store: AccessView, ids: readonly string[]): Promise<SubjectNames> {
  const named = await Promise.all(ids.map(async (id) => [id, await nameOf(store, id)] as const))
  return Object.fromEntries(named.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

async function nameOf(store: AccessView, id: string): Promise<string | undefined> {
  switch (id.slice(0, id.indexOf('_'))) {
    case 'cus':
      return (await store.get('customers', id))?.name
    case 'sub':
      return (await store.get('subscriptions', id))?.name
    case 'node':
      return (await store.get('nodes', id))?.name
    case 'idx':
      return (await store.get('indexerCredentials', id))?.username
    case 'tok': {
      const token = await store.get('tokens', id)
      return token && displayToken(token.last4)
    }
    default:
      return undefined
  }
}
