import type { AccessStore } from '../../access/store/store.ts'
import { behindMs } from './service.ts'

const DEAD_LISTED_MAX = 50

export type BillingStatus = {
  readonly sink: string
  /** `idle`: nothing was ever sent from this store. */
  readonly state: 'idle' | 'sending' | 'paused'
  /** End of the last hour whose events are made; ISO 8601. */
  readonly plannedUntil: string | null
  readonly waiting: number
  readonly behindSeconds: number
  readonly deadLetters: number
  /** The oldest of them. */
  readonly dead: readonly DeadLetter[]
}

type DeadLetter = {
  readonly id: string
  readonly subscription: string
  readonly hour: string
  readonly interface: string
  readonly quantity: string
  readonly amount: number
  readonly reason: string
  readonly outcomeUnknown: boolean
}

/** The state of a billing system as the store has it; needs no running process. */
export async function readBillingStatus(
  { billing }: AccessStore,
  { sink, settleMs, nowMs }: { readonly sink: string; readonly settleMs: number; readonly nowMs: number },
): Promise<BillingStatus> {
  const state = await billing.state(sink)
  const summary = await billing.summary(sink)
  const dead = await billing.dead(sink, DEAD_LISTED_MAX)
  return {
    sink,
    state: state === undefined ? 'idle' : state.paused ? 'paused' : 'sending',
    plannedUntil: state === undefined ? null : new Date(state.plannedHour + 3_600_000).toISOString(),
    waiting: summary.waiting,
    behindSeconds: Math.round(behindMs(summary, state, { nowMs, settleMs }) / 1000),
    deadLetters: summary.dead,
    dead: dead.map((event) => ({
      id: event.id,
      subscription: event.subscriptionId,
      hour: new Date(event.hour).toISOString(),
      interface: event.interface,
      quantity: event.quantity,
      amount: event.amount,
      reason: event.reason ?? '',
      outcomeUnknown: event.doubtSince !== null,
    })),
  }
}
