import type { WaitingWork, Work } from '../../core/work.ts'
import type { EthBlock } from '../../evm/eth-block.ts'
import {
  type Admit,
  blockPieces,
  type JsonPieces,
  receiptPieces,
  receiptsPieces,
  transactionText,
} from '../../evm/eth-text.ts'
import type { BlockHandle } from './blocks.ts'
import type { CallContext } from './call-meter.ts'
import type { HeldBlock } from './held-block.ts'
import type { ResponseText } from './response-text.ts'

/** A recorded byte becomes two hex characters. */
const HEX_CHARS = 2
/** A text larger than this share of the cache is not cached. */
const CACHED_SHARE_MAX = 0.25

type Form = 'hashes' | 'full' | 'receipts'

/** Renders blocks and their receipts as JSON text and caches them, bounded in bytes. */
export class RenderedBlocks {
  readonly #bytesMax: number
  /** In order of last use. */
  readonly #cache = new Map<string, { readonly chunks: readonly Buffer[]; readonly bytes: number }>()
  #bytes = 0

  constructor(options: { readonly bytesMax: number }) {
    this.#bytesMax = options.bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  writeBlock(handle: BlockHandle | undefined, isFull: boolean, context: CallContext): WaitingWork<void> {
    const admit = admitTo(context.out)
    return this.#write(handle, isFull ? 'full' : 'hashes', context, (block, { txnHashes }) =>
      blockPieces(block, isFull ? 'full' : { hashes: txnHashes }, admit),
    )
  }

  writeReceipts(handle: BlockHandle | undefined, context: CallContext): WaitingWork<void> {
    return this.#write(handle, 'receipts', context, (block) => receiptsPieces(block, admitTo(context.out)))
  }

  *#write(
    handle: BlockHandle | undefined,
    form: Form,
    { out, meter }: CallContext,
    piecesOf: (block: EthBlock, held: HeldBlock) => JsonPieces,
  ): WaitingWork<void> {
    const held = handle && (yield* handle.load(meter))
    if (held === undefined) return out.add('null')
    const key = `${held.key} ${form}`
    const cached = this.#cache.get(key)
    if (cached !== undefined) {
      this.#cache.delete(key)
      this.#cache.set(key, cached)
      return out.addChunks(cached.chunks)
    }
    const block = yield* held.readComplete()
    const before = out.mark()
    yield* writePieces(piecesOf(block, held), out)
    this.#store(key, out.since(before))
  }

  #store(key: string, chunks: readonly Buffer[]): void {
    const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
    if (bytes > this.#bytesMax * CACHED_SHARE_MAX || this.#cache.has(key)) return
    this.#cache.set(key, { chunks, bytes })
    this.#bytes += bytes
    for (const [oldest, entry] of this.#cache) {
      if (this.#bytes <= this.#bytesMax) return
      this.#cache.delete(oldest)
      this.#bytes -= entry.bytes
    }
  }
}

export function writeTransaction(block: EthBlock, index: number, out: ResponseText): void {
  out.add(transactionText(block, index, admitTo(out)))
}

export function writeReceipt(block: EthBlock, index: number, out: ResponseText): Work<void> {
  return writePieces(receiptPieces(block, index, admitTo(out)), out)
}

function* writePieces(pieces: JsonPieces, out: ResponseText): Work<void> {
  for (const piece of pieces) {
    if (piece !== undefined) out.add(piece)
    yield
  }
}

/** Refuses a part that does not fit before it is decoded. */
function admitTo(out: ResponseText): Admit {
  return (recordedBytes) => out.admit(recordedBytes * HEX_CHARS)
}
