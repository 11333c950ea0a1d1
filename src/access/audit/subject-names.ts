import type { Records } from '../store/model.ts'
import type { AccessView } from '../store/store.ts'
import { displayToken } from '../token.ts'

export type SubjectNames = Readonly<Record<string, string>>

type NamedSubject = 'customers' | 'subscriptions' | 'nodes' | 'indexerCredentials' | 'tokens'

const PREFIXES: { readonly [K in NamedSubject]: { readonly prefix: string; nameOf(record: Records[K]): string } } = {
  customers: { prefix: 'cus_', nameOf: ({ name }) => name },
  subscriptions: { prefix: 'sub_', nameOf: ({ name }) => name },
  nodes: { prefix: 'node_', nameOf: ({ name }) => name },
  indexerCredentials: { prefix: 'idx_', nameOf: ({ username }) => username },
  tokens: { prefix: 'tok_', nameOf: ({ last4 }) => displayToken(last4) },
}

/** The present names of customers, subscriptions and nodes, database users, and the last characters of tokens. */
export async function namesOf(store: AccessView, ids: readonly string[]): Promise<SubjectNames> {
  const names = new Map<string, string>()
  for (const kind of Object.keys(PREFIXES) as NamedSubject[]) await addNames(kind)
  return Object.fromEntries(ids.flatMap((id) => (names.has(id) ? [[id, names.get(id) ?? '']] : [])))

  async function addNames<K extends NamedSubject>(kind: K): Promise<void> {
    const { prefix, nameOf } = PREFIXES[kind]
    const found = await store.getAll(
      kind,
      ids.filter((id) => id.startsWith(prefix)),
    )
    for (const [id, record] of found) names.set(id, nameOf(record))
  }
}
