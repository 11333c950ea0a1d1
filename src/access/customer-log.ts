import type { Clock } from '../core/clock.ts'
import type { Logger } from '../platform/telemetry/logger.ts'

/** A log event about one customer. Events with equal `kind` fields are counted together; `details` belong to one event and are omitted from counts. */
export type CustomerEvent = {
  readonly subscription: string
  readonly message: string
  readonly kind?: Readonly<Record<string, string | number | undefined>>
  readonly details?: Readonly<Record<string, string | number | undefined>>
}

/** Logs events about single customers, rate-limited. */
export type CustomerLog = Disposable & {
  log(event: CustomerEvent): void
}

const WINDOW_MS = 1000
/** Different events per second; beyond them only their number is logged. */
const KINDS_MAX = 100

type Open = { readonly event: CustomerEvent; more: number }

/**
 * The first event of a kind is logged at once. While it repeats, one line per second has their number: a client that reaches its limit a thousand
 * times a second causes one line per second.
 */
export function createCustomerLog({ log, clock }: { log: Logger; clock: Clock }): CustomerLog {
  let open = new Map<string, Open>()
  let unreported = 0

  const timer = clock.setRepeating(WINDOW_MS, () => {
    const next = new Map<string, Open>()
    for (const [key, { event, more }] of open) {
      if (more === 0) continue
      log.info({ subscription: event.subscription, ...event.kind, count: more }, event.message)
      next.set(key, { event, more: 0 })
    }
    if (unreported > 0) log.warn({ count: unreported }, 'further customer events were not logged individually')
    unreported = 0
    open = next
  })
  timer.unref?.()

  return {
    log(event) {
      const { subscription, message, kind, details } = event
      const key = [subscription, message, ...Object.values(kind ?? {})].join(' ')
      const known = open.get(key)
      if (known !== undefined) known.more += 1
      else if (open.size >= KINDS_MAX) unreported += 1
      else {
        open.set(key, { event: { subscription, message, ...(kind && { kind }) }, more: 0 })
        log.info({ subscription, ...kind, ...details }, message)
      }
    },
    [Symbol.dispose]: () => timer[Symbol.dispose](),
  }
}
