import { promisify } from 'node:util'
import { constants, deflateRaw, inflateRaw } from 'node:zlib'
import type { Hex } from '../../contract/stream-events.ts'
import { BLOOM_BYTES } from '../../evm/logs-bloom.ts'
import type { BlockOutcome } from '../rpc/block-store.ts'
import type { HeldBlock } from '../rpc/held-block.ts'
import type { BlockContent } from '../source/message.ts'

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/** What is known of an archived block without reading its events. */
export type ArchivedFacts = {
  readonly number: number
  readonly id: Hex
  readonly hash: Hex
  readonly chainId: number | null
  readonly bloom: Uint8Array | undefined
  readonly txnCount: number
  /** The first four bytes of each transaction hash, sorted: few other blocks have the same. */
  readonly txnPrefixes: Uint32Array
  /** Bytes of descriptors, payloads and payload offsets. */
  readonly sizes: readonly [number, number, number]
}

/** The head of a record: a block, or what became of a block of an earlier record. */
export type ArchivedHead =
  | { readonly kind: 'block'; readonly facts: ArchivedFacts }
  | { readonly kind: BlockOutcome; readonly id: Hex }

export const ARCHIVED_HEAD_BYTES_MAX = 16 * 1024 * 1024
/** Bytes of the events of a block, before compression. */
export const ARCHIVED_BODY_BYTES_MAX = 256 * 1024 * 1024

const PREFIX_BYTES = 4
const LENGTH_BYTES = 4
const HEX_32 = /^0x[0-9a-f]{64}$/

/** JSON with its length, then the bloom, then the prefixes of the transaction hashes. */
export function encodeBlockHead(content: BlockContent, held: HeldBlock): Buffer {
  const { number, id, hash, chainId, descriptors, payloads, payloadAt } = content
  const sizes = [descriptors.byteLength, payloads.byteLength, payloadAt.byteLength]
  const prefixes = Uint32Array.from(held.txnHashes, txnPrefix).toSorted()
  const fields = {
    kind: 'block',
    number,
    id,
    hash,
    chainId,
    txns: prefixes.length,
    bloom: held.bloom !== undefined,
    sizes,
  }
  return Buffer.concat([lengthAndJson(fields), held.bloom ?? Buffer.alloc(0), Buffer.from(prefixes.buffer)])
}

export function encodeOutcomeHead(id: Hex, outcome: BlockOutcome): Buffer {
  return lengthAndJson({ kind: outcome, id })
}

/** Undefined for a head of another version. */
export function decodeHead(head: Buffer): ArchivedHead | undefined {
  const jsonEnd = head.length < LENGTH_BYTES ? 0 : LENGTH_BYTES + head.readUInt32LE(0)
  const fields = parseFields(head.toString('utf8', LENGTH_BYTES, jsonEnd))
  if (fields === undefined || jsonEnd > head.length) return undefined
  const { kind, number, id, hash, chainId, txns, bloom, sizes } = fields
  if (!isHex32(id)) return undefined
  if (kind === 'final' || kind === 'rejected') return { kind, id }
  const isBlock =
    kind === 'block' && isCount(number) && isHex32(hash) && isCount(txns) && (chainId === null || isCount(chainId))
  if (!isBlock || !Array.isArray(sizes) || sizes.length !== 3 || !sizes.every(isCount)) return undefined
  const prefixesAt = jsonEnd + (bloom === true ? BLOOM_BYTES : 0)
  if (head.length !== prefixesAt + txns * PREFIX_BYTES) return undefined
  const facts: ArchivedFacts = {
    number,
    id,
    hash,
    chainId,
    bloom: bloom === true ? Uint8Array.from(head.subarray(jsonEnd, prefixesAt)) : undefined,
    txnCount: txns,
    txnPrefixes: new Uint32Array(Uint8Array.from(head.subarray(prefixesAt)).buffer),
    sizes: sizes as unknown as ArchivedFacts['sizes'],
  }
  return { kind, facts }
}

/** Compresses the events on the thread pool. */
export function encodeBody({ descriptors, payloads, payloadAt }: BlockContent): Promise<Buffer> {
  const parts = [descriptors, payloads, payloadAt].map((part) => viewOf(part))
  return deflate(Buffer.concat(parts), { level: constants.Z_BEST_SPEED })
}

/** The block with its events; undefined when the body does not match its head. */
export async function decodeBody(facts: ArchivedFacts, body: Buffer): Promise<BlockContent | undefined> {
  const { number, id, hash, chainId, sizes } = facts
  const [descriptorBytes, payloadBytes, payloadAtBytes] = sizes
  const total = descriptorBytes + payloadBytes + payloadAtBytes
  if (total > ARCHIVED_BODY_BYTES_MAX || payloadAtBytes % 4 !== 0 || descriptorBytes % 4 !== 0) return undefined
  const bytes = await inflate(body, { maxOutputLength: Math.max(1, total) }).catch(() => undefined)
  if (bytes?.length !== total) return undefined
  const payloadsEnd = descriptorBytes + payloadBytes
  return {
    number,
    id,
    hash,
    chainId,
    // Copies: their words are read, so they must be aligned.
    descriptors: Uint8Array.from(bytes.subarray(0, descriptorBytes)),
    payloads: Uint8Array.from(bytes.subarray(descriptorBytes, payloadsEnd)),
    payloadAt: new Int32Array(Uint8Array.from(bytes.subarray(payloadsEnd)).buffer),
  }
}

/** The first four bytes of a transaction hash. */
export function txnPrefix(hash: Hex): number {
  return hash.length < 2 + 2 * PREFIX_BYTES ? 0 : Number(hash.slice(0, 2 + 2 * PREFIX_BYTES))
}

/** Whether one of the sorted prefixes is this one. */
export function hasPrefix(sorted: Uint32Array, prefix: number): boolean {
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((sorted[middle] as number) < prefix) from = middle + 1
    else to = middle
  }
  return sorted[from] === prefix
}

function parseFields(json: string): Record<string, unknown> | undefined {
  try {
    const fields: unknown = JSON.parse(json)
    return typeof fields === 'object' && fields !== null ? { ...fields } : undefined
  } catch {
    return undefined
  }
}

function lengthAndJson(fields: object): Buffer {
  const json = Buffer.from(JSON.stringify(fields))
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32LE(json.length)
  return Buffer.concat([length, json])
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array | Int32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isHex32(value: unknown): value is Hex {
  return typeof value === 'string' && HEX_32.test(value)
}
