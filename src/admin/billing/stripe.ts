import type { Clock } from '../../core/clock.ts'
import { HOUR_MS } from '../../core/human-units.ts'
import { createSinkClient, parseJson, type SinkAddress } from './http-sink.ts'
import type { BillingOptions } from './options.ts'
import type { BillingSink } from './sink.ts'

/**
 * One meter event a request. Stripe recognizes a repetition by `identifier` for at least 24 hours, and accepts usage of the past 35 days; both with an
 * hour to spare.
 */
export function createStripe(
  address: Omit<SinkAddress, 'connectionsMax'>,
  { names }: Pick<BillingOptions, 'names'>,
  { clock }: { readonly clock: Clock },
): BillingSink {
  const parallel = 8
  const client = createSinkClient({ ...address, connectionsMax: parallel }, { clock })
  return {
    batchMax: 1,
    parallel,
    // Stripe takes one call of a customer and meter at a time, and refuses others with 429.
    laneOf: ({ subject, quantity }) => `${subject} ${names[quantity]}`,
    repeatWithinMs: 23 * HOUR_MS,
    ageMaxMs: (35 * 24 - 1) * HOUR_MS,
    async send(events) {
      const [event] = events
      if (event === undefined || events.length > 1) throw new RangeError('Stripe takes one event a request')
      const form = new URLSearchParams({
        event_name: names[event.quantity],
        identifier: event.id,
        timestamp: String(Math.floor(event.hour / 1000)),
        'payload[stripe_customer_id]': event.subject,
        'payload[value]': String(event.amount),
      })
      const request = {
        path: '/v1/billing/meter_events',
        contentType: 'application/x-www-form-urlencoded',
        body: form.toString(),
        // Stripe repeats the stored response of a key, a 500 too, so each attempt has its own. `identifier` makes the event count once.
        headers: { 'idempotency-key': `${event.id}-${Math.floor(clock.nowMs())}` },
      }
      return client.post(request, 1, (_status, text) =>
        isDuplicate(text) ? { kind: 'settled', results: [{ kind: 'sent' }] } : undefined,
      )
    },
    [Symbol.dispose]: () => client[Symbol.dispose](),
  }
}

function isDuplicate(text: string): boolean {
  const error = (parseJson(text) as { error?: { code?: unknown; message?: unknown } } | undefined)?.error
  if (error?.code === 'duplicate_meter_event') return true
  return typeof error?.message === 'string' && error.message.includes('already exists with identifier')
}
