import { type SubscriptionState, stateOf } from '../../access/effective-state.ts'
import { lookUp } from '../../access/provisioning/context.ts'
import {
  addCustomer,
  removeCustomer,
  renameCustomer,
  setContact,
  setCustomerState,
} from '../../access/provisioning/customers.ts'
import { addNote } from '../../access/provisioning/notes.ts'
import type { Customer, Note, Subscription } from '../../access/store/model.ts'
import { PAGE_LIMIT } from '../../contract/admin-routes.ts'
import type { Group } from './open.ts'

export type ListedCustomer = Customer & { readonly subscriptions: number }

export type ShownCustomer = {
  readonly customer: Customer
  /** `effectiveState` only where it differs from the stored one. */
  readonly subscriptions: readonly (Subscription & { readonly effectiveState?: SubscriptionState })[]
  readonly notes: readonly Note[]
  /** A remote customer is shown with the first of them. */
  readonly hasMoreSubscriptions: boolean
}

type Removed = {
  readonly customer: Customer
  /** The first of them; `cancelledCount` counts all. */
  readonly cancelled: readonly { id: string; name: string }[]
  readonly cancelledCount: number
}

export type CustomerOperations = {
  add(input: { name: string; contact: string }): Promise<Customer>
  list(input: { isRemovedIncluded: boolean }): Promise<readonly ListedCustomer[]>
  show(idOrName: string): Promise<ShownCustomer>
  rename(input: { customer: string; name: string }): Promise<Customer>
  setContact(input: { customer: string; contact: string }): Promise<Customer>
  setState(input: { customer: string; state: 'active' | 'suspended' }): Promise<Customer>
  remove(input: { customer: string; force: boolean }): Promise<Removed>
  addNote(input: { subject: string; text: string }): Promise<Note>
  setBillingId(input: { customer: string; billingId: string | null }): Promise<{ id: string; name: string }>
}

export const customers: Group<CustomerOperations> = {
  local(session, flags) {
    const { store, nowMs } = session
    const on = session.provisioning(flags)
    return {
      add: (input) => addCustomer(on, input),
      async list({ isRemovedIncluded }) {
        const counts = new Map<string, number>()
        for (const { customerId } of await store.list('subscriptions'))
          counts.set(customerId, (counts.get(customerId) ?? 0) + 1)
        return (await store.list('customers'))
          .filter(({ state }) => isRemovedIncluded || state !== 'removed')
          .map((customer) => ({ ...customer, subscriptions: counts.get(customer.id) ?? 0 }))
      },
      async show(idOrName) {
        const customer = await lookUp(store, 'customers', idOrName)
        const subscriptions = await store.find('subscriptions', { customerId: customer.id })
        const notes = await store.find('notes', { subjectId: customer.id })
        const shown = subscriptions.map((subscription) => {
          const effectiveState = stateOf(subscription, customer, nowMs)
          return effectiveState === subscription.state ? subscription : { ...subscription, effectiveState }
        })
        return { customer, subscriptions: shown, notes, hasMoreSubscriptions: false }
      },
      rename: (input) => renameCustomer(on, input),
      setContact: (input) => setContact(on, input),
      setState: (input) => setCustomerState(on, input),
      async remove(input) {
        const removed = await removeCustomer(on, input)
        return { ...removed, cancelledCount: removed.cancelled.length }
      },
      addNote: (input) => addNote(on, input),
      async setBillingId({ customer, billingId }) {
        const { id, name } = await lookUp(store, 'customers', customer)
        if (flags.dryRun !== true) await store.billing.setBillingId(on, id, billingId)
        return { id, name }
      },
    }
  },

  remote(api) {
    const change = (customer: string, body: object) =>
      api.call<Customer>('customerChange', { params: { customer }, body })
    return {
      add: (body) => api.call('customerAdd', { body }),
      async list({ isRemovedIncluded }) {
        const present = await api.list<ListedCustomer>('customerList')
        if (!isRemovedIncluded) return present
        return [...present, ...(await api.list<ListedCustomer>('customerList', { query: { state: 'removed' } }))]
      },
      async show(idOrName) {
        const found = await api.call<Customer & Omit<ShownCustomer, 'customer'>>('customerShow', {
          params: { customer: idOrName },
        })
        const { subscriptions, notes, hasMoreSubscriptions, ...customer } = found
        return { customer, subscriptions, notes, hasMoreSubscriptions }
      },
      rename: ({ customer, name }) => change(customer, { name }),
      setContact: ({ customer, contact }) => change(customer, { contact }),
      setState: ({ customer, state }) =>
        api.call(state === 'active' ? 'customerResume' : 'customerSuspend', { params: { customer } }),
      async remove({ customer, force }) {
        type Wire = Customer & Omit<Removed, 'customer'>
        const { cancelled, cancelledCount, ...record } = await api.call<Wire>('customerRemove', {
          params: { customer },
          query: { force: force ? 'true' : undefined },
        })
        return { customer: record, cancelled, cancelledCount }
      },
      addNote: (body) => api.call('noteAdd', { body }),
      async setBillingId({ customer, billingId }) {
        const set = await api.call<{ customerId: string; customer: string }>('customerBillingId', {
          params: { customer },
          body: { billing_id: billingId },
        })
        return { id: set.customerId, name: set.customer }
      },
    }
  },
}

/** Subscriptions in the response about one customer. */
export const SUBSCRIPTIONS_SHOWN = PAGE_LIMIT.default
