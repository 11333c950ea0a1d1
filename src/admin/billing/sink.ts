import type { BillingEvent } from '../../access/store/billing/tables.ts'

/** What happened to one event of a batch. */
export type EventResult =
  | { readonly kind: 'sent' }
  /** The sink refuses this event for good. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** It was not counted because of another event of the batch. */
  | { readonly kind: 'again' }

export type BatchResult =
  | { readonly kind: 'settled'; readonly results: readonly EventResult[] }
  /** The sink refuses the batch and does not name the event. */
  | { readonly kind: 'rejected'; readonly reason: string }
  /** No event was settled. `isCounted` is undefined where it is not known. */
  | {
      readonly kind: 'failed'
      readonly reason: string
      readonly isCounted: false | undefined
      readonly retryAfterMs?: number | undefined
    }

/** A billing system. It recognizes a repeated event by its id. */
export type BillingSink = Disposable & {
  /** Events of one request. */
  readonly batchMax: number
  /** Requests at the same time. */
  readonly parallel: number
  /** Requests whose events are of one lane are not made at the same time; undefined: all may be. */
  readonly laneOf?: (event: BillingEvent) => string
  /** How long after the first attempt it surely recognizes a repetition; undefined: always. */
  readonly repeatWithinMs?: number
  /** The oldest usage that it accepts; undefined: any. */
  readonly ageMaxMs?: number
  /** Never throws. The events are at most `batchMax`. */
  send(events: readonly BillingEvent[]): Promise<BatchResult>
}
