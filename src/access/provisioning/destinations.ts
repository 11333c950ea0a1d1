import { ServiceError } from '../../core/service-error.ts'
import { addressKind, parseAddressPort, printAddressPort } from '../../host/ip-range.ts'
import type { Destination, Subscription } from '../model.ts'
import type { AccessTransaction } from '../store.ts'
import { act, lookUp, type Provisioning } from './context.ts'

/** Ports below this belong to the system: nothing is pushed there. */
export const DESTINATION_PORT_MIN = 1024

/**
 * A destination is a literal address and port the operator heard from the customer. Public addresses must prove themselves or be vouched for;
 * loopback and private ones (the operator's own network) only count with the operator's word; all others are refused.
 */
export function parseDestination(text: string, vouched: boolean): { ip: string; port: number } {
  const parsed = parseAddressPort(text)
  if (parsed === undefined) {
    throw new ServiceError(
      'invalid-value',
      `"${text}" is not a destination: give a literal IP:PORT, such as 198.51.100.7:20001 or [2001:db8::7]:20001`,
    )
  }
  const kind = addressKind(parsed.ip)
  if (kind === 'loopback' || kind === 'private') {
    if (!vouched) {
      throw new ServiceError('invalid-value', `${parsed.ip} is a ${kind} address; shreds go there only on your word`, {
        fix: 'Add --vouched if this destination is yours to name.',
      })
    }
  } else if (kind !== 'public') {
    throw new ServiceError('invalid-value', `${parsed.ip} is of the kind ${kind}; shreds are never sent there`)
  }
  if (parsed.port < DESTINATION_PORT_MIN) {
    throw new ServiceError(
      'invalid-value',
      `port ${parsed.port} is below ${DESTINATION_PORT_MIN}; shreds are never sent there`,
    )
  }
  return parsed
}

/** Replaces the one destination of the subscription. */
export async function setDestination(
  on: Provisioning,
  input: { subscription: string; destination: string; vouched: boolean },
): Promise<{ subscription: Subscription; destination: Destination }> {
  const address = parseDestination(input.destination, input.vouched)
  return act(on, async (tx) => {
    const subscription = await shredSubscription(tx, input.subscription)
    const before = await tx.get('destinations', subscription.id)
    const destination = newDestination(subscription.id, address, input.vouched, on.nowMs)
    await tx.put('destinations', destination)
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

export async function setDestinationPaused(
  on: Provisioning,
  input: { subscription: string; paused: boolean },
): Promise<{ subscription: Subscription; destination: Destination }> {
  return act(on, async (tx) => {
    const subscription = await shredSubscription(tx, input.subscription)
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

async function shredSubscription(tx: AccessTransaction, idOrName: string): Promise<Subscription> {
  const subscription = await lookUp(tx, 'subscriptions', idOrName)
  if (subscription.state === 'cancelled')
    throw new ServiceError('wrong-state', `subscription "${subscription.name}" is cancelled`)
  if (!subscription.products.includes('shreds-raw')) {
    throw new ServiceError('wrong-state', `subscription "${subscription.name}" does not include shreds-raw`, {
      fix: 'Create a subscription with --products shreds-raw.',
    })
  }
  return subscription
}
