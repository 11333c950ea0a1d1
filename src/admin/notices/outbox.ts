import type { Random } from '../../core/random.ts'
import { createUlid } from '../../core/ulid.ts'
import { createTimeSlices, mapInSlices, type TimeSlices } from '../../platform/process/time-slices.ts'
import type { Condition, Delivery, NoticeKind, NoticeRecord } from './notice.ts'

/** Where the outbox is kept: a text that is replaced as a whole, on the disk when `write` resolves. */
export type OutboxFile = { read(): Promise<string | undefined>; write(text: string): Promise<void> }

/** Conditions that are remembered unless the options have another number. */
export const CONDITIONS_MAX = 20_000

export type OutboxDeps = {
  readonly file: OutboxFile
  readonly random: Random
  /** Time slices of the event loop, between which a write of very many notices yields. */
  readonly slices?: () => TimeSlices
}

export type OutboxOptions = {
  /** The receivers of a kind. */
  receiversOf(kind: NoticeKind): readonly string[]
  /** Notices kept for the list; those that wait are kept beyond it. */
  readonly keptMax?: number
  /** Conditions remembered; above it no further notice is made, and `isFull` is true. */
  readonly conditionsMax?: number
}

type Stored = {
  version: 1
  /** Since when there are notices, unix ms. */
  sinceMs: number
  active: string[]
  notices: NoticeRecord[]
}

/**
 * The notices and the conditions that caused them, on the disk: a condition causes one notice for as long as it holds, also over a restart, and a
 * notice is on the disk before it is sent.
 */
export class Outbox {
  /** Since when there are notices here, unix ms. */
  readonly sinceMs: number
  #active: Set<string>
  #notices: NoticeRecord[]
  readonly #options: Required<OutboxOptions>
  readonly #deps: OutboxDeps
  /** Made, and not on the disk yet. */
  readonly #unsaved = new Set<NoticeRecord>()
  /** The last write that was asked for, whatever became of it. */
  #lastSave: Promise<unknown> = Promise.resolve()
  /** A write that has not begun: it will have every change until then. */
  #nextSave: Promise<void> | undefined
  #isFull = false

  private constructor(stored: Stored, options: OutboxOptions, deps: OutboxDeps) {
    this.sinceMs = stored.sinceMs
    this.#active = new Set(stored.active)
    this.#notices = stored.notices
    this.#options = { keptMax: 1000, conditionsMax: CONDITIONS_MAX, ...options }
    this.#deps = deps
  }

  /** `onDamaged` is called where the file cannot be read: the outbox begins empty, and conditions that hold cause a notice again. */
  static async open(
    options: OutboxOptions,
    deps: OutboxDeps & { nowMs: number; onDamaged: (reason: string) => void },
  ): Promise<Outbox> {
    const text = await deps.file.read()
    return new Outbox(parse(text, deps), options, deps)
  }

  get isFull(): boolean {
    return this.#isFull
  }

  /** Newest first. */
  list(): readonly NoticeRecord[] {
    return this.#notices.toReversed()
  }

