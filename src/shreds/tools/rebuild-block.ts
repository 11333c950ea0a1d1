import { createHash } from 'node:crypto'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { BlockMarker } from '../../solana/shred/block-marker.ts'
import { joinBatches } from '../../solana/shred/deshred.ts'
import { decodeBatch } from '../../solana/shred/entry.ts'
import type { DataShred } from '../../solana/shred/shred.ts'
import { verifySignatures } from '../../solana/transaction/transaction.ts'

/** The field names are those of the JSON output of `sluice shred listen` and `sluice shred inspect`. */
export type RebuiltBlock = {
  /** That of the last parent update, otherwise that of the shreds' headers; undefined where it is not known. */
  readonly parentSlot: number | undefined
  readonly entries: number
  readonly transactions: number
  /** Transactions with an invalid signature; undefined when signatures were not checked. */
  readonly badTransactions: number | undefined
  readonly markers: number
  /** The first MARKERS_LISTED_MAX markers in order, those before a parent update included. */
  readonly markersListed: readonly ListedMarker[]
  /** Batches that could not be decoded. */
  readonly undecodable: number
  /** The hash of the last entry, which is the blockhash. */
  readonly blockhash: string | undefined
  readonly bytes: number
  /** SHA-256 of all entry batches in order, for comparing two receivers. */
  readonly sha256: string
}

/** Fields besides the first four are set where the variant has them and the body could be read. */
export type ListedMarker = {
  readonly variant: BlockMarker['variant']
  readonly version: number
  readonly kind: number | undefined
  /** Index of the first data shred of the marker. */
  readonly shred: number
  readonly parentSlot?: number
  readonly parentBlockId?: string
  readonly bankHash?: string
  /** Decimal digits: the number can be larger than a JSON number holds exactly. */
  readonly producerTimeNanos?: string
  readonly userAgent?: string
  /** The body of an unknown marker, or of one whose body has an unknown form: at most its first BODY_SHOWN_BYTES_MAX bytes in hex. */
  readonly body?: string
}

const MARKERS_LISTED_MAX = 64
const BODY_SHOWN_BYTES_MAX = 64

/** Decodes the batches of a complete slot's data shreds. A parent update voids the batches before it. */
export function rebuildBlock(
  shreds: readonly DataShred[],
  headerParent: number | undefined,
  options: { readonly verifyTransactions?: boolean },
): { readonly summary: RebuiltBlock; readonly batches: readonly Uint8Array[] } {
  let batches: Uint8Array[] = []
  let [entries, transactions, bad, undecodable] = [0, 0, 0, 0]
  let markers = 0
  const markersListed: ListedMarker[] = []
  let blockhash: string | undefined
  let parentSlot = headerParent
  for (const { bytes, from } of joinBatches(shreds)) {
    const decoded = decodeBatch(bytes)
    if (decoded.ok && decoded.kind === 'marker') {
      const { marker } = decoded
      markers += 1
      if (markersListed.length < MARKERS_LISTED_MAX) markersListed.push(listedOf(marker, from))
      // Also where the body could not be read: the leader changed the parent of the block, so the batches before this marker are void.
      if (marker.variant === 'update-parent') {
        batches = []
        ;[entries, transactions, bad, undecodable] = [0, 0, 0, 0]
        blockhash = undefined
        parentSlot = marker.content?.variant === 'update-parent' ? marker.content.parentSlot : undefined
      }
      continue
    }
    batches.push(bytes)
    if (!decoded.ok) {
      undecodable += 1
      continue
    }
    entries += decoded.entries.length
    for (const entry of decoded.entries) {
      transactions += entry.transactions.length
      if (options.verifyTransactions === true)
        bad += entry.transactions.filter((transaction) => !verifySignatures(transaction)).length
    }
    const last = decoded.entries.at(-1)
    if (last !== undefined) blockhash = encodeBase58(last.hash)
  }
  const digest = createHash('sha256')
  for (const bytes of batches) digest.update(bytes)
  const summary: RebuiltBlock = {
    parentSlot,
    entries,
    transactions,
    badTransactions: options.verifyTransactions === true ? bad : undefined,
    markers,
    markersListed,
    undecodable,
    blockhash,
    bytes: batches.reduce((sum, bytes) => sum + bytes.length, 0),
    sha256: digest.digest('hex'),
  }
  return { summary, batches }
}

function listedOf({ variant, version, kind, body, content }: BlockMarker, shred: number): ListedMarker {
  const listed = { variant, version, kind, shred }
  switch (content?.variant) {
    case 'block-footer': {
      const { bankHash, producerTimeNanos, userAgent } = content
      return {
        ...listed,
        bankHash: encodeBase58(bankHash),
        producerTimeNanos: producerTimeNanos.toString(),
        userAgent,
      }
    }
    case 'block-header':
    case 'update-parent':
      return { ...listed, parentSlot: content.parentSlot, parentBlockId: encodeBase58(content.parentBlockId) }
    case 'genesis-certificate':
      return listed
    case undefined:
      return { ...listed, body: Buffer.from(body.subarray(0, BODY_SHOWN_BYTES_MAX)).toString('hex') }
  }
}
