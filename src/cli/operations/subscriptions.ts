import { type SubscriptionState, stateOf } from '../../access/effective-state.ts'
import { endsWithin } from '../../access/ending.ts'
import { checkOverrides, type LimitChanges, mergeOverrides, wireMethods } from '../../access/limit-rules.ts'
import { lookUp } from '../../access/provisioning/context.ts'
import { recordRefund } from '../../access/provisioning/notes.ts'
import {
  addProduct,
  cancelSubscription,
  createSubscription,
  limitSubscription,
  removeProduct,
  renewSubscription,
  resumeSubscription,
  suspendSubscription,
} from '../../access/provisioning/subscriptions.ts'
import type { Destination, Note, Refund, Subscription, Token } from '../../access/store/model.ts'
import { parseUntil } from '../../contract/dates.ts'
import type { Limits } from '../../contract/limits.ts'
import type { ProductKey } from '../../contract/products.ts'
import { toWireJson } from '../../contract/wire-json.ts'
import { handoverCard } from '../../processes/compose/access/handover-card.ts'
import { checkDestination } from '../../processes/compose/services/shreds.ts'
import type { Group } from './open.ts'

export type ListedSubscription = Pick<
  Subscription,
  'id' | 'name' | 'plan' | 'products' | 'validUntil' | 'createdAt'
> & { readonly customer: string; readonly state: SubscriptionState }

export type ShownSubscription = {
  readonly subscription: Subscription
  readonly state: SubscriptionState
  readonly customer: string | undefined
  readonly limits: Limits
  readonly tokens: readonly Pick<Token, 'id' | 'last4' | 'state' | 'createdAt' | 'notAfter'>[]
  readonly destination: Destination | null
  readonly indexerUsers: readonly string[]
  readonly nodes: readonly string[]
  readonly notes: readonly Note[]
  readonly refunds: readonly Refund[]
}

export type NewSubscription = {
  readonly name: string
  readonly customer: string
  readonly plan: string
  readonly products: readonly ProductKey[]
  readonly overrides: LimitChanges
  readonly until: string | undefined
  readonly destination: { readonly address: string; readonly vouched: boolean } | undefined
}

export type CreatedSubscription = {
  readonly subscription: Subscription
  readonly customer: string
  readonly limits: Limits
  readonly destination: Destination | null
  /** Without secrets and card after a dry run. */
  readonly token?: string | undefined
  readonly indexer?: { readonly username: string; readonly password: string } | undefined
  readonly card?: string | undefined
  readonly notes: readonly string[]
}

export type LimitInput = {
  readonly present: Subscription
  readonly plan: string | undefined
  readonly given: LimitChanges
  /** Undefined where nothing is to be cleared. */
  readonly cleared: readonly (keyof Limits)[] | undefined
}

type ListFilter = {
  readonly customer: string | undefined
  readonly state: string | undefined
  readonly ending: { readonly text: string; readonly spanMs: number } | undefined
}

export type SubscriptionOperations = {
  find(idOrName: string): Promise<Subscription>
  list(filter: ListFilter): Promise<readonly ListedSubscription[]>
  show(idOrName: string): Promise<ShownSubscription>
  create(input: NewSubscription): Promise<CreatedSubscription>
  /** Throws an error that lists the plans if there is none of this name. */
  planName(name: string): Promise<string>
  limit(input: LimitInput): Promise<{ subscription: Subscription; notes: readonly string[] }>
  renew(input: { subscription: string; until: string }): Promise<Subscription>
  suspend(subscription: string): Promise<Subscription>
  resume(subscription: string): Promise<Subscription>
  cancel(subscription: string): Promise<Subscription>
  addProduct(input: {
    subscription: string
    product: ProductKey
  }): Promise<{ subscription: Subscription; hasToken: boolean }>
  removeProduct(input: { subscription: string; product: ProductKey }): Promise<Subscription>
  refund(input: { subscription: string; amount: string; currency: string; reason: string }): Promise<{
    refund: Refund
    subscription: Pick<Subscription, 'name'>
  }>
}

