import type { Logger } from '../../platform/telemetry/logger.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import { invalidParams } from '../rpc/errors.ts'
import type { Json } from '../rpc/json.ts'
import { readArguments, u64 } from '../rpc/params.ts'
import { type PubSubMethod, respondToMessage } from './dispatch.ts'
import type { Registry, Subscriber, Subscription } from './registry.ts'
import { READ_REQUEST, type SubscriptionKind } from './requests.ts'

export type PubSubConnectionDeps = {
  readonly registry: Registry
  readonly isEnabled: (kind: SubscriptionKind) => boolean
  /** Sends a new subscription the notification of a past event. Called after the response to the subscribe request. */
  readonly announcePast: (subscription: Subscription) => void
  readonly getVersion: PubSubMethod
  readonly log: Logger
}

const METHOD = /^(account|program|logs|signature|slot|slotsUpdates|root|block|vote)(Subscribe|Unsubscribe)$/

/** Serves one connection: its requests, and its subscriptions until it closes. */
export function servePubSub(connection: WsConnection, deps: PubSubConnectionDeps): void {
  const { registry, log } = deps
  /** Equal requests get the same id, and one unsubscribe ends it. */
  const subscriptionIds = new Set<number>()
  const subscriber: Subscriber = {
    sendFrame: (frame) => connection.sendFrame(frame),
    forget: (id) => void subscriptionIds.delete(id),
  }
  const fresh: Subscription[] = []

  function subscribe(kind: SubscriptionKind, params: string | undefined): Json {
    const subscription = registry.subscribe(READ_REQUEST[kind](params), subscriber)
    subscriptionIds.add(subscription.id)
    fresh.push(subscription)
    return subscription.id
  }

  function unsubscribe(params: string | undefined): Json {
    const [id] = readArguments(params, [u64])
    if (!subscriptionIds.delete(Number(id))) throw invalidParams('Invalid subscription id.')
    registry.release(Number(id), subscriber)
    return true
  }

  function method(name: string): PubSubMethod | undefined {
    if (name === 'getVersion') return deps.getVersion
    const [, kind, verb] = METHOD.exec(name) ?? []
    if (kind === undefined || !deps.isEnabled(kind as SubscriptionKind)) return undefined
    return verb === 'Subscribe' ? (params) => subscribe(kind as SubscriptionKind, params) : unsubscribe
  }

  connection.onMessage((text) => {
    const response = respondToMessage(text, {
      method,
      onFault: (err) => log.error({ err }, 'pubsub method failed'),
    })
    if (response !== undefined) connection.send(response)
    for (const subscription of fresh.splice(0)) {
      if (subscription.subscribers.has(subscriber)) deps.announcePast(subscription)
    }
  })
  connection.onClose(() => {
    for (const id of subscriptionIds) registry.release(id, subscriber)
    subscriptionIds.clear()
  })
}
