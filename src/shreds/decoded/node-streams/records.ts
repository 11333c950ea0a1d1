import { Buffer } from 'node:buffer'

/**
 * What a node's own SubscribeDeshred sends, on its way to the engine's thread, as records of a ring of output-ring.ts:
 *
 *     kind u8, source u8, flags u8, 0, stream u32, slot f64, arrival f64, start index u32, end index u32
 *     of a transaction: its first signature, 64 bytes; then SubscribeUpdateDeshredTransaction as it came
 */
export type UpstreamRecord =
  /** Streams of a source are numbered; a new one replaces the one before. */
  | { readonly kind: 'opened' | 'ended'; readonly source: number; readonly stream: number }
  | ({ readonly kind: 'transaction'; readonly source: number; readonly stream: number } & UpstreamPlace & {
        readonly signature: Uint8Array
        /** Addresses that it loads from lookup tables are missing in the update. */
        readonly hasUnknownTable: boolean
        readonly update: Uint8Array
      })
  /** All of a slot was sent; or the node has reported a loss. */
  | {
      readonly kind: 'completed' | 'incomplete'
      readonly source: number
      readonly stream: number
      readonly slot: number
    }

export type UpstreamPlace = {
  readonly slot: number
  readonly startIndex: number
  /** Exclusive. */
  readonly endIndex: number
  readonly arrivalNanos: number
}

const KINDS = ['opened', 'ended', 'transaction', 'completed', 'incomplete'] as const
const HEAD_BYTES = 32
const FLAG = { unknownTable: 1 } as const
export const SIGNATURE_BYTES = 64

/** The parts of the record, to be written one after the other. */
export function encodeRecord(record: UpstreamRecord): Uint8Array[] {
  const head = new Uint8Array(HEAD_BYTES)
  const view = new DataView(head.buffer)
  head[0] = KINDS.indexOf(record.kind)
  head[1] = record.source
  view.setUint32(4, record.stream, true)
  if ('slot' in record) view.setFloat64(8, record.slot, true)
  if (record.kind !== 'transaction') return [head]
  if (record.hasUnknownTable) head[2] = FLAG.unknownTable
  view.setFloat64(16, record.arrivalNanos, true)
  view.setUint32(24, record.startIndex, true)
  view.setUint32(28, record.endIndex, true)
  return [head, record.signature, record.update]
}

/** Reads a record. The arrays of the result are views of it. */
export function decodeRecord(bytes: Uint8Array): UpstreamRecord {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const kind = KINDS[bytes[0] as number] as (typeof KINDS)[number]
  const of = { source: bytes[1] as number, stream: view.getUint32(4, true) }
  const slot = view.getFloat64(8, true)
  switch (kind) {
    case 'opened':
    case 'ended':
      return { kind, ...of }
    case 'completed':
    case 'incomplete':
      return { kind, ...of, slot }
    case 'transaction':
      return {
        kind,
        ...of,
        slot,
        arrivalNanos: view.getFloat64(16, true),
        startIndex: view.getUint32(24, true),
        endIndex: view.getUint32(28, true),
        hasUnknownTable: bytes[2] === FLAG.unknownTable,
        signature: bytes.subarray(HEAD_BYTES, HEAD_BYTES + SIGNATURE_BYTES),
        update: bytes.subarray(HEAD_BYTES + SIGNATURE_BYTES),
      }
  }
}

/** A signature as a text of 64 characters, which maps compare faster than bytes. */
export function signatureText(signature: Uint8Array): string {
  return Buffer.from(signature.buffer, signature.byteOffset, signature.length).toString('latin1')
}
