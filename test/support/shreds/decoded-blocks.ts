import { encodeEntries } from '../../../src/solana/shred/entry.ts'
import { makeShreds } from '../../../src/solana/shred/make.ts'
import type { ParsedTransaction } from '../../../src/solana/transaction/types.ts'
import { randomBytesOf } from '../process/property.ts'
import { encodeParsedTransaction } from '../solana/encode-transaction.ts'
import { LEADER, VERSION } from './rig.ts'

/** Blocks of random transactions as shreds, with what a decoder must make of them. */
export type MadeSet = {
  /** FEC sets [from, to) of the slot. */
  readonly from: number
  readonly to: number
  readonly bytes: Uint8Array
  /** In wire form; empty for a marker. */
  readonly transactions: readonly Uint8Array[]
  readonly isMarker: boolean
}

export type MadeBlock = {
  readonly slot: number
  readonly parentSlot: number
  readonly dataSets: readonly MadeSet[]
  /** The 64 packets of each FEC set: data, then coding shreds. */
  readonly fecSets: readonly (readonly Uint8Array[])[]
  readonly lastRoot: Uint8Array
}

export type BlockPlan = {
  readonly slot: number
  readonly parentSlot: number
  readonly chainedRoot?: Uint8Array
  /** Bytes of transactions in each batch, about; 0 makes a marker. */
  readonly batchBytes: readonly number[]
  /** The bytes of its markers; by default random ones. */
  readonly marker?: Uint8Array | undefined
  readonly leader?: typeof LEADER
}

type Below = (below: number) => number

const samples: Uint8Array[] = []
const SAMPLES = 256

/** One of some transactions, with a signature of its own. Signatures are not valid, which no decoder checks. */
function nextTransaction(random: Below): Uint8Array {
  if (samples.length < SAMPLES) samples.push(sampleTransaction(random))
  const wire = Uint8Array.from(samples[random(samples.length)] as Uint8Array)
  const signatureAt = wire[0] === 0x81 ? wire.length - 64 : 1
  const view = new DataView(wire.buffer)
  for (let i = 0; i < 3; i++) view.setUint32(signatureAt + 4 * i, random(2 ** 32))
  return wire
}

/** A transaction with random content, of one of the three formats. */
function sampleTransaction(random: Below): Uint8Array {
  const keys = Array.from({ length: 3 + random(6) }, () => randomBytesOf(random, 32))
  const format = random(4)
  const version = format === 3 ? 1 : format === 2 ? 0 : 'legacy'
  const transaction: ParsedTransaction = {
    version,
    signatures: [randomBytesOf(random, 64)],
    message: new Uint8Array(),
    header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 1 },
    staticKeys: keys,
    recentBlockhash: randomBytesOf(random, 32),
    instructions: Array.from({ length: 1 + random(3) }, () => ({
      programIdIndex: keys.length - 1,
      accounts: Uint8Array.of(0, 1),
      data: randomBytesOf(random, random(300)),
    })),
    addressTableLookups:
      version === 0
        ? [
            {
              accountKey: randomBytesOf(random, 32),
              writableIndexes: Uint8Array.of(random(256)),
              readonlyIndexes: Uint8Array.of(random(256)),
            },
          ]
        : [],
    config:
      version === 1
        ? { priorityFeeLamports: 5n, computeUnitLimit: 1000, loadedAccountsDataSizeLimit: null, heapSize: null }
        : null,
    wireLength: 0,
  }
  return encodeParsedTransaction(transaction)
}

export function makeBlock(plan: BlockPlan, random: Below): MadeBlock {
  const { slot, parentSlot, leader = LEADER, chainedRoot = new Uint8Array(32).fill(9) } = plan
  const batches = plan.batchBytes.map((bytes) => makeBatch(bytes, random, plan.marker))
  const { sets, lastRoot } = makeShreds({
    slot,
    parentSlot,
    version: VERSION,
    batches: batches.map(({ bytes }) => bytes),
    chainedRoot,
    leader,
  })
  const dataSets: MadeSet[] = []
  let from = 0
  for (const [i, { data }] of sets.entries()) {
    // DATA_COMPLETE on the last data shred.
    if (((data[31] as Uint8Array)[85] as number) < 0x40) continue
    const batch = batches[dataSets.length] as Batch
    dataSets.push({ from, to: i + 1, ...batch })
    from = i + 1
  }
  return { slot, parentSlot, dataSets, fecSets: sets.map(({ data, code }) => [...data, ...code]), lastRoot }
}

type Batch = Pick<MadeSet, 'bytes' | 'transactions' | 'isMarker'>

function makeBatch(bytesAbout: number, random: Below, marker: Uint8Array | undefined): Batch {
  if (bytesAbout === 0) return { bytes: marker ?? makeMarker(random), transactions: [], isMarker: true }
  const transactions: Uint8Array[] = []
  const entries: { numHashes: bigint; hash: Uint8Array; transactions: Uint8Array[] }[] = []
  for (let bytes = 0; bytes < bytesAbout; ) {
    const some = Array.from({ length: random(4) }, () => nextTransaction(random))
    for (const wire of some) bytes += wire.length
    bytes += 48
    transactions.push(...some)
    entries.push({ numHashes: BigInt(random(1000)), hash: randomBytesOf(random, 32), transactions: some })
  }
  return { bytes: encodeEntries(entries), transactions, isMarker: false }
}

/** A marker of a known or of an unknown version and kind. */
function makeMarker(random: Below): Uint8Array {
  const body = randomBytesOf(random, 40)
  const bytes = new Uint8Array(13 + body.length)
  const view = new DataView(bytes.buffer)
  view.setUint16(8, random(4) === 0 ? 7 : 1, true)
  bytes[10] = random(6)
  view.setUint16(11, body.length, true)
  bytes.set(body, 13)
  return bytes
}
