import type { Clock } from '../../core/clock.ts'
import { createSinkClient, parseJson, type SinkAddress } from './http-sink.ts'
import type { BillingOptions } from './options.ts'
import type { BatchResult, BillingSink, EventResult } from './sink.ts'

const DUPLICATE = 'value_already_exist'

/**
 * Batches of at most 100 events. Lago recognizes a repetition by `transaction_id` and refuses it with 422, and with it the whole batch: the repeated
 * events are there already, the others are sent again.
 */
export function createLago(
  address: Omit<SinkAddress, 'connectionsMax'>,
  { names }: Pick<BillingOptions, 'names'>,
  deps: { readonly clock: Clock },
): BillingSink {
  const client = createSinkClient({ ...address, connectionsMax: 1 }, deps)
  return {
    batchMax: 100,
    parallel: 1,
    send(events) {
      const body = {
        events: events.map((event) => ({
          transaction_id: event.id,
          external_subscription_id: event.subject,
          code: names[event.quantity],
          timestamp: Math.floor(event.hour / 1000),
          properties: { value: event.amount, interface: event.interface },
        })),
      }
      const request = { path: '/api/v1/events/batch', contentType: 'application/json', body: JSON.stringify(body) }
      return client.post(request, events.length, (status, text) =>
        status === 422 ? readDetails(text, events.length) : undefined,
      )
    },
    [Symbol.dispose]: () => client[Symbol.dispose](),
  }
}

/** `error_details` has the faults of each event by its place in the batch; those of a single event may be without a place. */
function readDetails(text: string, events: number): BatchResult | undefined {
  const details = (parseJson(text) as { error_details?: unknown } | undefined)?.error_details
  if (typeof details !== 'object' || details === null) return undefined
  if (events === 1 && 'transaction_id' in details) return settled([resultOf(details)])
  const results = Array.from({ length: events }, (_, at): EventResult => {
    const faults = (details as Record<string, unknown>)[String(at)]
    return faults === undefined ? { kind: 'again' } : resultOf(faults)
  })
  return results.every(({ kind }) => kind === 'again') ? undefined : settled(results)
}

function resultOf(faults: unknown): EventResult {
  const ids = (faults as { transaction_id?: unknown } | null)?.transaction_id
  if (Array.isArray(ids) && ids.includes(DUPLICATE)) return { kind: 'sent' }
  return { kind: 'refused', reason: `HTTP 422: ${JSON.stringify(faults).slice(0, 150)}` }
}

function settled(results: readonly EventResult[]): BatchResult {
  return { kind: 'settled', results }
}
