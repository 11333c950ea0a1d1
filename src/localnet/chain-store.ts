import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ServiceError } from '../core/service-error.ts'
import type { Logger } from '../host/logger.ts'
import { AccountStore } from './accounts.ts'
import type { Head } from './bank.ts'
import { type PackedBlock, packBlock, unpackCore, unpackWrites } from './block-codec.ts'
import { createBlockhashQueue } from './blockhash-queue.ts'
import type { ChainState } from './chain-state.ts'
import { Ledger, type LedgerOptions } from './ledger.ts'
import { LedgerFile } from './ledger-file.ts'
import type { Block } from './model.ts'
import { readSnapshot, writeSnapshot } from './snapshot.ts'
import { headSysvars } from './sysvar-accounts.ts'
import { SLOT_HASHES_MAX, type SlotHash } from './sysvars.ts'

/** A snapshot is written when this many slots or this many bytes of writes lie behind the last one. */
const SLOTS_PER_SNAPSHOT = 1500
const BYTES_PER_SNAPSHOT = 16 * 1024 * 1024

export type RecoverOptions = {
  readonly ledger: LedgerOptions
  readonly finalizedSlots: number
  readonly slotsPerEpoch: number
}

/**
 * The chain on disk: `accounts.snapshot` and the blocks since in `ledger/`. Every block is written before anybody hears
 * of it, so a killed process comes back at its last block. A power cut may cost the blocks since the last snapshot.
 */
export class ChainStore implements AsyncDisposable {
  readonly #snapshotPath: string
  readonly #blocks: LedgerFile
  readonly #log: Logger
  #snapshotSlot = -1
  #bytesSince = 0
  #writing: Promise<void> | undefined

  constructor(dir: string, { log }: { readonly log: Logger }) {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    this.#snapshotPath = join(dir, 'accounts.snapshot')
    this.#blocks = new LedgerFile(join(dir, 'ledger'))
    this.#log = log
  }

  /** The chain as it was left, or undefined when none has begun here. Throws rather than lose one that has. */
  recover(options: RecoverOptions): ChainState | undefined {
    const snapshot = this.#readSnapshot()
    const accounts = new AccountStore()
    const ledger = new Ledger(options.ledger)
    const blockhashes = createBlockhashQueue()
    const slotHashes: SlotHash[] = []
    let head: Head | undefined
    for (const [address, account] of snapshot?.accounts ?? []) accounts.load(address, account)
    for (const { slot, core, writes } of this.#blocks.readAll()) {
      const unpacked = unpackCore(core)
      ledger.add(unpacked.block, core)
      head = unpacked.head
      blockhashes.push(head.blockhash, head.height)
      slotHashes.unshift({ slot, hash: head.bankHash })
      slotHashes.splice(SLOT_HASHES_MAX)
      if (!snapshot || slot <= snapshot.head.slot) continue
      for (const write of unpackWrites(writes, slot)) accounts.write(write)
      this.#bytesSince += writes.length
      accounts.root(slot - options.finalizedSlots)
    }
    if (!snapshot && !head) return undefined
    if (!snapshot || !head || head.slot < snapshot.head.slot) {
      throw new ServiceError(
        'store-corrupt',
        `the chain under ${this.#snapshotPath} lacks its snapshot or its newest blocks`,
        {
          fix: 'Restore the folder from a backup, or remove it to begin a new chain.',
        },
      )
    }
    this.#snapshotSlot = snapshot.head.slot
    const chain = { slotHashes, blockhashes, slotsPerEpoch: options.slotsPerEpoch }
    for (const [address, account] of headSysvars(head, chain)) accounts.load(address, account)
    return { genesisHash: snapshot.genesisHash, accounts, ledger, blockhashes, slotHashes, head }
  }

  /** The first block and the state it left. */
  async begin(state: ChainState, block: Block, ticks: number): Promise<void> {
    this.#blocks.append({ slot: block.slot, ...packBlock(block, state.head, ticks) })
    await this.#snapshot(state, state.head)
  }

  append(packed: PackedBlock, state: ChainState, head: Head): void {
    this.#blocks.append({ slot: head.slot, ...packed })
    this.#bytesSince += packed.writes.length
    const isDue = head.slot - this.#snapshotSlot >= SLOTS_PER_SNAPSHOT || this.#bytesSince >= BYTES_PER_SNAPSHOT
    if (!isDue || this.#writing) return
    this.#writing = this.#snapshot(state, head)
      .catch((err: unknown) => this.#log.error({ err }, 'snapshot could not be written'))
      .finally(() => {
        this.#writing = undefined
      })
  }

  /** Writes a last snapshot, so that the next start has nothing to replay. */
  async close(state: ChainState, head: Head): Promise<void> {
    await this.#writing
    await this.#snapshot(state, head)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing
    this.#blocks[Symbol.dispose]()
  }

  async #snapshot(state: ChainState, head: Head): Promise<void> {
    if (head.slot === this.#snapshotSlot) return
    // Accounts are never changed in place, so a list of them stays the state of this block.
    const accounts = [...state.accounts.all(head.slot)]
    this.#bytesSince = 0
    this.#blocks.sync()
    await writeSnapshot(this.#snapshotPath, { genesisHash: state.genesisHash, head, accounts }, nextTurn)
    this.#snapshotSlot = head.slot
    this.#blocks.dropBelow(Math.min(head.slot, state.ledger.firstSlot))
  }

  #readSnapshot() {
    try {
      return readSnapshot(this.#snapshotPath)
    } catch (cause) {
      throw new ServiceError('store-corrupt', `${this.#snapshotPath} cannot be read`, {
        fix: 'Restore it from a backup, or remove the folder it lies in to begin a new chain.',
        cause,
      })
    }
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
