import assert from 'node:assert/strict'
import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import { delay } from '../../platform/process/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { StoreProcess } from '../store/process.ts'
import { MOVE_FAILED } from './batch-writer.ts'
import type { BlockFetch } from './block-fetch.ts'
import type { BlockLink } from './frontier.ts'
import type { SlotRange } from './slot-ranges.ts'

export type BackfillStatus = SlotRange & {
  readonly state: 'running' | 'done' | 'stopped' | 'failed'
  /** All blocks before this slot are written. */
  readonly nextSlot: number
  readonly blocks: number
  readonly startedMs: number
  /** Why it does not progress, or why it ended. */
  readonly message: string | undefined
  /** What a failed backfill could not go on without. */
  readonly failedBy: 'nodes' | 'database' | undefined
}

export type BackfillDeps = {
  readonly fetch: BlockFetch
  readonly store: () => StoreProcess | undefined
  readonly clock: Clock
  readonly log: Logger
}

type BackfillLink = BlockLink & { readonly id: number }

export type Backfill = { status(): BackfillStatus; stop(): void; readonly ended: Promise<void> }

/** Slots of one transaction. */
const PIECE_SLOTS = 32
const PARALLEL = 4
const RETRY_MS = 1_000
/** Attempts to write one piece before the backfill fails. */
const ATTEMPTS_MAX = 20
/** How far after the range a block is looked for that shows which of the last slots were skipped. */
const AFTER_SLOTS_MAX = 4_096
/** Ids of blocks in the store process; those of the live stream count from one. */
const FIRST_ID = 2 ** 40

/** Writes the finalized blocks of a range, oldest first. It may be stopped and started again at any point: written blocks stay. */
export function startBackfill(range: SlotRange, deps: BackfillDeps): Backfill {
  const run = new BackfillRun(range, deps)
  return { status: () => run.status(), stop: () => run.stop(), ended: run.run() }
}

/** The database, and not a node, is the cause. */
class DatabaseFailed extends Error {
  override readonly name = 'DatabaseFailed'
}

class BackfillRun {
  readonly #range: SlotRange
  readonly #deps: BackfillDeps
  readonly #startedMs: number
  #state: BackfillStatus['state'] = 'running'
  #nextSlot: number
  #blocks = 0
  #message: string | undefined
  #failedBy: BackfillStatus['failedBy']
  #lastId = FIRST_ID
  /** The last block that is written. */
  #previous: BlockLink | undefined

  constructor(range: SlotRange, deps: BackfillDeps) {
    this.#range = range
    this.#deps = deps
    this.#startedMs = deps.clock.nowMs()
    this.#nextSlot = range.from
  }

  status(): BackfillStatus {
    return {
      ...this.#range,
      state: this.#state,
      nextSlot: this.#nextSlot,
      blocks: this.#blocks,
      startedMs: this.#startedMs,
      message: this.#message,
      failedBy: this.#failedBy,
    }
  }

