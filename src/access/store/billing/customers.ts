import { ServiceError } from '../../../core/error.ts'
import type { SqlReader } from '../../../platform/db/sql.ts'
import type { TableRows } from '../rows.ts'
import type { AccessTransaction } from '../store.ts'
import type { BillingTablesDeps } from './deps.ts'
import { markHoursOf } from './hours.ts'
import type { BillingStore } from './store.ts'
import { BILLING_CUSTOMER_TABLE } from './tables.ts'
import { inParts, placeholders } from './value-parts.ts'

/** The names of customers in the billing system. */
export function createBillingCustomers({
  database,
  rows,
  change,
}: BillingTablesDeps): Pick<BillingStore, 'setBillingId' | 'billingIds'> {
  const customers = rows(BILLING_CUSTOMER_TABLE)
  return {
    setBillingId: (context, customerId, billingId) =>
      change(context, async (records, tx) => {
        await raiseRevision(records, customerId, context.ifRevision)
        const before = await readBillingIds(tx, rows, [customerId])
        if (billingId === null) await tx.run('DELETE FROM billing_customers WHERE customer_id = ?', [customerId])
        else await tx.run(customers.upsert, customers.encode({ customerId, billingId }))
        await markHoursOf(tx, customerId)
        return {
          audit: {
            action: 'customer.billing-id',
            subjects: [customerId],
            before: { billingId: before.get(customerId) ?? null },
            after: { billingId },
          },
          result: undefined,
        }
      }),
    billingIds: (customerIds) => readBillingIds(database, rows, customerIds),
  }
}

async function readBillingIds(
  on: SqlReader,
  rows: TableRows,
  customerIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const customers = rows(BILLING_CUSTOMER_TABLE)
  const found = new Map<string, string>()
  for (const some of inParts(customerIds)) {
    for (const row of await on.rows(customers.select(`WHERE customer_id IN (${placeholders(some)})`), some)) {
      const { customerId, billingId } = customers.decode(row)
      found.set(customerId, billingId)
    }
  }
  return found
}

/** Who changes the customer next sees that this change came first. */
async function raiseRevision(
  records: AccessTransaction,
  customerId: string,
  ifRevision: number | undefined,
): Promise<void> {
  const customer = await records.get('customers', customerId)
  if (customer === undefined) return
  const { name, revision } = customer
  if (ifRevision !== undefined && ifRevision !== revision)
    throw new ServiceError('revision-changed', `customer "${name}" has revision ${revision}, not ${ifRevision}`, {
      fields: { revision, expected: ifRevision },
    })
  await records.put('customers', customer)
}
