import type { AdminRole } from '../../contract/admin-routes.ts'
import type { CustomerRecord, SubscriptionRecord } from '../client/wire.ts'
import { viewsOf } from './navigation.ts'
import type { Route } from './route.ts'

/** Something that a search or the palette goes to. */
export type Found = {
  readonly kind: 'view' | 'customer' | 'subscription'
  readonly name: string
  readonly note: string
  readonly route: Route
}

/** The views with this text in their title, those that begin with it first. */
export function findViews(role: AdminRole, text: string): Found[] {
  const wanted = text.trim().toLowerCase()
  return viewsOf(role)
    .map(({ view, title }) => ({ view, title, at: title.toLowerCase().indexOf(wanted) }))
    .filter(({ at }) => at >= 0)
    .toSorted((a, b) => Number(a.at > 0) - Number(b.at > 0))
    .map(({ view, title }) => ({ kind: 'view', name: title, note: '', route: { view, query: {} } }))
}

/** Views that begin with the text, records with it, then the other views. */
export function paletteOf(role: AdminRole, text: string, records: readonly Found[]): Found[] {
  const views = findViews(role, text)
  const wanted = text.trim().toLowerCase()
  const isFirst = ({ name }: Found): boolean => name.toLowerCase().startsWith(wanted)
  return [...views.filter(isFirst), ...records, ...views.filter((view) => !isFirst(view))]
}

export function foundRecords(
  customers: readonly CustomerRecord[],
  subscriptions: readonly SubscriptionRecord[],
): Found[] {
  return [
    ...customers.map(
      ({ name, contact }): Found => ({
        kind: 'customer',
        name,
        note: contact,
        route: { view: 'customers', id: name, query: {} },
      }),
    ),
    ...subscriptions.map(
      ({ name, customer = '' }): Found => ({
        kind: 'subscription',
        name,
        note: customer,
        route: { view: 'subscriptions', id: name, query: {} },
      }),
    ),
  ]
}
