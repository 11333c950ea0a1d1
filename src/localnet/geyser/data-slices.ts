/** The parts of account data that a stream requested, ordered and not overlapping. An empty list means the complete data. */
export type DataSlices = readonly { readonly offset: number; readonly length: number }[]

/** The parts that fit completely into the data; others are skipped (unlike JSON-RPC's dataSlice). */
export function cutSlices(data: Uint8Array, slices: DataSlices): Uint8Array[] {
  if (slices.length === 0) return [data]
  const parts: Uint8Array[] = []
  for (const { offset, length } of slices) {
    if (offset + length <= data.length) parts.push(data.subarray(offset, offset + length))
  }
  return parts
}
