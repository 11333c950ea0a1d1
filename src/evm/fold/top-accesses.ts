import { type Hex, toHex } from '../hex.ts'
import { ACCOUNT_KEY_WORDS, STORAGE_KEY_WORDS } from './access-key.ts'
import { RUN_MAX } from './access-run.ts'
import { type Counted, SpaceSaving } from './space-saving.ts'

/** The most accessed accounts and slots, with the fields of the published record. */
export type TopAccesses = {
  account: { key: Hex; count: number }[]
  storage: { key: [address: Hex, slot: Hex]; count: number }[]
}

export type TopAccessesOptions = { counters: number; top: number }

const TOP_ACCESSES_DEFAULTS: TopAccessesOptions = { counters: 1000, top: 10 }

/** Keys kept per counter, those that lost their counter included, before the table is trimmed. */
const KEYS_PER_COUNTER = 4

/** Counts every ACCOUNT_ACCESS and STORAGE_ACCESS, whatever block it belongs to. */
export class TopAccessesFold {
  readonly account: SpaceSaving
  readonly storage: SpaceSaving
  readonly #top: number
  readonly #slotsKept: number

  /** `slotsMax`: slots that may be added between two calls of `trim` without being renumbered. */
  constructor(slotsMax: number, { counters, top }: TopAccessesOptions = TOP_ACCESSES_DEFAULTS) {
    const kept = counters * KEYS_PER_COUNTER
    const keysMax = kept + RUN_MAX
    this.account = new SpaceSaving({ counters, words: ACCOUNT_KEY_WORDS, keysMax })
    this.storage = new SpaceSaving({ counters, words: STORAGE_KEY_WORDS, keysMax: keysMax + slotsMax })
    this.#slotsKept = kept
    this.#top = top
  }

  /** Accesses counted since the last reset; unchanged means that there is nothing new to publish. */
  get seen(): number {
    return this.account.seen + this.storage.seen
  }

  /** Called between blocks: removes slots without a counter once there are many. */
  trim(): void {
    if (this.storage.table.size > this.#slotsKept) this.storage.trim()
  }

  reset(): void {
    this.account.clear()
    this.storage.clear()
  }

  publish(): TopAccesses {
    const accounts = keyReader(this.account)
    const slots = keyReader(this.storage)
    return {
      account: this.account.top(this.#top).map((counted) => ({ key: accounts(counted, 0, 20), count: counted.count })),
      storage: this.storage
        .top(this.#top)
        .map((counted) => ({ key: [slots(counted, 0, 20), slots(counted, 20, 52)], count: counted.count })),
    }
  }
}

function keyReader({ table }: SpaceSaving): (counted: Counted, from: number, to: number) => Hex {
  const bytes = new Uint8Array(table.keys.buffer)
  return ({ entry }, from, to) => toHex(bytes, entry * table.words * 4 + from, entry * table.words * 4 + to)
}
