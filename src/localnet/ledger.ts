import { encodeBase58 } from '../solana/base58.ts'
import { parseTransaction } from '../solana/transaction.ts'
import type { Block, TransactionRecord } from './model.ts'

export type LedgerOptions = {
  /** Bytes of blocks kept; the oldest blocks leave first. */
  readonly bytesMax: number
  readonly blocksMax: number
}

/** What a block weighs beside its transactions. */
const BLOCK_BYTES = 1024

/** The blocks that are kept, found by slot, by signature and by address. */
export class Ledger {
  readonly #options: LedgerOptions
  readonly #blocks = new Map<number, Block>()
  readonly #bySignature = new Map<string, TransactionRecord>()
  readonly #byAddress = new Map<string, AddressHistory>()
  #bytes = 0

  constructor(options: LedgerOptions) {
    this.#options = options
  }

  get firstSlot(): number {
    return this.#blocks.keys().next().value ?? 0
  }

  add(block: Block): void {
    this.#blocks.set(block.slot, block)
    this.#bytes += weightOf(block)
    for (const record of block.transactions) {
      this.#bySignature.set(record.signature, record)
      for (const address of addressesOf(record)) {
        let history = this.#byAddress.get(address)
        if (!history) this.#byAddress.set(address, (history = { records: [], dropped: 0 }))
        history.records.push(record)
      }
    }
    while (
      this.#blocks.size > 1 &&
      (this.#bytes > this.#options.bytesMax || this.#blocks.size > this.#options.blocksMax)
    ) {
      this.#dropOldest()
    }
  }

  block(slot: number): Block | undefined {
    return this.#blocks.get(slot)
  }

  transaction(signature: string): TransactionRecord | undefined {
    return this.#bySignature.get(signature)
  }

  *signaturesOf(address: string): Generator<TransactionRecord> {
    const history = this.#byAddress.get(address)
    if (!history) return
    for (let i = history.records.length - 1; i >= history.dropped; i--) yield history.records[i] as TransactionRecord
  }

  #dropOldest(): void {
    const [slot, block] = this.#blocks.entries().next().value as [number, Block]
    this.#blocks.delete(slot)
    this.#bytes -= weightOf(block)
    for (const record of block.transactions) {
      this.#bySignature.delete(record.signature)
      for (const address of addressesOf(record)) this.#forgetOldest(address)
    }
  }

  #forgetOldest(address: string): void {
    const history = this.#byAddress.get(address)
    if (!history) return
    history.dropped++
    if (history.dropped === history.records.length) this.#byAddress.delete(address)
    else if (history.dropped > 1024 && history.dropped * 2 > history.records.length) {
      history.records.splice(0, history.dropped)
      history.dropped = 0
    }
  }
}

/** In order of execution; the first `dropped` ones have left the ledger. */
type AddressHistory = { readonly records: TransactionRecord[]; dropped: number }

function weightOf(block: Block): number {
  return block.transactions.reduce((bytes, record) => bytes + record.wire.length * 8, BLOCK_BYTES)
}

/** Every address the transaction names, loaded ones too. */
function addressesOf({ wire, meta }: TransactionRecord): Set<string> {
  const parsed = parseTransaction(wire)
  const statics = parsed.ok ? parsed.transaction.staticKeys.map(encodeBase58) : []
  return new Set([...statics, ...meta.loadedAddresses.writable, ...meta.loadedAddresses.readonly])
}
