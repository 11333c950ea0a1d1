import { didYouMean } from '../../core/did-you-mean.ts'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import type { RecordKind, Records } from '../store/model.ts'
import type { AccessStore, AccessTransaction, AuditEntry, ChangeContext, NamedKind } from '../store/store.ts'

/** What every provisioning function needs: the store, the actor and time of the change, and the source of new secrets and ids. */
export type Provisioning = ChangeContext & {
  readonly store: AccessStore
  readonly random: Random
  /** Performs all checks and computes the result, then rolls back. */
  readonly dryRun?: boolean
  /** The change is refused with `revision-changed` if the record that it names has another revision. */
  readonly ifRevision?: number | undefined
}

/** Thrown inside a transaction to roll it back; carries the result. */
class DryRun extends Error {
  readonly result: unknown
  constructor(result: unknown) {
    super('dry run')
    this.result = result
  }
}

/** Runs one change of the store, or a dry run of it. */
export async function runChange<T>(
  on: Provisioning,
  work: (tx: AccessTransaction) => Promise<{ audit: AuditEntry; result: T }>,
): Promise<T> {
  const { store, actor, nowMs, dryRun } = on
  if (dryRun !== true) return store.change({ actor, nowMs }, work)
  try {
    return await store.change({ actor, nowMs }, async (tx) => {
      throw new DryRun((await work(tx)).result)
    })
  } catch (error) {
    if (error instanceof DryRun) return error.result as T
    throw error
  }
}

const ID_ALPHABET = '0123456789abcdefghijkmnpqrstvwxyz'

/** A random id with the prefix of its kind, without the easily mistyped letters l, o and u. */
export function makeId(prefix: string, random: Random): string {
  let id = ''
  while (id.length < 16) {
    for (const byte of random.bytes(24)) {
      if (byte < 231 && id.length < 16) id += ID_ALPHABET[byte % 33]
    }
  }
  return `${prefix}_${id}`
}

/** Whether the text begins like an id of a record. No name does. */
export function hasIdPrefix(text: string): boolean {
  return /^(cus|sub|tok|idx|node|note|ref|adm)_/.test(text)
}

const NAME = /^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/

export function parseName(text: string, what: string): string {
  if (NAME.test(text) && !hasIdPrefix(text)) return text
  throw new ServiceError(
    'invalid-value',
    `"${text}" is not a ${what} name: use 1 to 63 of a-z, 0-9, dot, dash and underscore, beginning and ending with a letter or digit`,
  )
}

/** Finds a record by its id or its name; throws `not-found` with a suggestion otherwise. */
export async function lookUp<K extends NamedKind>(
  from: Pick<AccessTransaction, 'get' | 'find' | 'names'>,
  kind: K,
  idOrName: string,
): Promise<Records[K]> {
  const byName = { name: idOrName } as unknown as Partial<Records[K]>
  const found = (await from.get(kind, idOrName)) ?? (await from.find(kind, byName))[0]
  if (found !== undefined) return found
  const near = didYouMean(idOrName, await suggestedNames(from, kind, idOrName))
  const hint = near === undefined ? '' : `, did you mean "${near}"?`
  throw new ServiceError('not-found', `there is no ${NOUNS[kind]} "${idOrName}"${hint}`, {
    fix: `List them with: sluice ${NOUNS[kind] === 'subscription' ? 'sub' : NOUNS[kind]} list`,
  })
}

/** Finds the record that a change names, and checks that it is the one that its author has seen. */
export async function lookUpToChange<K extends NamedKind>(
  { ifRevision }: Provisioning,
  tx: AccessTransaction,
  kind: K,
  idOrName: string,
): Promise<Records[K]> {
  const found = await lookUp(tx, kind, idOrName)
  refuseOtherRevision(NOUNS[kind], found, ifRevision)
  return found
}

/** Throws `revision-changed` unless the record is the one that the author of a change has seen. */
export function refuseOtherRevision(
  noun: string,
  { name, revision }: { readonly name: string; readonly revision: number },
  ifRevision: number | undefined,
): void {
  if (ifRevision === undefined || ifRevision === revision) return
  throw new ServiceError('revision-changed', `${noun} "${name}" has revision ${revision}, not ${ifRevision}`, {
    fields: { revision, expected: ifRevision },
  })
}

/** Names that are compared with a name that does not exist. Of more, those that begin like it. */
const SUGGESTED_MAX = 1000

async function suggestedNames(
  from: Pick<AccessTransaction, 'names'>,
  kind: NamedKind,
  idOrName: string,
): Promise<string[]> {
  const first = await from.names(kind, { after: '', limit: SUGGESTED_MAX + 1 })
  if (first.length <= SUGGESTED_MAX) return first
  return from.names(kind, { after: idOrName.slice(0, 1), limit: SUGGESTED_MAX })
}

const NOUNS: Record<RecordKind, string> = {
  customers: 'customer',
  subscriptions: 'subscription',
  tokens: 'token',
  destinations: 'destination',
  indexerCredentials: 'indexer credential',
  nodes: 'node',
  notes: 'note',
  refunds: 'refund',
  admins: 'administrator',
}
