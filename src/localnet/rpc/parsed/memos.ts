import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { parseTransaction } from '../../../solana/transaction/transaction.ts'
import { parsable, readUtf8 } from './byte-reader.ts'
import { MEMO_PROGRAMS } from './instructions.ts'

/** Memos of the top-level instructions as getSignaturesForAddress shows them: `[byteLength] text`, several joined by `; `. */
export function describeMemos(wire: Uint8Array): string | null {
  const parsed = parseTransaction(wire)
  if (!parsed.ok) return null
  const { staticKeys, instructions } = parsed.transaction
  const memos: string[] = []
  for (const { programIdIndex, data } of instructions) {
    const program = staticKeys[programIdIndex]
    if (!program || !MEMO_PROGRAMS.has(encodeBase58(program))) continue
    memos.push(`[${data.length}] ${parsable(() => readUtf8(data)) ?? '(unparseable)'}`)
  }
  return memos.length === 0 ? null : memos.join('; ')
}