  /**
   * Takes the conditions that hold now: a new one causes a notice, one that is gone may cause another later, and one that is undecided stays as it
   * was. Returns the notices on the disk.
   */
  async observe(conditions: readonly Condition[], nowMs: number): Promise<readonly NoticeRecord[]> {
    const holding = conditions.filter(({ key, isUndecided = false }) => !isUndecided || this.#active.has(key))
    const kept = holding.slice(0, this.#options.conditionsMax)
    this.#isFull = kept.length < holding.length
    const fresh = kept.filter(({ key }) => !this.#active.has(key))
    const isChanged = fresh.length > 0 || this.#active.size !== kept.length
    const before = this.#active
    this.#active = new Set(kept.map(({ key }) => key))
    const made = fresh.map((condition) => this.#add(condition, nowMs))
    if (!isChanged) return made
    try {
      await this.#saveNew(made)
    } catch (error) {
      // The next observation makes the notices again.
      this.#active = before
      throw error
    }
    return made
  }

  /** A notice that no condition caused. */
  async add(condition: Condition, nowMs: number): Promise<NoticeRecord> {
    const notice = this.#add(condition, nowMs)
    await this.#saveNew([notice])
    return notice
  }

  /** What waits for this receiver and is on the disk, oldest first. */
  *waitingFor(receiver: string): Generator<{ readonly notice: NoticeRecord; readonly delivery: Delivery }> {
    for (const notice of this.#notices) {
      if (this.#unsaved.has(notice)) continue
      const delivery = notice.deliveries.find((one) => one.receiver === receiver && one.state === 'waiting')
      if (delivery !== undefined) yield { notice, delivery }
    }
  }

  /** Gives up what waits for a receiver that is not among these: nothing would ever settle it, and notices that wait are kept for ever. */
  giveUpOthers(receivers: ReadonlySet<string>): void {
    for (const { deliveries } of this.#notices)
      for (const delivery of deliveries)
        if (delivery.state === 'waiting' && !receivers.has(delivery.receiver)) {
          delivery.state = 'given-up'
          delivery.lastFailure = 'the receiver was removed'
        }
  }

  /** One write at a time: calls that come while it runs share the next one. */
  save(): Promise<void> {
    if (this.#nextSave !== undefined) return this.#nextSave
    const saving = this.#lastSave.then(() => {
      this.#nextSave = undefined
      return this.#write()
    })
    this.#nextSave = saving
    this.#lastSave = saving.catch(() => {})
    return saving
  }

  /** What could not be written to the disk is not sent, and goes. */
  async #saveNew(made: readonly NoticeRecord[]): Promise<void> {
    try {
      await this.save()
    } catch (error) {
      const unsaved = new Set(made)
      this.#notices = this.#notices.filter((notice) => !unsaved.has(notice))
      throw error
    } finally {
      for (const notice of made) this.#unsaved.delete(notice)
    }
  }

  async #write(): Promise<void> {
    const surplus = this.#notices.length - this.#options.keptMax
    if (surplus > 0) {
      let dropped = 0
      this.#notices = this.#notices.filter((notice) => isWaiting(notice) || dropped++ >= surplus)
    }
    const { sinceMs } = this
    const stored: Stored = { version: 1, sinceMs, active: [...this.#active], notices: [...this.#notices] }
    await this.#deps.file.write(await printStored(stored, this.#deps.slices?.() ?? createTimeSlices()))
  }

  #add({ kind, message, data }: Condition, nowMs: number): NoticeRecord {
    const deliveries = this.#options
      .receiversOf(kind)
      .map((receiver): Delivery => ({ receiver, state: 'waiting', attempts: 0, lastAtMs: null, lastFailure: null }))
    const notice = { kind, message, data, id: `ntc_${createUlid(nowMs, this.#deps.random)}`, atMs: nowMs, deliveries }
    this.#notices.push(notice)
    this.#unsaved.add(notice)
    return notice
  }
}

/** As JSON.stringify would print it, in slices: there may be megabytes. */
async function printStored({ active, notices, ...head }: Stored, slices: TimeSlices): Promise<string> {
  const print = async (items: readonly unknown[]) =>
    `[${(await mapInSlices(items, (item) => JSON.stringify(item), slices)).join(',')}]`
  const lists = `"active":${await print(active)},"notices":${await print(notices)}`
  return `${JSON.stringify(head).slice(0, -1)},${lists}}`
}

function isWaiting({ deliveries }: NoticeRecord): boolean {
  return deliveries.some(({ state }) => state === 'waiting')
}

function parse(
  text: string | undefined,
  { nowMs, onDamaged }: { nowMs: number; onDamaged: (reason: string) => void },
): Stored {
  const empty: Stored = { version: 1, sinceMs: nowMs, active: [], notices: [] }
  if (text === undefined) return empty
  try {
    const stored = JSON.parse(text) as Partial<Stored>
    if (stored.version === 1 && Array.isArray(stored.active) && Array.isArray(stored.notices)) return stored as Stored
    onDamaged('it has another form')
  } catch (error) {
    onDamaged(error instanceof Error ? error.message : 'it is not JSON')
  }
  return empty
}
