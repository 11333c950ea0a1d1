import { multiply } from './galois-field.ts'
import { DATA_SHARDS } from './reed-solomon.ts'

/**
 * Linear combinations of 32 shards with the vector instructions of WebAssembly: a product in GF(2^8) of 16 bytes is two table lookups, one for
 * the low and one for the high four bits of each byte. About ten times as fast as the same in JavaScript.
 *
 *     memory   32 given shards and 32 results, SHARD_STRIDE bytes each; then for each given shard the address of the table of its weight; then
 *              the tables of all 256 weights: the products with 0 to 15, then those with 0, 16, 32 to 240
 */
export const SHARD_STRIDE = 992
const RESULTS_AT = DATA_SHARDS * SHARD_STRIDE
const POINTERS_AT = 2 * RESULTS_AT
const POINTERS_END = POINTERS_AT + 4 * DATA_SHARDS
const TABLES_AT = POINTERS_END
const TABLE_BYTES = 32
const PAGES = 2

export type ShardMemory = {
  readonly bytes: Uint8Array
  /** Where the n-th result begins. */
  resultAt(n: number): number
  /** The n-th result = the sum of the given shards, each times its weight. */
  combine(weights: Uint8Array, n: number): void
}

type Assembly = {
  Module: new (bytes: Uint8Array) => object
  Instance: new (
    module: object,
  ) => { readonly exports: { readonly memory: { readonly buffer: ArrayBuffer }; combine(resultAt: number): void } }
}

/** Throws where the processor has no vector instructions. */
export function createSimdShards(): ShardMemory {
  // The types of the global belong to those of browsers.
  const { Module, Instance } = (globalThis as unknown as { WebAssembly: Assembly }).WebAssembly
  const { memory, combine } = new Instance(new Module(assemble())).exports
  const bytes = new Uint8Array(memory.buffer)
  const pointers = new Int32Array(memory.buffer, POINTERS_AT, DATA_SHARDS)
  for (let weight = 0; weight < 256; weight++) {
    const at = TABLES_AT + weight * TABLE_BYTES
    for (let i = 0; i < 16; i++) {
      bytes[at + i] = multiply(weight, i)
      bytes[at + 16 + i] = multiply(weight, i << 4)
    }
  }
  const resultAt = (n: number): number => RESULTS_AT + n * SHARD_STRIDE
  return {
    bytes,
    resultAt,
    combine(weights, n) {
      for (let i = 0; i < DATA_SHARDS; i++) pointers[i] = TABLES_AT + (weights[i] as number) * TABLE_BYTES
      combine(resultAt(n))
    },
  }
}

/** Types, locals and instructions, as in the binary format of WebAssembly. */
const I32 = 0x7f
const V128 = 0x7b
const LOOP = [0x03, 0x40]
const END = 0x0b
const CONTINUE_IF = [0x0d, 0x00]
const LESS = 0x49
const ADD = 0x6a
const LOAD = [0x28, 2, 0]
const vectorLoad = (offset: number): number[] => [0xfd, 0x00, 4, offset]
const VECTOR_STORE = [0xfd, 0x0b, 4, 0]
const SWIZZLE = [0xfd, 0x0e]
const AND = [0xfd, 0x4e]
const XOR = [0xfd, 0x51]
const SHIFT_RIGHT = [0xfd, 0x6d]
const vectorOf = (byte: number): number[] => [0xfd, 0x0c, ...Array.from({ length: 16 }, () => byte)]
const constant = (value: number): number[] => [0x41, ...signed(value)]
const get = (local: number): number[] => [0x20, local]
const set = (local: number): number[] => [0x21, local]
const tee = (local: number): number[] => [0x22, local]

function assemble(): Uint8Array {
  const [result, column, shard, pointer, table, sum, vector] = [0, 1, 2, 3, 4, 5, 6] as const
  const locals = [2, 4, I32, 2, V128]
  const combine = [
    ...LOOP,
    ...[...vectorOf(0), ...set(sum), ...constant(POINTERS_AT), ...set(pointer), ...get(column), ...set(shard)],
    ...LOOP,
    ...[...get(pointer), ...LOAD, ...set(table)],
    // sum ^= low[vector & 15] ^ high[vector >> 4]
    ...get(sum),
    ...[...get(table), ...vectorLoad(0), ...get(shard), ...vectorLoad(0), ...tee(vector), ...vectorOf(15), ...AND],
    ...[...SWIZZLE, ...XOR],
    ...[...get(table), ...vectorLoad(16), ...get(vector), ...constant(4), ...SHIFT_RIGHT],
    ...[...SWIZZLE, ...XOR, ...set(sum)],
    ...[...get(shard), ...constant(SHARD_STRIDE), ADD, ...set(shard)],
    ...[...get(pointer), ...constant(4), ADD, ...tee(pointer), ...constant(POINTERS_END), LESS, ...CONTINUE_IF],
    END,
    ...[...get(result), ...get(column), ADD, ...get(sum), ...VECTOR_STORE],
    ...[...get(column), ...constant(16), ADD, ...tee(column), ...constant(SHARD_STRIDE), LESS, ...CONTINUE_IF],
    END,
    END,
  ]
  const body = [...locals, ...combine]
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    // One type: a function of an i32. One function of it. One memory.
    ...section(1, [1, 0x60, 1, I32, 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, PAGES]),
    ...section(7, [2, ...name('memory'), 2, 0, ...name('combine'), 0, 0]),
    ...section(10, [1, ...unsigned(body.length), ...body]),
  ])
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content]
}

function name(text: string): number[] {
  return [text.length, ...Array.from(text, (letter) => letter.charCodeAt(0))]
}

/** LEB128. */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)]
}

function signed(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...signed(value >>> 7)]
}
