import { lookUp } from '../../../access/provisioning/context.ts'
import {
  challengeUnlessFresh,
  isOpenChallenge,
  pendingId,
  proveDestination,
  setDestination,
  setDestinationPaused,
  subscriptionIdOf,
} from '../../../access/provisioning/destinations.ts'
import type { Destination, Subscription } from '../../../access/store/model.ts'
import type { AdminBodies } from '../../../contract/schemas/admin.ts'
import { toWireJson } from '../../../contract/wire-json.ts'
import { mapInSlices } from '../../../platform/process/time-slices.ts'
import type { AdminCall, AdminHandlers, AdminReply } from '../handler.ts'
import { type HandlerDeps, provisioningOf } from './deps.ts'
import { cursorOf, pageOf, paramOf, textOf } from './query.ts'
import type { LiveDestinations } from './running.ts'

type DestinationHandlers = Pick<
  AdminHandlers,
  'destinationList' | 'destinationSet' | 'destinationPause' | 'destinationResume' | 'destinationVerify'
>

export function destinationHandlers(deps: HandlerDeps): DestinationHandlers {
  const { store } = deps

  const reply = ({
    subscription,
    destination,
  }: {
    subscription: Subscription
    destination: Destination
  }): AdminReply & { body: object } => ({
    body: { subscription: subscription.name, ...(toWireJson(destination) as object) },
  })
  const pause = (paused: boolean) => async (call: AdminCall) =>
    reply(
      await setDestinationPaused(provisioningOf(deps, call), { subscription: paramOf(call, 'subscription'), paused }),
    )

  async function wireOf(destinations: readonly Destination[], live: LiveDestinations | null): Promise<object[]> {
    const subscriptions = await store.getAll('subscriptions', destinations.map(subscriptionIdOf))
    const sendingOf = new Map(live?.destinations.map((each) => [each.subscriptionId, each]))
    const refusedOf = new Map(live?.refused.map((each) => [each.subscriptionId, each]))
    return mapInSlices(destinations, (destination) => {
      const subscriptionId = subscriptionIdOf(destination)
      const isPending = destination.id !== subscriptionId
      const sending = isPending ? undefined : sendingOf.get(subscriptionId)
      const refused = isPending ? undefined : refusedOf.get(subscriptionId)
      return {
        ...(toWireJson(destination) as object),
        subscription: subscriptions.get(subscriptionId)?.name ?? subscriptionId,
        subscription_id: subscriptionId,
        is_pending: isPending,
        state: sending?.state ?? refused?.reason ?? null,
        sent: sending?.packets ?? null,
        unsent: sending?.unsent ?? null,
        last_fault: sending?.lastFault ?? null,
        destination_index: sending?.destinationIndex ?? null,
      }
    })
  }

  return {
    async destinationList(call) {
      const name = textOf(call, 'subscription')
      const isShown = (destination: Destination | undefined): destination is Destination =>
        destination !== undefined && (!destination.id.includes('/') || isOpenChallenge(destination, call.nowMs))
      const live = await deps.running.call('shreds')
      if (name !== undefined) {
        const { id } = await lookUp(store, 'subscriptions', name)
        const found = [await store.get('destinations', id), await store.get('destinations', pendingId(id))].filter(
          isShown,
        )
        return { body: { items: await wireOf(found, live), next_cursor: null } }
      }
      const page = await store.page('destinations', { ...pageOf(call), isIncluded: isShown })
      return { body: { items: await wireOf(page.items, live), next_cursor: cursorOf(page.next) } }
    },

    async destinationSet(call) {
      const { address, vouched = false } = call.body as AdminBodies['destinationSet']
      deps.checkDestination(address)
      const input = { subscription: paramOf(call, 'subscription'), destination: address, vouched }
      return reply(await setDestination(provisioningOf(deps, call), input))
    },

    destinationPause: pause(true),
    destinationResume: pause(false),

    async destinationVerify(call) {
      const { code } = (call.body as AdminBodies['destinationVerify']) ?? {}
      const on = provisioningOf(deps, call)
      const subscription = paramOf(call, 'subscription')
      if (code !== undefined) return reply(await proveDestination(on, { subscription, code, by: 'operator' }))
      const challenged = await challengeUnlessFresh(on, { subscription })
      return { body: { ...reply(challenged).body, is_fresh: challenged.isFresh } }
    },
  }
}
