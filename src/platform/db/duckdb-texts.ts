import { VARCHAR } from '@duckdb/node-api'
import engine from '@duckdb/node-bindings'

/** `duckdb_string_t` of duckdb.h: the length, then up to twelve bytes of text, or the first four and a pointer. */
const STRING_WORDS = 4
const INLINE_BYTES = 12
const PREFIX_BYTES = 4
const WORD = 2 ** 32

/** Texts in DuckDB's memory that rows refer to by index, until they are disposed of. */
export type DuckTexts = Disposable & {
  /** The strings of a column, by the indexes of their texts, in DuckDB's layout. */
  strings(numbers: Uint32Array): Uint32Array
}

/**
 * Passes texts to DuckDB: `bytes` is UTF-8, and `ends` has the end of each text in it. They form a single long string; the strings of the rows point
 * into it, as the results of DuckDB's substring functions do.
 */
export function positionTexts({ bytes, ends }: { readonly bytes: Uint8Array; readonly ends: Uint32Array }): DuckTexts {
  const held = engine.create_data_chunk([VARCHAR.toLogicalType().logical_type])
  engine.data_chunk_set_size(held, 1)
  const vector = engine.data_chunk_get_vector(held, 0)
  engine.vector_assign_string_element_len(vector, 0, bytes)
  const [, , low = 0, high = 0] = new Uint32Array(engine.vector_get_data(vector, STRING_WORDS * 4).slice().buffer)
  const all = describe(bytes, ends, high * WORD + low)
  return {
    strings(numbers) {
      const strings = new Uint32Array(numbers.length * STRING_WORDS)
      for (let index = 0, to = 0; index < numbers.length; index++) {
        let from = (numbers[index] as number) * STRING_WORDS
        strings[to++] = all[from++] as number
        strings[to++] = all[from++] as number
        strings[to++] = all[from++] as number
        strings[to++] = all[from] as number
      }
      return strings
    },
    // Freed at once, not when it is collected: a batch has megabytes.
    [Symbol.dispose]: () => engine.data_chunk_reset(held),
  }
}

function describe(bytes: Uint8Array, ends: Uint32Array, address: number): Uint32Array {
  const strings = new Uint32Array(ends.length * STRING_WORDS)
  const asBytes = new Uint8Array(strings.buffer)
  for (let number = 0, start = 0; number < ends.length; number++) {
    const end = ends[number] as number
    const at = number * STRING_WORDS
    const isLong = end - start > INLINE_BYTES
    strings[at] = end - start
    for (let from = start, to = at * 4 + 4; from < (isLong ? start + PREFIX_BYTES : end); from++, to++) {
      asBytes[to] = bytes[from] as number
    }
    if (isLong) {
      // Addresses have 48 bits, so they are exact as numbers.
      strings[at + 2] = (address + start) % WORD
      strings[at + 3] = Math.floor((address + start) / WORD)
    }
    start = end
  }
  return strings
}
