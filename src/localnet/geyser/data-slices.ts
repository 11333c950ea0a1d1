/** Parts of account data a stream asked for, ordered and not overlapping. None at all means the whole data. */
export type DataSlices = readonly { readonly offset: number; readonly length: number }[]

/** The parts that fit completely into the data; one that does not gives nothing (unlike JSON-RPC's dataSlice). */
export function cutSlices(data: Uint8Array, slices: DataSlices): Uint8Array[] {
  if (slices.length === 0) return [data]
  const parts: Uint8Array[] = []
  for (const { offset, length } of slices) {
    if (offset + length <= data.length) parts.push(data.subarray(offset, offset + length))
  }
  return parts
}
