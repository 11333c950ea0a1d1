import { NEW_META, writeMeta } from '../../../src/access/store/meta.ts'
import { latestVersion, MIGRATIONS } from '../../../src/access/store/migrations.ts'
import type { Customer, RecordKind, Records, Subscription, Token } from '../../../src/access/store/model.ts'
import { addToSum, EMPTY_TALLY } from '../../../src/access/store/record-access.ts'
import { createTableRows } from '../../../src/access/store/rows.ts'
import { RECORD_TABLES, type Tally } from '../../../src/access/store/tables.ts'
import { createSeededRandom } from '../../../src/core/random.ts'
import type { SqlDatabase, SqlWriter } from '../../../src/platform/db/sql.ts'

const BATCH_ROWS = 400

export type SeededSubscription = { customer: Customer; subscription: Subscription; token: Token }

/** The `index`-th generated subscription, with its own customer and token. */
export function seededSubscription(index: number): SeededSubscription {
  const random = createSeededRandom(index)
  const hex = (bytes: number) => Buffer.from(random.bytes(bytes)).toString('hex')
  const revision = index + 1
  const createdAt = 1_800_000_000_000 + index
  const customerId = `cus_${hex(8)}`
  const subscriptionId = `sub_${hex(8)}`
  return {
    customer: {
      id: customerId,
      revision,
      name: `customer-${index}`,
      contact: `mail-${index}@example.com`,
      state: 'active',
      createdAt,
    },
    subscription: {
      id: subscriptionId,
      revision,
      customerId,
      name: `subscription-${index}`,
      plan: ['free', 'starter', 'growth', 'pro', 'scale'][index % 5] as string,
      products: index % 3 === 0 ? ['bundle'] : ['bundle', 'indexer'],
      overrides: index % 100 === 0 ? { unitsPerSecond: 1000 + (index % 1000) } : {},
      state: 'active',
      createdAt,
      validUntil: index % 2 === 0 ? null : createdAt + 86_400_000,
    },
    token: {
      id: `tok_${hex(8)}`,
      revision,
      subscriptionId,
      sha256: hex(32),
      last4: hex(2),
      state: 'active',
      createdAt,
      createdBy: 'root',
      notAfter: null,
    },
  }
}

/** Fills an empty store with many subscriptions at once, bypassing the audit log: for measurements only. */
export async function seedSubscriptions(database: SqlDatabase, count: number): Promise<void> {
  const rows = createTableRows(database)
  await database.change(async (tx) => {
    const tallies: { [K in RecordKind]?: Tally } = {}
    for (let from = 0; from < count; from += BATCH_ROWS) {
      const batch = Array.from({ length: Math.min(BATCH_ROWS, count - from) }, (_, at) => seededSubscription(from + at))
      await insert(
        tx,
        'customers',
        batch.map(({ customer }) => customer),
      )
      await insert(
        tx,
        'subscriptions',
        batch.map(({ subscription }) => subscription),
      )
      await insert(
        tx,
        'tokens',
        batch.map(({ token }) => token),
      )
    }
    await writeMeta(tx, rows, { ...NEW_META, schemaVersion: latestVersion(MIGRATIONS), revision: count, tallies })

    async function insert<K extends RecordKind>(into: SqlWriter, kind: K, records: Records[K][]): Promise<void> {
      const of = rows(RECORD_TABLES[kind])
      const encoded = records.map((record) => of.encode(record))
      const positions = of.insert.slice(of.insert.lastIndexOf('('))
      await into.run(of.insert + `, ${positions}`.repeat(encoded.length - 1), encoded.flat())
      const { rows: had, sum } = tallies[kind] ?? EMPTY_TALLY
      tallies[kind] = {
        rows: had + encoded.length,
        sum: encoded.reduce((total, row) => addToSum(total, row.at(-1) as number), sum),
      }
    }
  })
}
