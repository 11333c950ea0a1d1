import { stateOf } from '../../../access/effective-state.ts'
import { wireSubscription } from '../../../access/limit-rules.ts'
import { lookUp } from '../../../access/provisioning/context.ts'
import {
  addCustomer,
  removeCustomer,
  renameCustomer,
  setContact,
  setCustomerState,
} from '../../../access/provisioning/customers.ts'
import { addNote } from '../../../access/provisioning/notes.ts'
import type { Customer } from '../../../access/store/model.ts'
import type { AdminBodies } from '../../../contract/schemas/admin.ts'
import { toWireJson } from '../../../contract/wire-json.ts'
import { ServiceError } from '../../../core/error.ts'
import { mapInSlices } from '../../../platform/process/time-slices.ts'
import type { AdminCall, AdminHandlers, AdminReply } from '../handler.ts'
import { readBack } from '../read-back.ts'
import { type HandlerDeps, provisioningOf } from './deps.ts'
import { cursorOf, pageOf, paramOf, parseFlag, textOf } from './query.ts'

const STATES: readonly string[] = ['active', 'suspended', 'removed']
/** Cancelled subscriptions in the response to a removal; `cancelled_count` counts all. */
const CANCELLED_SHOWN = 1000
/** Subscriptions and notes in the response about one customer; the list of subscriptions has the others. */
const SUBSCRIPTIONS_SHOWN = 100

type CustomerHandlers = Pick<
  AdminHandlers,
  | 'customerList'
  | 'customerAdd'
  | 'customerShow'
  | 'customerChange'
  | 'customerSuspend'
  | 'customerResume'
  | 'customerRemove'
  | 'noteAdd'
>

export function customerHandlers(deps: HandlerDeps): CustomerHandlers {
  const { store } = deps

  /** The record as it is after the change; after a dry run, as it would be. */
  async function changed(call: AdminCall, customer: Customer, more: object = {}, status = 200): Promise<AdminReply> {
    const stored = call.isDryRun ? undefined : await readBack(() => store.get('customers', customer.id))
    const wire = toWireJson(stored ?? customer) as object
    return { status, body: { ...wire, ...more }, ...(stored && { revision: stored.revision }) }
  }

  const setState = (state: 'active' | 'suspended') => async (call: AdminCall) =>
    changed(call, await setCustomerState(provisioningOf(deps, call), { customer: paramOf(call, 'customer'), state }))

  return {
    async customerList(call) {
      const state = textOf(call, 'state')
      if (state !== undefined && !STATES.includes(state))
        throw new ServiceError('invalid-value', `"${state}" is not a state: use one of ${STATES.join(', ')}`)
      // As the command line: removed customers are listed only where they are asked for.
      const states = state === undefined ? STATES.filter((each) => each !== 'removed') : [state]
      const page = await store.page('customers', {
        ...pageOf(call),
        search: textOf(call, 'search'),
        isIncluded: (customer) => states.includes(customer.state),
        having: { state: states },
      })
      const counts = await store.subscriptionCounts(page.items.map(({ id }) => id))
      const items = await mapInSlices(page.items, (customer) => ({
        ...(toWireJson(customer) as object),
        subscriptions: counts.get(customer.id) ?? 0,
      }))
      return { body: { items, next_cursor: cursorOf(page.next) } }
    },

    async customerAdd(call) {
      const { name, contact = '' } = call.body as AdminBodies['customerAdd']
      return changed(call, await addCustomer(provisioningOf(deps, call), { name, contact }), {}, 201)
    },

    async customerShow(call) {
      const customer = await lookUp(store, 'customers', paramOf(call, 'customer'))
      const where = { customerId: customer.id }
      const { items: subscriptions, next } = await store.page('subscriptions', { where, limit: SUBSCRIPTIONS_SHOWN })
      const notes = await store.find('notes', { subjectId: customer.id })
      // As the command line: the effective state besides the stored one, where they differ.
      const shown = subscriptions.map((subscription) => {
        const effectiveState = stateOf(subscription, customer, call.nowMs)
        const wire = wireSubscription(subscription)
        return effectiveState === subscription.state ? wire : { ...wire, effectiveState }
      })
      const wire = toWireJson({ ...customer, subscriptions: shown, notes }) as object
      return { body: { ...wire, has_more_subscriptions: next !== null }, revision: customer.revision }
    },

    async customerChange(call) {
      const { name, contact } = call.body as AdminBodies['customerChange']
      const on = provisioningOf(deps, call)
      const customer = paramOf(call, 'customer')
      if (name !== undefined) return changed(call, await renameCustomer(on, { customer, name }))
      return changed(call, await setContact(on, { customer, contact: contact ?? '' }))
    },

    customerSuspend: setState('suspended'),
    customerResume: setState('active'),

    async customerRemove(call) {
      const input = { customer: paramOf(call, 'customer'), force: parseFlag(call, 'force') }
      const { customer, cancelled } = await removeCustomer(provisioningOf(deps, call), input)
      const shown = cancelled.slice(0, CANCELLED_SHOWN).map(({ id, name }) => ({ id, name }))
      return changed(call, customer, { cancelled: shown, cancelled_count: cancelled.length })
    },

    async noteAdd(call) {
      const note = await addNote(provisioningOf(deps, call), call.body as AdminBodies['noteAdd'])
      return { status: 201, body: toWireJson(note) }
    },
  }
}
