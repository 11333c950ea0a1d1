import type { AdminClient } from '../client/admin-client.ts'
import type { CustomerRecord, Page, SubscriptionRecord } from '../client/wire.ts'
import { type Found, foundRecords } from '../model/palette.ts'

const SHOWN_MAX = 6
export const SEARCH_CHARACTERS_MAX = 100
/** While the user types, only the last text is searched for. */
export const TYPING_MS = 150

export type FoundRecords = { readonly found: readonly Found[]; readonly error: string | undefined }

/** Customers and subscriptions by a part of their name or contact. */
export async function findRecords(client: AdminClient, text: string): Promise<FoundRecords> {
  const query = { search: text, limit: String(SHOWN_MAX) }
  const [customers, subscriptions] = await Promise.all([
    client.call<Page<CustomerRecord>>('customerList', { query }),
    client.call<Page<SubscriptionRecord>>('subList', { query }),
  ])
  return {
    found: foundRecords(customers.ok ? customers.value.items : [], subscriptions.ok ? subscriptions.value.items : []),
    error: customers.ok ? undefined : customers.error.message,
  }
}
