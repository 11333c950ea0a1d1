import { EVENT } from '../event/type.ts'
import type { EventBatch } from '../ring/event-batch.ts'
import { ACCOUNT_KEY_WORDS, isTransient, KeyHasher, STORAGE_KEY_WORDS } from './access-key.ts'
import { AccessRun, NOT_IN_BLOCK } from './access-run.ts'
import { BLOCK_LIMITS, BlockAccesses } from './block-accesses.ts'
import type { OpenBlock } from './open-block.ts'
import { TopAccessesFold, type TopAccessesOptions } from './top-accesses.ts'

/** Folds state accesses: each counts for the most accessed, and those of the open block for its contention. */
export class AccessFold {
  readonly top: TopAccessesFold
  readonly block: BlockAccesses
  /** Put aside, to be looked up together. */
  readonly accounts = new AccessRun(ACCOUNT_KEY_WORDS)
  readonly slots = new AccessRun(STORAGE_KEY_WORDS)
  readonly #hasher: KeyHasher

  constructor(seed: number, options?: TopAccessesOptions) {
    this.top = new TopAccessesFold(BLOCK_LIMITS.slots, options)
    this.block = new BlockAccesses(this.top.storage)
    this.#hasher = new KeyHasher(STORAGE_KEY_WORDS, seed)
  }

  /** Looks up what was put aside. Must be done before the batch is filled again, a block begins or ends, or anybody asks for counts. */
  count({ payloadWords }: EventBatch, open: OpenBlock): void {
    const { accounts, slots } = this
    this.#hasher.takeAccounts(payloadWords, accounts)
    announceSlots(accounts, payloadWords, open)
    this.top.account.add(accounts)
    accounts.count = 0
    this.#hasher.takeSlots(payloadWords, slots)
    leaveOutTransient(slots, open)
    this.top.storage.add(slots)
    this.block.add(slots)
    slots.count = 0
  }
}

/**
 * An ACCOUNT_ACCESS says at bytes 144 and 148 how many slots of it will follow, and how many transient ones. What is announced to a
 * block that is no longer open does no harm.
 */
function announceSlots({ count, payloadAt }: AccessRun, payloadWords: Uint32Array, open: OpenBlock): void {
  let persistent = 0
  let transient = 0
  for (let at = 0; at < count; at++) {
    const payload = (payloadAt[at] as number) >>> 2
    persistent += payloadWords[payload + 36] as number
    transient += payloadWords[payload + 37] as number
  }
  open.announce(EVENT.STORAGE_ACCESS, persistent)
  open.announceTransient(transient)
}

function leaveOutTransient({ count, txns, flags }: AccessRun, open: OpenBlock): void {
  let transient = 0
  for (let at = 0; at < count; at++) {
    if (!isTransient(flags[at] as number)) continue
    txns[at] = NOT_IN_BLOCK
    transient += 1
  }
  open.wereTransient(transient)
}