  stop(): void {
    if (this.#state === 'running') this.#state = 'stopped'
  }

  async run(): Promise<void> {
    const { clock, log } = this.#deps
    let attempts = 0
    while (this.#state === 'running' && this.#nextSlot <= this.#range.to) {
      try {
        await this.#writePiece()
        attempts = 0
        this.#message = undefined
      } catch (error) {
        this.#message = messageOf(error)
        log.warn({ slot: this.#nextSlot, reason: this.#message }, 'backfill piece not written; trying again')
        if (++attempts === ATTEMPTS_MAX) {
          this.#state = 'failed'
          this.#failedBy = error instanceof DatabaseFailed ? 'database' : 'nodes'
          return
        }
        await delay(clock, RETRY_MS)
      }
    }
    if (this.#state === 'running') this.#state = 'done'
  }

  async #writePiece(): Promise<void> {
    const { fetch } = this.#deps
    const store = this.#deps.store()
    if (store === undefined) throw new DatabaseFailed('the database process is being restarted')
    const listed = await fetch.slotsIn({ from: this.#nextSlot, to: this.#nextSlot + PIECE_SLOTS - 1 })
    if (listed === undefined) throw new Error('no node lists the blocks')
    if (listed.length > 0 && (await this.#writeSlots(listed, store)) === undefined) return
    // The slots were skipped, or that node lacks blocks that another one has.
    const fault = await this.#writeSlots(await this.#listOnAnyNode(), store)
    if (fault !== undefined) throw new Error(fault)
  }

  /** The next slots that have a block on any node, however far they are. */
  async #listOnAnyNode(): Promise<readonly number[]> {
    const { fetch } = this.#deps
    let from = Math.max(this.#nextSlot, (await fetch.firstOnAnyNode()) ?? 0)
    const end = Math.max(from, this.#range.to + AFTER_SLOTS_MAX)
    for (let slots = PIECE_SLOTS; from <= end; slots *= 2) {
      const listed = await fetch.slotsOnAnyNode({ from, to: from + slots - 1 })
      if (listed === undefined) throw new Error('not every node lists the blocks')
      if (listed.length > 0) return listed.slice(0, PIECE_SLOTS)
      from += slots
    }
    throw new Error(`no node lists a finalized block after slot ${this.#nextSlot - 1}`)
  }

  /** Writes the listed blocks of the range if each one follows the block before it. Otherwise writes none and returns the reason. */
  async #writeSlots(listed: readonly number[], store: StoreProcess): Promise<string | undefined> {
    const inRange = listed.filter((slot) => slot <= this.#range.to)
    const isEnd = inRange.length === 0
    const decoded = new Set<number>()
    try {
      const links = await this.#fetchAndDecode(isEnd ? listed.slice(0, 1) : inRange, store, decoded)
      const fault = this.#faultOf(links)
      if (fault !== undefined) return fault
      // The rest of the range has no blocks: the first one after it follows the last one that is written.
      if (isEnd) this.#nextSlot = this.#range.to + 1
      else {
        await this.#write(links, store)
        decoded.clear()
      }
      return undefined
    } finally {
      // A store process that has ended has forgotten them already.
      if (decoded.size > 0) await store.ask({ kind: 'forget', ids: [...decoded] }).catch(() => {})
    }
  }

  /** Adds the id of every block that the store process keeps to `decoded`, also when it fails. */
  async #fetchAndDecode(
    slots: readonly number[],
    store: StoreProcess,
    decoded: Set<number>,
  ): Promise<readonly BackfillLink[]> {
    const links: BackfillLink[] = []
    for (let at = 0; at < slots.length; at += PARALLEL) {
      const piece = slots.slice(at, at + PARALLEL).map((slot) => this.#fetchOne(slot, store, decoded))
      // All have settled before the blocks of a failed piece are forgotten.
      for (const one of await Promise.allSettled(piece)) {
        if (one.status === 'rejected') throw one.reason
        links.push(one.value)
      }
    }
    return links
  }

  async #fetchOne(slot: number, store: StoreProcess, decoded: Set<number>): Promise<BackfillLink> {
    const fetched = await this.#deps.fetch.fetch(slot)
    if (fetched.kind === 'later') throw new Error(`block ${slot}: ${fetched.reason}`)
    if (fetched.kind !== 'block')
      throw new Error(`block ${slot}: ${fetched.kind === 'pruned' ? 'pruned by every node' : 'no node has it'}`)
    const id = ++this.#lastId
    decoded.add(id)
    const response = await fromDatabase(store.ask({ kind: 'decode', id, raw: fetched.raw }))
    if (!response.ok) {
      this.#deps.fetch.refuse(fetched.raw)
      throw new Error(`block ${slot} cannot be decoded: ${response.fault}`)
    }
    return { ...response.link, id }
  }

  /** Why these blocks do not continue what is written, without a block missing before or between them. */
  #faultOf(links: readonly BlockLink[]): string | undefined {
    let before = this.#previous
    for (const link of links) {
      const { slot, parentSlot, parentBlockhash } = link
      const from = before === undefined ? this.#nextSlot : before.slot + 1
      if (slot > 0 && parentSlot >= from)
        return `the blocks of slots ${from} to ${parentSlot} are missing on every node`
      if (before !== undefined && (parentSlot !== before.slot || parentBlockhash !== before.blockhash))
        return `block ${slot} does not follow block ${before.slot}`
      before = link
    }
    return undefined
  }

  async #write(links: readonly BackfillLink[], store: StoreProcess): Promise<void> {
    const [first, last] = [links[0], links.at(-1)]
    assert(first !== undefined && last !== undefined)
    // Slots between a block and its parent were skipped. The first block of a chain has no parent.
    const range = { from: first.slot === 0 ? 0 : first.parentSlot + 1, to: last.slot }
    const ids = links.map(({ id }) => id)
    const name = `${range.from}-${range.to}:${last.blockhash}`
    const reason = await fromDatabase(
      store.ask({ kind: 'write', ids, name, range, finalizedSlot: last.slot, tipSlot: last.slot }),
    )
    if (reason !== null) this.#deps.log.warn({ reason }, MOVE_FAILED)
    this.#blocks += links.length
    this.#previous = last
    this.#nextSlot = last.slot + 1
  }
}

async function fromDatabase<Response>(response: Promise<Response>): Promise<Response> {
  try {
    return await response
  } catch (cause) {
    throw new DatabaseFailed(messageOf(cause), { cause })
  }
}
