import { didYouMean } from '../../core/did-you-mean.ts'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import type { RecordKind, Records } from '../store/model.ts'
import type { AccessStore, AccessTransaction, AuditEntry, ChangeContext } from '../store/store.ts'

/** What every act of provisioning needs: the store it changes, who acts and when, and where new secrets and ids come from. */
export type Provisioning = ChangeContext & {
  readonly store: AccessStore
  readonly random: Random
  /** Work out and check everything, then leave the store as it was. */
  readonly dryRun?: boolean
}

/** Thrown inside a transaction to take it back; carries the result out. */
class DryRun extends Error {
  readonly result: unknown
  constructor(result: unknown) {
    super('dry run')
    this.result = result
  }
}

/** One change of the store, or the rehearsal of one. */
export async function act<T>(
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

/** An id that tells its kind and is hard to guess or mistype: no l, o, u. */
export function makeId(prefix: string, random: Random): string {
  let id = ''
  while (id.length < 16) {
    for (const byte of random.bytes(24)) {
      if (byte < 231 && id.length < 16) id += ID_ALPHABET[byte % 33]
    }
  }
  return `${prefix}_${id}`
}

const NAME = /^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/

export function parseName(text: string, what: string): string {
  if (NAME.test(text) && !/^(cus|sub|tok|idx|node|note|ref)_/.test(text)) return text
  throw new ServiceError(
    'invalid-value',
    `"${text}" is not a ${what} name: use 1 to 63 of a-z, 0-9, dot, dash and underscore, beginning and ending with a letter or digit`,
  )
}

/** Finds a record by its id or its name, and says plainly when there is none. */
export async function lookUp<K extends 'customers' | 'subscriptions' | 'nodes'>(
  from: Pick<AccessTransaction, 'get' | 'find'>,
  kind: K,
  idOrName: string,
): Promise<Records[K]> {
  const byName = { name: idOrName } as unknown as Partial<Records[K]>
  const found = (await from.get(kind, idOrName)) ?? (await from.find(kind, byName))[0]
  if (found !== undefined) return found
  const near = didYouMean(
    idOrName,
    (await from.find(kind, {})).map(({ name }) => name),
  )
  const hint = near === undefined ? '' : `, did you mean "${near}"?`
  throw new ServiceError('not-found', `there is no ${NOUNS[kind]} "${idOrName}"${hint}`, {
    fix: `List them with: sluice ${NOUNS[kind] === 'subscription' ? 'sub' : NOUNS[kind]} list`,
  })
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
}
