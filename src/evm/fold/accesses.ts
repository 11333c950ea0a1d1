import { PAYLOADS } from '../event/payloads.ts'
import { EVENT } from '../event/type.ts'
import type { EventBatch } from '../ring/event-batch.ts'
import { ACCOUNT_KEY_WORDS, isTransient, KeyHasher, STORAGE_KEY_WORDS } from './access-key.ts'
import { AccessRun, NOT_IN_BLOCK } from './access-run.ts'
import { BLOCK_LIMITS, BlockAccesses } from './block-accesses.ts'
import type { OpenBlock } from './open-block.ts'
import { TopAccessesFold, type TopAccessesOptions } from './top-accesses.ts'

/** Words of an ACCOUNT_ACCESS: how many persistent and transient slots of the account follow. */
const STORAGE_KEY_COUNT = PAYLOADS.ACCOUNT_ACCESS.fields.storage_key_count[1] / 4
const TRANSIENT_COUNT = PAYLOADS.ACCOUNT_ACCESS.fields.transient_count[1] / 4

/** Folds state accesses: each counts for the most accessed keys, and those of the open block for its contention. */
export class AccessFold {
  readonly top: TopAccessesFold
  readonly block: BlockAccesses
  /** Accesses collected to be looked up together. */
  readonly accounts = new AccessRun(ACCOUNT_KEY_WORDS)
  readonly slots = new AccessRun(STORAGE_KEY_WORDS)
  readonly #hasher: KeyHasher

  constructor(seed: number, options?: TopAccessesOptions) {
    this.top = new TopAccessesFold(BLOCK_LIMITS.slots, options)
    this.block = new BlockAccesses(this.top.storage)
    this.#hasher = new KeyHasher(STORAGE_KEY_WORDS, seed)
  }

  /** Looks up the collected accesses. Must run before the batch is filled again, a block begins or ends, or counts are read. */
  count({ payloadWords }: EventBatch, open: OpenBlock): void {
    const { accounts, slots } = this
    this.#hasher.hashAccounts(payloadWords, accounts)
    announceSlots(accounts, payloadWords, open)
    this.top.account.add(accounts)
    accounts.count = 0
    this.#hasher.hashSlots(payloadWords, slots)
    excludeTransient(slots, open)
    this.top.storage.add(slots)
    this.block.add(slots)
    slots.count = 0
  }
}

/** An ACCOUNT_ACCESS announces how many STORAGE_ACCESS events follow. Announcing to a block that is no longer open has no effect. */
function announceSlots({ count, payloadAt }: AccessRun, payloadWords: Uint32Array, open: OpenBlock): void {
  let persistent = 0
  let transient = 0
  for (let at = 0; at < count; at++) {
    const payload = (payloadAt[at] as number) >>> 2
    persistent += payloadWords[payload + STORAGE_KEY_COUNT] as number
    transient += payloadWords[payload + TRANSIENT_COUNT] as number
  }
  open.announce(EVENT.STORAGE_ACCESS, persistent)
  open.announceTransient(transient)
}

function excludeTransient({ count, txns, flags }: AccessRun, open: OpenBlock): void {
  let transient = 0
  for (let at = 0; at < count; at++) {
    if (!isTransient(flags[at] as number)) continue
    txns[at] = NOT_IN_BLOCK
    transient += 1
  }
  open.receivedTransient(transient)
}
