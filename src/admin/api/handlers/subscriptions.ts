import { isSubscriptionState, SUBSCRIPTION_STATES, stateOf } from '../../../access/effective-state.ts'
import { endsWithin } from '../../../access/ending.ts'
import { checkOverrides, mergeOverrides, wireLimits, wireSubscription } from '../../../access/limit-rules.ts'
import { lookUp } from '../../../access/provisioning/context.ts'
import { recordRefund } from '../../../access/provisioning/notes.ts'
import {
  addProduct,
  cancelSubscription,
  createSubscription,
  limitSubscription,
  parseProducts,
  removeProduct,
  renewSubscription,
  resumeSubscription,
  suspendSubscription,
} from '../../../access/provisioning/subscriptions.ts'
import type { Customer, Subscription } from '../../../access/store/model.ts'
import type { PageRequest } from '../../../access/store/page.ts'
import { parseUntil } from '../../../contract/dates.ts'
import type { ProductKey } from '../../../contract/products.ts'
import type { AdminBodies } from '../../../contract/schemas/admin.ts'
import { toWireJson } from '../../../contract/wire-json.ts'
import { ServiceError } from '../../../core/error.ts'
import { parseDuration } from '../../../core/human-units.ts'
import { mapInSlices } from '../../../platform/process/time-slices.ts'
import type { AdminCall, AdminHandlers, AdminReply } from '../handler.ts'
import { readBack } from '../read-back.ts'
import { type HandlerDeps, provisioningOf } from './deps.ts'
import { clearedOf, overridesOf } from './limits.ts'
import { cursorOf, pageOf, paramOf, textOf } from './query.ts'

type SubscriptionHandlers = Pick<
  AdminHandlers,
  | 'subList'
  | 'subCreate'
  | 'subShow'
  | 'subLimit'
  | 'subRenew'
  | 'subSuspend'
  | 'subResume'
  | 'subCancel'
  | 'productAdd'
  | 'productRemove'
  | 'refundAdd'
>

