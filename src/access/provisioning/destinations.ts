import { createHmac, timingSafeEqual } from 'node:crypto'
import { ServiceError } from '../../core/error.ts'
import { addressKind, canonicalIp, parseAddressPort, printAddressPort } from '../../platform/net/ip-range.ts'
import { REFLECTOR_PORTS } from '../../platform/net/reflector-ports.ts'
import type { Destination, Subscription } from '../store/model.ts'
import type { AccessTransaction } from '../store/store.ts'
import { lookUp, lookUpToChange, type Provisioning, refuseOtherRevision, runChange } from './context.ts'

/** System ports are below this and never receive shreds. */
const DESTINATION_PORT_MIN = 1024

/**
 * Parses a destination: a literal address and port. A public address must be proven or vouched for; a loopback or private one (the operator's own
 * network) must be vouched for; all others are refused.
 */
export function parseDestination(text: string, vouched: boolean): { ip: string; port: number } {
  const parsed = parseAddressPort(text)
  if (parsed === undefined) {
    throw new ServiceError(
      'invalid-value',
      `"${text}" is not a destination: give a literal IP:PORT, or [IP]:PORT for IPv6`,
      suggestion(text, vouched),
    )
  }
  const kind = addressKind(parsed.ip)
  if (kind === 'loopback' || kind === 'private') {
    if (!vouched) {
      throw new ServiceError(
        'invalid-value',
        `${parsed.ip} is a ${kind} address and must be confirmed with --vouched`,
        {
          fix: 'Add --vouched if you are responsible for this destination.',
        },
      )
    }
  } else if (kind !== 'public') {
    throw new ServiceError(
      'invalid-value',
      `${parsed.ip} is of the kind ${kind}; shreds are never sent to such an address`,
      suggestion(text, vouched),
    )
  }
  if (!isDestinationPort(parsed.port)) {
    const reason =
      parsed.port < DESTINATION_PORT_MIN
        ? `is below ${DESTINATION_PORT_MIN}`
        : 'belongs to a service that can be used for amplification attacks'
    throw new ServiceError(
      'invalid-value',
      `port ${parsed.port} ${reason}; shreds are never sent there`,
      suggestion(parsed.ip, vouched),
    )
  }
  return parsed
}

/** The port of a suggested destination. */
const SUGGESTED_PORT = 20_001
const SCHEME = /^[a-z]+:\/\//i
/** Brackets around the address, and a port behind it. */
const ADDRESS_AND_PORT = /^(?:\[([^\]]+)\]|([0-9.]+))(?::(\d{1,5}))?$/

/** A destination near the given text as the fix, only where it would be accepted itself. */
function suggestion(text: string, vouched: boolean): { fix: string } | undefined {
  const bare = text.trim().replace(SCHEME, '').replace(/\/$/, '')
  const [, inBrackets, plain, port] = ADDRESS_AND_PORT.exec(bare) ?? [undefined, undefined, bare]
  const ip = (inBrackets ?? plain ?? '').replace(/^::ffff:(?=[0-9.]+$)/i, '')
  for (const each of [Number(port), SUGGESTED_PORT]) {
    const candidate = printAddressPort(ip, each)
    if (isDestination(candidate, vouched)) return { fix: `Give it as ${candidate}, with the port of the receiver.` }
  }
  return undefined
}

function isDestination(text: string, vouched: boolean): boolean {
  const parsed = parseAddressPort(text)
  if (parsed === undefined || !isDestinationPort(parsed.port)) return false
  const kind = addressKind(parsed.ip)
  return kind === 'public' || (vouched && (kind === 'loopback' || kind === 'private'))
}

function isDestinationPort(port: number): boolean {
  return port >= DESTINATION_PORT_MIN && !REFLECTOR_PORTS.has(port)
}

/** The id of a destination that is not proven yet while another one is active. Its challenge is open for CHALLENGE_MS, while it is unproven and not paused. */
export const pendingId = (subscriptionId: string): string => `${subscriptionId}/pending`

export const subscriptionIdOf = ({ id }: Pick<Destination, 'id'>): string => id.split('/')[0] ?? ''

/** How long a challenge is open. */
export const CHALLENGE_MS = 15 * 60_000
/** The shortest interval between challenges of one subscription, so that they cannot be used to flood an address. */
export const CHALLENGE_AGAIN_MS = 15_000
/** Subscriptions with a destination at one IP address. */
export const DESTINATIONS_PER_IP_MAX = 8

export function isOpenChallenge(destination: Destination | undefined, nowMs: number): destination is Destination {
  return destination?.proof === 'unproven' && !destination.paused && Math.abs(nowMs - destination.setAt) < CHALLENGE_MS
}

/** The code that the destination must echo. Every process of the store can compute it from the shared key. */
export function challengeCodeOf(key: Uint8Array, { id, ip, port, setAt }: Destination): string {
  const signed = JSON.stringify([id, ip, port, setAt])
  return createHmac('sha256', key).update(signed).digest('hex').slice(0, CHALLENGE_CODE_CHARS)
}

/** 128 bits. */
const CHALLENGE_CODE_CHARS = 32

