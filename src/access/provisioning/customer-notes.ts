import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'

/** What a note says beside its message. `kind` fields tell notes apart; `details` are those of one event and are left out where events are counted together. */
export type CustomerNote = {
  readonly subscription: string
  readonly message: string
  readonly kind?: Readonly<Record<string, string | number | undefined>>
  readonly details?: Readonly<Record<string, string | number | undefined>>
}

/** What happens to single customers, in the log. */
export type CustomerNotes = Disposable & {
  note(note: CustomerNote): void
}

const WINDOW_MS = 1000
/** Different notes in a second; beyond them it is only told how many there were. */
const KINDS_MAX = 100

type Open = { readonly note: CustomerNote; more: number }

/**
 * The first note of a kind is written at once. As long as it goes on, each second has one line with their number: a client that runs against its
 * limit a thousand times a second is one line of the log a second, and so is one that is let in and leaves again.
 */
export function createCustomerNotes({ log, clock }: { log: Logger; clock: Clock }): CustomerNotes {
  let open = new Map<string, Open>()
  let unreported = 0

  const beat = clock.setRepeating(WINDOW_MS, () => {
    const next = new Map<string, Open>()
    for (const [key, { note, more }] of open) {
      if (more === 0) continue
      log.info({ subscription: note.subscription, ...note.kind, count: more }, note.message)
      next.set(key, { note, more: 0 })
    }
    if (unreported > 0) log.warn({ count: unreported }, 'more happened to customers than is told one by one')
    unreported = 0
    open = next
  })
  beat.unref?.()

  return {
    note(note) {
      const { subscription, message, kind, details } = note
      const key = [subscription, message, ...Object.values(kind ?? {})].join(' ')
      const known = open.get(key)
      if (known !== undefined) known.more += 1
      else if (open.size >= KINDS_MAX) unreported += 1
      else {
        open.set(key, { note: { subscription, message, ...(kind && { kind }) }, more: 0 })
        log.info({ subscription, ...kind, ...details }, message)
      }
    },
    [Symbol.dispose]: () => beat[Symbol.dispose](),
  }
}
