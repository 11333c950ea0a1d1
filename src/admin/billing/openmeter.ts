import type { Clock } from '../../core/clock.ts'
import { createSinkClient, type SinkAddress } from './http-sink.ts'
import type { BillingOptions } from './options.ts'
import type { BillingSink } from './sink.ts'

/** CloudEvents 1.0 in batches. OpenMeter recognizes a repetition by `source` and `id`. */
export function createOpenMeter(
  address: Omit<SinkAddress, 'connectionsMax'>,
  { names, storeId }: Pick<BillingOptions, 'names'> & { readonly storeId: string },
  deps: { readonly clock: Clock },
): BillingSink {
  const client = createSinkClient({ ...address, connectionsMax: 1 }, deps)
  return {
    batchMax: 100,
    parallel: 1,
    send(events) {
      const body = events.map((event) => ({
        specversion: '1.0',
        type: names[event.quantity],
        id: event.id,
        source: `sluice/${storeId}`,
        subject: event.subject,
        time: new Date(event.hour).toISOString(),
        datacontenttype: 'application/json',
        data: {
          value: event.amount,
          interface: event.interface,
          subscription: event.subscriptionId,
          part: event.part,
        },
      }))
      const request = {
        path: '/api/v1/events',
        contentType: 'application/cloudevents-batch+json',
        body: JSON.stringify(body),
      }
      return client.post(request, events.length, () => undefined)
    },
    [Symbol.dispose]: () => client[Symbol.dispose](),
  }
}