/**
 * Replaces the destination of the subscription: at once when the operator vouches for the new one or none is active, otherwise when the new one is
 * proven. Until then the old one stays active.
 */
export async function setDestination(
  on: Provisioning,
  input: { subscription: string; destination: string; vouched: boolean },
): Promise<{ subscription: Subscription; destination: Destination }> {
  const address = parseDestination(input.destination, input.vouched)
  return runChange(on, async (tx) => {
    const subscription = await shredSubscription(on, tx, input.subscription)
    await checkAddressFree(tx, { subscriptionId: subscription.id, address, nowMs: on.nowMs })
    const before = await tx.get('destinations', subscription.id)
    const isActive = before !== undefined && before.proof !== 'unproven'
    const id = isActive && !input.vouched ? pendingId(subscription.id) : subscription.id
    if (!input.vouched) await checkChallengeRate(tx, id, on.nowMs)
    const destination = newDestination(id, address, input.vouched, on.nowMs)
    await tx.put('destinations', destination)
    if (id === subscription.id) await closePending(tx, subscription.id)
    return {
      audit: {
        action: 'shred.set-destination',
        subjects: [subscription.id],
        ...(before === undefined
          ? {}
          : { before: { destination: printAddressPort(before.ip, before.port), proof: before.proof } }),
        after: { destination: printAddressPort(address.ip, address.port), proof: destination.proof },
      },
      result: { subscription, destination },
    }
  })
}

/** Starts a new challenge, unless one was sent a moment ago: then its destination is returned as it is. */
export async function challengeUnlessFresh(
  on: Provisioning,
  input: { subscription: string },
): Promise<{ subscription: Subscription; destination: Destination; isFresh: boolean }> {
  const subscription = await lookUp(on.store, 'subscriptions', input.subscription)
  refuseOtherRevision('subscription', subscription, on.ifRevision)
  for (const id of [pendingId(subscription.id), subscription.id]) {
    const waiting = await on.store.get('destinations', id)
    if (isOpenChallenge(waiting, on.nowMs) && on.nowMs - waiting.setAt < CHALLENGE_AGAIN_MS)
      return { subscription, destination: waiting, isFresh: true }
  }
  return { ...(await challengeAgain(on, input)), isFresh: false }
}

/** Starts a new challenge of the unproven destination. */
export async function challengeAgain(
  on: Provisioning,
  input: { subscription: string },
): Promise<{ subscription: Subscription; destination: Destination }> {
  return runChange(on, async (tx) => {
    const subscription = await shredSubscription(on, tx, input.subscription)
    const waiting = await findWaiting(tx, subscription)
    await checkChallengeRate(tx, waiting.id, on.nowMs)
    // Another subscription may have taken the address after the last challenge expired.
    await checkAddressFree(tx, { subscriptionId: subscription.id, address: waiting, nowMs: on.nowMs })
    const destination: Destination = { ...waiting, paused: false, setAt: on.nowMs }
    await tx.put('destinations', destination)
    return {
      audit: {
        action: 'shred.challenge',
        subjects: [subscription.id],
        after: { destination: printAddressPort(destination.ip, destination.port) },
      },
      result: { subscription, destination },
    }
  })
}

/** Proves a destination by its code, received as an echo or from the operator, and makes it the active one. */
export async function proveDestination(
  on: Provisioning,
  input: { subscription: string; code: string; by: 'echo' | 'operator' },
): Promise<{ subscription: Subscription; destination: Destination }> {
  const key = await on.store.sharedKey('shred-challenge')
  return runChange(on, async (tx) => {
    const subscription = await shredSubscription(on, tx, input.subscription)
    const waiting = await findWaiting(tx, subscription)
    if (!isOpenChallenge(waiting, on.nowMs)) {
      throw new ServiceError('wrong-state', `the challenge of "${subscription.name}" is more than 15 minutes old`, {
        fix: `Send a new one with: sluice shred verify ${subscription.name}`,
      })
    }
    if (!isSameText(challengeCodeOf(key, waiting), input.code.trim().toLowerCase())) {
      throw new ServiceError('invalid-value', 'this is not the code that was sent to the destination')
    }
    await checkAddressFree(tx, { subscriptionId: subscription.id, address: waiting, nowMs: on.nowMs })
    const before = await tx.get('destinations', subscription.id)
    const destination: Destination = {
      ...waiting,
      id: subscription.id,
      proof: 'proven',
      paused: before?.paused ?? false,
    }
    await tx.put('destinations', destination)
    await closePending(tx, subscription.id)
    return {
      audit: {
        action: 'shred.prove',
        subjects: [subscription.id],
        after: { destination: printAddressPort(destination.ip, destination.port), by: input.by },
      },
      result: { subscription, destination },
    }
  })
}

async function findWaiting(tx: AccessTransaction, subscription: Subscription): Promise<Destination> {
  const pending = await tx.get('destinations', pendingId(subscription.id))
  if (pending !== undefined && pending.proof === 'unproven' && !pending.paused) return pending
  const first = await tx.get('destinations', subscription.id)
  if (first?.proof === 'unproven') return first
  throw new ServiceError('wrong-state', `no destination of "${subscription.name}" waits for its proof`, {
    fix: `Set one with: sluice shred set-destination ${subscription.name} IP:PORT`,
  })
}