export function subscriptionHandlers(deps: HandlerDeps): SubscriptionHandlers {
  const { store, snapshot } = deps
  const limitsOf = ({ plan, overrides }: Subscription) => deps.plans().limitsOf(plan, overrides)

  function wireOf(subscription: Subscription, customer: Customer | undefined, nowMs: number): object {
    const wire = toWireJson({
      ...wireSubscription(subscription),
      customer: customer?.name ?? null,
      limits: wireLimits(limitsOf(subscription)),
    }) as object
    const state = stateOf(subscription, customer, nowMs)
    return { ...wire, state, ...(state === subscription.state ? {} : { stored_state: subscription.state }) }
  }

  async function changed(
    call: AdminCall,
    subscription: Subscription,
    { notes = [], owner }: { readonly notes?: readonly string[]; readonly owner?: Customer } = {},
  ): Promise<AdminReply> {
    const { id, customerId } = subscription
    const stored = call.isDryRun ? undefined : await readBack(() => store.get('subscriptions', id))
    const customer =
      owner ?? (await readBack(() => store.get('customers', customerId))) ?? snapshot().customer(customerId)
    const wire = wireOf(stored ?? subscription, customer, call.nowMs)
    return { body: { ...wire, ...(notes.length === 0 ? {} : { notes }) }, ...(stored && { revision: stored.revision }) }
  }

  type Change = (on: ReturnType<typeof provisioningOf>, input: { subscription: string }) => Promise<Subscription>
  const simple = (change: Change) => async (call: AdminCall) =>
    changed(call, await change(provisioningOf(deps, call), { subscription: paramOf(call, 'subscription') }))

  const product = (call: AdminCall): ProductKey => {
    const [key] = parseProducts(paramOf(call, 'product'), deps.offered)
    return key as ProductKey
  }

  return {
    async subList(call) {
      const filter = filterOf(deps, call)
      const customer = textOf(call, 'customer')
      const where = customer === undefined ? {} : { customerId: (await lookUp(store, 'customers', customer)).id }
      const page = await store.page('subscriptions', {
        ...pageOf(call),
        where,
        search: textOf(call, 'search'),
        ...filter,
      })
      const owners = await store.getAll(
        'customers',
        page.items.map((item) => item.customerId),
      )
      const items = await mapInSlices(page.items, (subscription) => {
        const { id, name, customerId, plan, products, validUntil, createdAt } = subscription
        const owner = owners.get(customerId)
        const shown = {
          id,
          name,
          customer: owner?.name ?? customerId,
          customerId,
          plan,
          products,
          validUntil,
          createdAt,
        }
        return { ...(toWireJson(shown) as object), state: stateOf(subscription, owner, call.nowMs) }
      })
      return { body: { items, next_cursor: cursorOf(page.next) } }
    },

    async subCreate(call) {
      const body = call.body as AdminBodies['subCreate']
      const { destination } = body
      const products = parseProducts((body.products ?? ['bundle']).join(','), deps.offered)
      if (destination !== undefined) deps.checkDestination(destination.address)
      const plan = deps.plans().get(body.plan ?? 'starter').name
      const changes = overridesOf(body.limits)
      const notes = checkOverrides(deps.plans(), plan, { present: {}, changes })
      const created = await createSubscription(provisioningOf(deps, call), {
        customer: body.customer,
        name: body.name,
        plan,
        products,
        overrides: mergeOverrides({}, changes),
        validUntil: body.valid_until === undefined ? null : parseUntil(body.valid_until, call.nowMs),
        destination: destination && { address: destination.address, vouched: destination.vouched === true },
      })
      const reply = await changed(call, created.subscription, { notes, owner: created.customer })
      const { token, credential } = created
      // A dry run has made no secret that works.
      const secrets = call.isDryRun
        ? {}
        : {
            ...(token === undefined ? {} : { token: token.secret }),
            ...(credential === undefined
              ? {}
              : { indexer: { username: credential.record.username, password: credential.password } }),
            card: deps.card(created),
          }
      const shown = { destination: toWireJson(created.destination ?? null), ...secrets }
      return { ...reply, status: 201, body: { ...(reply.body as object), ...shown } }
    },

    async subShow(call) {
      const subscription = await lookUp(store, 'subscriptions', paramOf(call, 'subscription'))
      const { id } = subscription
      const tokens = (await store.find('tokens', { subscriptionId: id })).filter(({ state }) => state !== 'revoked')
      const users = (await store.find('indexerCredentials', { subscriptionId: id })).filter(
        ({ state }) => state === 'active',
      )
      const more = toWireJson({
        tokens: tokens.map((token) => ({
          id: token.id,
          last4: token.last4,
          state: token.state,
          createdAt: token.createdAt,
          notAfter: token.notAfter,
        })),
        destination: (await store.get('destinations', id)) ?? null,
        indexerUsers: users.map(({ username }) => username),
        nodes: (await store.find('nodes', { subscriptionId: id })).map(({ name }) => name),
        notes: await store.find('notes', { subjectId: id }),
        refunds: await store.find('refunds', { subscriptionId: id }),
      }) as object
      const customer = await store.get('customers', subscription.customerId)
      return { body: { ...wireOf(subscription, customer, call.nowMs), ...more }, revision: subscription.revision }
    },

    async subLimit(call) {
      const body = call.body as AdminBodies['subLimit']
      const present = await lookUp(store, 'subscriptions', paramOf(call, 'subscription'))
      const plan = body.plan === undefined ? undefined : deps.plans().get(body.plan).name
      const given = overridesOf(body.limits)
      const cleared = clearedOf(body.clear ?? [], present.overrides)
      const [both] = Object.keys(cleared).filter((name) => Object.hasOwn(given, name))
      if (both !== undefined)
        throw new ServiceError('usage', `${both} is both set and cleared`, { fix: 'Use one of the two.' })
      const changes = { ...given, ...cleared }
      if (plan === undefined && body.clear === undefined && Object.keys(changes).length === 0)
        throw new ServiceError('usage', 'a plan or at least one limit is required', {
          fix: 'Give plan, limits or clear.',
        })
      const notes = checkOverrides(deps.plans(), plan ?? present.plan, { present: present.overrides, changes })
      const input = { subscription: present.id, overrides: changes, plan }
      return changed(call, await limitSubscription(provisioningOf(deps, call), input), { notes })
    },

    async subRenew(call) {
      const validUntil = parseUntil((call.body as AdminBodies['subRenew']).until, call.nowMs)
      const input = { subscription: paramOf(call, 'subscription'), validUntil }
      return changed(call, await renewSubscription(provisioningOf(deps, call), input))
    },

    subSuspend: simple(suspendSubscription),
    subResume: simple(resumeSubscription),
    subCancel: simple(cancelSubscription),
    productAdd: (call) => simple((on, input) => addProduct(on, { ...input, product: product(call) }))(call),
    productRemove: (call) => simple((on, input) => removeProduct(on, { ...input, product: product(call) }))(call),

    async refundAdd(call) {
      const body = call.body as AdminBodies['refundAdd']
      const input = { ...body, subscription: paramOf(call, 'subscription') }
      const { refund } = await recordRefund(provisioningOf(deps, call), input)
      return { status: 201, body: toWireJson(refund) }
    },
  }
}

type Filter = Pick<PageRequest<'subscriptions'>, 'isIncluded' | 'having' | 'ofCustomers'>

/** The condition of `state` and `ending`; none without either. The state of a customer is as the snapshot has it, up to a second old. */
function filterOf({ snapshot }: HandlerDeps, call: AdminCall): Filter {
  const { nowMs } = call
  const state = textOf(call, 'state')
  if (state !== undefined && !isSubscriptionState(state))
    throw new ServiceError('invalid-value', `"${state}" is not a state: use one of ${SUBSCRIPTION_STATES.join(', ')}`)
  const ending = textOf(call, 'ending')
  const spanMs = ending === undefined ? undefined : parseDuration(ending)
  if (ending !== undefined && !(spanMs !== undefined && spanMs > 0))
    throw new ServiceError('invalid-value', `"${ending}" is not a time span for ending`, { fix: 'Write 7d.' })
  if (state === undefined && spanMs === undefined) return {}
  const customers = snapshot()
  return {
    isIncluded(subscription) {
      const customer = customers.customer(subscription.customerId)
      if (state !== undefined && stateOf(subscription, customer, nowMs) !== state) return false
      return spanMs === undefined || endsWithin(subscription, customer, { nowMs, spanMs })
    },
    having: {
      state: [state === 'suspended' || state === 'cancelled' ? state : 'active'],
      ...(spanMs === undefined ? {} : { validUntil: { above: nowMs, upTo: nowMs + spanMs } }),
      ...(state === 'expired' ? { validUntil: { upTo: nowMs } } : {}),
    },
    ...(state === 'customer-suspended' ? { ofCustomers: { state: ['suspended'] } } : {}),
  }
}
