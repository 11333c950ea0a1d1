import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ServiceError } from '../../core/error.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { AccountStore } from './accounts.ts'
import type { Head } from './bank.ts'
import { type PackedBlock, packBlock, unpackBlock, unpackWrites } from './block-codec.ts'
import { createBlockhashQueue } from './blockhash-queue.ts'
import { Ledger, type LedgerOptions } from './ledger.ts'
import { LedgerFile, type StoredBlock } from './ledger-file.ts'
import type { Block } from './model.ts'
import { createSlotHashes } from './slot-hashes.ts'
import { readSnapshot, writeSnapshot } from './snapshot.ts'
import { type ChainState, slotSysvarWrites, sysvarsOf } from './state.ts'

/** A snapshot is written after this many slots or this many bytes of writes since the last one. */
const SLOTS_PER_SNAPSHOT = 1500
const BYTES_PER_SNAPSHOT = 16 * 1024 * 1024
const SLOTS_PER_RETRY = 100
/** Blocks kept in memory while the disk cannot be written, about seven minutes of them; above that the process ends. */
const UNWRITTEN_MAX = 1000

export type RecoverOptions = {
  readonly ledger: LedgerOptions
  readonly finalizedSlots: number
  readonly slotsPerEpoch: number
}

/**
 * The chain on disk: `accounts.snapshot` and the blocks since in `ledger/`. Every block is written before it is
 * announced, so a killed process continues from its last block. A power cut may lose the blocks since the last snapshot.
 */
export class ChainStore implements AsyncDisposable {
  readonly #snapshotPath: string
  readonly #blocks: LedgerFile
  readonly #log: Logger
  #snapshotSlot = -1
  #bytesSince = 0
  #writing: Promise<void> | undefined
  readonly #unwritten: StoredBlock[] = []
  #isFailing = false
  /** Above 0 after a snapshot failed: the slot of the next attempt. */
  #retrySlot = 0

  constructor(dir: string, { log }: { readonly log: Logger }) {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    this.#snapshotPath = join(dir, 'accounts.snapshot')
    this.#blocks = new LedgerFile(join(dir, 'ledger'))
    this.#log = log
  }

  /** The stored chain, or undefined when the folder has none. Throws when it cannot be read completely. */
  recover(options: RecoverOptions): ChainState | undefined {
    const snapshot = this.#readSnapshot()
    const accounts = new AccountStore()
    const ledger = new Ledger({ ...options.ledger, finalizedSlots: options.finalizedSlots })
    const blockhashes = createBlockhashQueue()
    const slotHashes = createSlotHashes()
    const chain = { slotHashes, blockhashes, slotsPerEpoch: options.slotsPerEpoch }
    let head: Head | undefined
    for (const [address, account] of snapshot?.accounts ?? []) accounts.load(address, account)
    for (const stored of this.#blocks.readAll()) {
      const { slot, core, writes } = stored
      const parent = head
      const unpacked = unpackBlock(stored, (own) => (parent ? slotSysvarWrites(own, parent, chain) : []))
      ledger.add(unpacked.block, core)
      head = unpacked.head
      blockhashes.push(head.blockhash, head.height)
      slotHashes.push(slot, head.bankHash)
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
          fix: 'Restore the folder from a backup, or remove it to start a new chain.',
        },
      )
    }
    this.#snapshotSlot = snapshot.head.slot
    for (const [address, account] of sysvarsOf(head, chain)) accounts.load(address, account)
    return { genesisHash: snapshot.genesisHash, accounts, ledger, blockhashes, slotHashes, head }
  }

  /** Writes the first block and the state after it. */
  async begin(state: ChainState, block: Block, ticks: number): Promise<void> {
    this.#blocks.append({ slot: block.slot, ...packBlock(block, state.head, ticks) })
    await this.#snapshot(state, state.head)
  }

  /** A disk that cannot be written does not stop the chain: up to `UNWRITTEN_MAX` blocks are kept in order. */
  append(packed: PackedBlock, state: ChainState, head: Head): void {
    this.#unwritten.push({ slot: head.slot, ...packed })
    this.#bytesSince += packed.writes.length
    this.#writeBlocks()
    if (this.#unwritten.length > 0 || this.#writing || head.slot < this.#nextSnapshotSlot(head)) return
    this.#writing = this.#trySnapshot(state, head).finally(() => {
      this.#writing = undefined
    })
  }

  /** Writes a final snapshot, so that the next start has nothing to replay. */
  async finish(state: ChainState, head: Head): Promise<void> {
    await this.#writing
    this.#writeBlocks()
    if (this.#unwritten.length === 0) await this.#trySnapshot(state, head)
  }

  #writeBlocks(): void {
    try {
      while (this.#unwritten[0]) {
        this.#blocks.append(this.#unwritten[0])
        this.#unwritten.shift()
      }
      if (this.#isFailing) this.#log.info('blocks are written again')
      this.#isFailing = false
    } catch (err) {
      if (!this.#isFailing) this.#log.error({ err }, 'blocks cannot be written; they are kept in memory')
      this.#isFailing = true
      if (this.#unwritten.length > UNWRITTEN_MAX) throw err
    }
  }

  #nextSnapshotSlot(head: Head): number {
    if (this.#retrySlot > 0) return this.#retrySlot
    return this.#bytesSince >= BYTES_PER_SNAPSHOT ? head.slot : this.#snapshotSlot + SLOTS_PER_SNAPSHOT
  }

  async #trySnapshot(state: ChainState, head: Head): Promise<void> {
    try {
      await this.#snapshot(state, head)
      this.#retrySlot = 0
    } catch (err) {
      this.#log.error({ err }, 'snapshot could not be written; the blocks since the last one are kept')
      this.#retrySlot = head.slot + SLOTS_PER_RETRY
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing
    this.#blocks[Symbol.dispose]()
  }

  async #snapshot(state: ChainState, head: Head): Promise<void> {
    if (head.slot === this.#snapshotSlot) return
    // Accounts are never changed in place, so this list stays the state of this block.
    const accounts = [...state.accounts.all(head.slot)]
    this.#bytesSince = 0
    this.#blocks.sync()
    await writeSnapshot(this.#snapshotPath, { genesisHash: state.genesisHash, head, accounts }, nextEventLoopIteration)
    this.#snapshotSlot = head.slot
    this.#blocks.dropBelow(Math.min(head.slot, state.ledger.firstSlot))
  }

  #readSnapshot() {
    try {
      return readSnapshot(this.#snapshotPath)
    } catch (cause) {
      throw new ServiceError('store-corrupt', `${this.#snapshotPath} cannot be read`, {
        fix: 'Restore it from a backup, or remove its folder to start a new chain.',
        cause,
      })
    }
  }
}

function nextEventLoopIteration(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