export const subscriptions: Group<SubscriptionOperations> = {
  local(session, flags) {
    const { store, nowMs } = session
    const on = session.provisioning(flags)
    return {
      find: (idOrName) => lookUp(store, 'subscriptions', idOrName),

      async list({ customer: name, state, ending }) {
        const only = name === undefined ? undefined : await lookUp(store, 'customers', name)
        const all =
          only === undefined
            ? await store.list('subscriptions')
            : await store.find('subscriptions', { customerId: only.id })
        const owners = new Map((await store.list('customers')).map((row) => [row.id, row]))
        return all
          .filter(
            (row) =>
              ending === undefined || endsWithin(row, owners.get(row.customerId), { nowMs, spanMs: ending.spanMs }),
          )
          .map((row) => {
            const owner = owners.get(row.customerId)
            return { ...row, customer: owner?.name ?? row.customerId, state: stateOf(row, owner, nowMs) }
          })
          .filter((row) => state === undefined || row.state === state)
      },

      async show(idOrName) {
        const subscription = await lookUp(store, 'subscriptions', idOrName)
        const { id } = subscription
        const customer = await store.get('customers', subscription.customerId)
        const tokens = (await store.find('tokens', { subscriptionId: id })).filter((token) => token.state !== 'revoked')
        const users = (await store.find('indexerCredentials', { subscriptionId: id })).filter(
          (row) => row.state === 'active',
        )
        return {
          subscription,
          state: stateOf(subscription, customer, nowMs),
          customer: customer?.name,
          limits: session.limitsOf(subscription),
          tokens: tokens.map((token) => {
            const { last4, state, createdAt, notAfter } = token
            return { id: token.id, last4, state, createdAt, notAfter }
          }),
          destination: (await store.get('destinations', id)) ?? null,
          indexerUsers: users.map(({ username }) => username),
          nodes: (await store.find('nodes', { subscriptionId: id })).map(({ name }) => name),
          notes: await store.find('notes', { subjectId: id }),
          refunds: await store.find('refunds', { subscriptionId: id }),
        }
      },

      planName: async (name) => session.plan(name).name,

      async create({ until, overrides: changes, ...input }) {
        if (input.destination !== undefined) checkDestination(input.destination.address, session)
        const plan = session.plan(input.plan).name
        const notes = checkOverrides(session.plans, plan, { present: {}, changes })
        const overrides = mergeOverrides({}, changes)
        const validUntil = until === undefined ? null : parseUntil(until, nowMs)
        const created = await createSubscription(on, { ...input, plan, overrides, validUntil })
        const { subscription, token, credential, destination } = created
        const limits = session.limitsOf(subscription)
        return {
          subscription,
          customer: created.customer.name,
          limits,
          destination: destination ?? null,
          token: token?.secret,
          indexer: credential && { username: credential.record.username, password: credential.password },
          card: flags.dryRun === true ? undefined : handoverCard({ ...created, limits, endpoints: session.endpoints }),
          notes,
        }
      },

      async limit({ present, plan, given, cleared = [] }) {
        const overrides = { ...given, ...Object.fromEntries(cleared.map((name) => [name, undefined])) }
        const check = { present: present.overrides, changes: overrides }
        const notes = checkOverrides(session.plans, plan ?? present.plan, check)
        return { subscription: await limitSubscription(on, { subscription: present.id, overrides, plan }), notes }
      },

      renew: ({ subscription, until }) => renewSubscription(on, { subscription, validUntil: parseUntil(until, nowMs) }),
      suspend: (subscription) => suspendSubscription(on, { subscription }),
      resume: (subscription) => resumeSubscription(on, { subscription }),
      cancel: (subscription) => cancelSubscription(on, { subscription }),

      async addProduct(input) {
        const subscription = await addProduct(on, input)
        const tokens = await store.find('tokens', { subscriptionId: subscription.id })
        return { subscription, hasToken: tokens.some(({ state }) => state !== 'revoked') }
      },
      removeProduct: (input) => removeProduct(on, input),
      refund: (input) => recordRefund(on, input),
    }
  },

  remote(api) {
    const at = (subscription: string) => ({ params: { subscription } })
    const change = async (...call: Parameters<typeof api.call>) => recordOf(await api.call<WireSubscription>(...call))
    const show = (idOrName: string) => api.call<WireSubscription & Detail>('subShow', at(idOrName))
    return {
      find: async (idOrName) => recordOf(await show(idOrName)),
      list: ({ customer, state, ending }) => api.list('subList', { query: { customer, state, ending: ending?.text } }),
      async show(idOrName) {
        const { customer, limits, tokens, destination, indexerUsers, nodes, notes, refunds, ...rest } =
          await show(idOrName)
        return {
          subscription: recordOf({ ...rest, customer, limits }),
          state: rest.state,
          customer: customer ?? undefined,
          limits,
          tokens,
          destination,
          indexerUsers,
          nodes,
          notes,
          refunds,
        }
      },
      async create({ name, customer, plan, products, overrides, until, destination }) {
        const body = { name, customer, plan, products, limits: limitsBody(overrides), valid_until: until, destination }
        const created = await api.call<WireSubscription & Omit<CreatedSubscription, 'subscription'>>('subCreate', {
          body,
        })
        const { token, indexer, card, destination: made, notes, ...rest } = created
        const { limits } = rest
        return {
          subscription: recordOf(rest),
          customer: rest.customer ?? customer,
          limits,
          destination: made,
          token,
          indexer,
          card,
          notes: notes ?? [],
        }
      },
      // The server checks it with the change.
      planName: async (name) => name,
      async limit({ present, plan, given, cleared }) {
        const body = { plan, limits: limitsBody(given), clear: cleared?.map((name) => snakeCase(name)) }
        const changed = await api.call<WireSubscription & { notes?: readonly string[] }>('subLimit', {
          ...at(present.id),
          body,
        })
        const { notes = [], ...rest } = changed
        return { subscription: recordOf(rest), notes }
      },
      renew: ({ subscription, until }) => change('subRenew', { ...at(subscription), body: { until } }),
      suspend: (subscription) => change('subSuspend', at(subscription)),
      resume: (subscription) => change('subResume', at(subscription)),
      cancel: (subscription) => change('subCancel', at(subscription)),
      async addProduct({ subscription, product }) {
        const changed = await change('productAdd', { params: { subscription, product } })
        return { subscription: changed, hasToken: (await show(changed.id)).tokens.length > 0 }
      },
      removeProduct: ({ subscription, product }) => change('productRemove', { params: { subscription, product } }),
      async refund({ subscription: idOrName, ...body }) {
        const { name } = await show(idOrName)
        return { refund: await api.call('refundAdd', { ...at(idOrName), body }), subscription: { name } }
      },
    }
  },
}

/** A subscription of the admin API: the record with its effective state, and with what belongs to it. */
type WireSubscription = Omit<Subscription, 'state'> & {
  readonly state: SubscriptionState
  /** Where it differs from `state`. */
  readonly storedState?: Subscription['state']
  readonly customer: string | null
  readonly limits: Limits
}
type Detail = Omit<ShownSubscription, 'subscription' | 'state' | 'customer' | 'limits'>

/** The record alone, as the store has it. */
function recordOf({ customer: _customer, limits: _limits, storedState, ...wire }: WireSubscription): Subscription {
  return { ...wire, state: storedState ?? (wire.state as Subscription['state']) }
}

/** Overrides as the API takes them: an override that is removed is "plan". */
function limitsBody(overrides: LimitChanges): object | undefined {
  const { methods } = overrides
  const entries = Object.entries({ ...overrides, ...(methods && { methods: wireMethods(methods) }) })
  if (entries.length === 0) return undefined
  return toWireJson(
    Object.fromEntries(entries.map(([name, value]) => [name, value === undefined ? 'plan' : value])),
  ) as object
}

function snakeCase(name: string): string {
  return Object.keys(toWireJson({ [name]: 0 }) as object)[0] ?? name
}
