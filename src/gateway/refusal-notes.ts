import type { CustomerNotes } from '../access/provisioning/customer-notes.ts'
import { ERRORS } from '../contract/errors.ts'
import type { ListenerMeter } from './metrics.ts'

/** Whose request a door refused by itself, and with which error. */
export type RefusedOf = {
  readonly subscription: string
  readonly code: 'too-large' | 'rate-limited' | 'invalid-params' | 'overloaded'
}

/** The same counters, which also tell the log what a door refused a customer. What `access` refuses is told there. */
export function reportRefusals<Meter extends ListenerMeter>(
  meter: Meter,
  server: 'rpc' | 'ws' | 'grpc',
  notes: Pick<CustomerNotes, 'note'>,
): Meter {
  return {
    ...meter,
    refused(limit: string, of?: RefusedOf) {
      meter.refused(limit)
      if (of === undefined) return
      const kind = { interface: server, limit, code: ERRORS[of.code].jsonRpc }
      notes.note({ subscription: of.subscription, message: 'refused', kind })
    },
  }
}