async function closePending(tx: AccessTransaction, subscriptionId: string): Promise<void> {
  const pending = await tx.get('destinations', pendingId(subscriptionId))
  if (pending !== undefined && !pending.paused) await tx.put('destinations', { ...pending, paused: true })
}

async function checkChallengeRate(tx: AccessTransaction, id: string, nowMs: number): Promise<void> {
  const last = await tx.get('destinations', id)
  const waitMs = last?.proof === 'unproven' ? last.setAt + CHALLENGE_AGAIN_MS - nowMs : 0
  if (waitMs > 0 && waitMs <= CHALLENGE_AGAIN_MS) {
    throw new ServiceError('wrong-state', `a challenge was sent less than ${CHALLENGE_AGAIN_MS / 1000} s ago`, {
      fix: `Try again in ${Math.ceil(waitMs / 1000)} s.`,
    })
  }
}

/** Destinations of one address that are looked at together. */
const NEAR_PAGE = 100

type AddressClaim = {
  readonly subscriptionId: string
  readonly address: { readonly ip: string; readonly port: number }
  readonly nowMs: number
}

/** Refuses an address and port of another subscription, and more than DESTINATIONS_PER_IP_MAX subscriptions per IP address. */
export async function checkAddressFree(
  tx: AccessTransaction,
  { subscriptionId, address, nowMs }: AddressClaim,
): Promise<void> {
  const { port } = address
  const ip = canonicalIp(address.ip)
  // An IPv6 address of an earlier version is stored as it was typed, so all of them are compared.
  const having = ip.includes(':') ? {} : { ip: [ip] }
  // Lists show a pending destination only while its challenge is open, so another one keeps no address.
  const isOther = (each: Destination) =>
    canonicalIp(each.ip) === ip &&
    subscriptionIdOf(each) !== subscriptionId &&
    (!each.id.includes('/') || isOpenChallenge(each, nowMs))
  let near = 0
  let after: string | undefined
  do {
    const request = { after, limit: NEAR_PAGE, having, isIncluded: isOther }
    const { items, next } = await tx.page('destinations', request)
    for (const other of items) {
      const owner = await tx.get('subscriptions', subscriptionIdOf(other))
      if (owner?.state === 'cancelled') continue
      if (other.port === port)
        throw new ServiceError(
          'already-exists',
          `${printAddressPort(ip, port)} is the destination of another subscription`,
          { fix: 'Give another port of the receiver. All destinations: sluice shred show' },
        )
      near += 1
    }
    after = next ?? undefined
  } while (after !== undefined)
  if (near >= DESTINATIONS_PER_IP_MAX) {
    throw new ServiceError(
      'invalid-value',
      `${ip} is the destination of ${DESTINATIONS_PER_IP_MAX} other subscriptions already, the most for one address`,
      { fix: 'Give another IP address, or cancel a subscription that no longer needs its destination.' },
    )
  }
}

function isSameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

export async function setDestinationPaused(
  on: Provisioning,
  input: { subscription: string; paused: boolean },
): Promise<{ subscription: Subscription; destination: Destination }> {
  return runChange(on, async (tx) => {
    const subscription = await shredSubscription(on, tx, input.subscription)
    const before = await tx.get('destinations', subscription.id)
    if (before === undefined) {
      throw new ServiceError('not-found', `subscription "${subscription.name}" has no shred destination`, {
        fix: `Set it with: sluice shred set-destination ${subscription.name} IP:PORT`,
      })
    }
    if (before.paused === input.paused) {
      throw new ServiceError('wrong-state', `the destination is ${input.paused ? 'paused' : 'running'} already`, {
        fix: `Show it with: sluice shred show ${subscription.name}`,
      })
    }
    const destination: Destination = { ...before, paused: input.paused }
    await tx.put('destinations', destination)
    return {
      audit: {
        action: input.paused ? 'shred.pause' : 'shred.resume',
        subjects: [subscription.id],
        before: { paused: before.paused },
        after: { paused: input.paused },
      },
      result: { subscription, destination },
    }
  })
}

export function newDestination(
  subscriptionId: string,
  address: { ip: string; port: number },
  vouched: boolean,
  nowMs: number,
): Destination {
  return {
    id: subscriptionId,
    revision: 0,
    ...address,
    proof: vouched ? 'vouched' : 'unproven',
    paused: false,
    setAt: nowMs,
  }
}

async function shredSubscription(on: Provisioning, tx: AccessTransaction, idOrName: string): Promise<Subscription> {
  const subscription = await lookUpToChange(on, tx, 'subscriptions', idOrName)
  if (subscription.state === 'cancelled')
    throw new ServiceError('wrong-state', `subscription "${subscription.name}" is cancelled`)
  if (!subscription.products.includes('shreds-raw')) {
    throw new ServiceError('wrong-state', `subscription "${subscription.name}" does not include shreds-raw`, {
      fix: `Add it with: sluice sub add-product ${subscription.name} shreds-raw`,
    })
  }
  return subscription
}
