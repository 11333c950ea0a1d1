const MATCH_BYTES_MIN = 4
const OFFSET_BYTES = 2
/** Up to this length a loop over the bytes takes less time than a call that copies them. */
const SHORT_BYTES = 32
const NOTHING = Buffer.alloc(0)

/** Expands one LZ4 block (see `lz4.ts`) to its known size; undefined where it is not a block of that size. */
export function expandLz4Block(block: Uint8Array, bytes: number): Buffer | undefined {
  if (block.length === 0) return bytes === 0 ? NOTHING : undefined
  const out = Buffer.allocUnsafe(bytes)
  let at = 0
  let written = 0
  for (;;) {
    const token = block[at++]
    if (token === undefined) return undefined
    const literals = readLength(block, at, token >> 4)
    at = literals.next
    // Beyond the end of the block a length is endless.
    if (!(written + literals.length <= bytes && at + literals.length <= block.length)) return undefined
    copyLiterals(block, at, out, written, literals.length)
    at += literals.length
    written += literals.length
    // Only the last sequence has no match.
    if (at === block.length) return written === bytes ? out : undefined
    const offset = (block[at] as number) | ((block[at + 1] ?? 0) << 8)
    const match = readLength(block, at + OFFSET_BYTES, token & 15)
    at = match.next
    const length = match.length + MATCH_BYTES_MIN
    if (offset === 0 || offset > written || !(written + length <= bytes)) return undefined
    copyMatch(out, written, offset, length)
    written += length
  }
}

function copyLiterals(block: Uint8Array, from: number, out: Buffer, written: number, length: number): void {
  if (length > SHORT_BYTES) out.set(block.subarray(from, from + length), written)
  else for (let n = 0; n < length; n++) out[written + n] = block[from + n] as number
}

/** A match may overlap what it writes: then it repeats its first `offset` bytes. */
function copyMatch(out: Buffer, written: number, offset: number, length: number): void {
  const from = written - offset
  if (length > SHORT_BYTES && length <= offset) out.copyWithin(written, from, from + length)
  else for (let n = 0; n < length; n++) out[written + n] = out[from + n] as number
}

/** A length from 15 on goes on in bytes of at most 255. Infinite where the block ends before it. */
function readLength(
  block: Uint8Array,
  from: number,
  nibble: number,
): { readonly length: number; readonly next: number } {
  let length = nibble
  let next = from
  if (nibble < 15) return { length, next }
  for (;;) {
    const more = block[next++] ?? Number.POSITIVE_INFINITY
    length += more
    if (more !== 255) return { length, next }
  }
}
