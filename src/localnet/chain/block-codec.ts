import { deserialize, serialize } from 'node:v8'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'
import { RENT_EXEMPT_EPOCH } from '../engine/sysvars.ts'
import { CLOCK_SYSVAR, RECENT_BLOCKHASHES_SYSVAR, SLOT_HASHES_SYSVAR, SLOT_HISTORY_SYSVAR } from './addresses.ts'
import type { Head } from './bank.ts'
import type {
  AccountWrite,
  AlpenglowGenesis,
  Block,
  BlockReward,
  Entry,
  TransactionMeta,
  TransactionRecord,
} from './model.ts'
import { recordEntries, slotHash } from './poh.ts'

/**
 * A block as bytes, in two parts: what history needs (`core`), and the account writes that bring the parent's state to
 * the end of this block (`writes`). Entries are not stored: they are computed from the parent's hash and the signatures.
 * The sysvars of the slot are not stored either: they are computed from the heads.
 */
export type PackedBlock = { readonly core: Uint8Array; readonly writes: Uint8Array }

export function packBlock(block: Block, head: Head, ticks: number): PackedBlock {
  const core: PackedCore = [
    block.slot,
    block.parentSlot,
    block.height,
    decodeBase58(block.blockhash),
    decodeBase58(block.previousBlockhash),
    block.time,
    decodeBase58(block.leader),
    block.footer ? 0 : ticks,
    block.rewards ?? [],
    head.bankHash,
    head.epochStartTimestamp,
    head.transactionCount,
    head.writeVersion,
    block.transactions.map(({ wire, meta }) => [wire, packMeta(meta)]),
    block.footer && head.alpenglowGenesis
      ? [block.footer.producerTimeNanos, block.footer.userAgent, head.alpenglowGenesis]
      : undefined,
  ]
  const kept = block.systemWrites.filter(({ address }) => !SLOT_SYSVARS.has(address))
  const writes = [
    ...block.transactions.flatMap((record, index) => record.writes.map((write) => packWrite(write, index))),
    ...kept.map((write) => packWrite(write)),
  ]
  // Copied, because the serializer's buffer is up to twice as long.
  return { core: new Uint8Array(serialize(core)), writes: new Uint8Array(serialize(writes)) }
}

export type UnpackedBlock = { readonly block: Block; readonly head: Head }

/**
 * The block with its writes, which are unpacked on first access: of a stored chain only the newest ones are read. `slotSysvars` are the writes that are not
 * stored. Writes of an earlier version, of which the transaction is not known, become writes of the block.
 */
export function unpackBlock(
  { slot, core, writes }: PackedBlock & { readonly slot: number },
  slotSysvars: (head: Head) => readonly AccountWrite[],
): UnpackedBlock {
  let unpacked: Map<number | undefined, AccountWrite[]> | undefined
  const writesOf = (transaction: number | undefined): readonly AccountWrite[] => {
    unpacked ??= groupWrites(writes, block)
    return unpacked.get(transaction) ?? []
  }
  const { block, head } = unpackCore(core, {
    ofTransaction: (index) => writesOf(index),
    ofBlock: () => [...writesOf(undefined), ...slotSysvars(head)].sort(byVersion),
  })
  return { block, head }

  function groupWrites(bytes: Uint8Array, { transactions }: Block): Map<number | undefined, AccountWrite[]> {
    const groups = new Map<number | undefined, AccountWrite[]>()
    for (const packed of deserialize(bytes) as PackedWrite[]) {
      const index = packed[3]
      const signature = index === undefined ? undefined : transactions[index]?.signature
      const write = unpackWrite(packed, slot)
      const group = groups.get(index) ?? []
      group.push(signature === undefined ? write : { ...write, signature })
      groups.set(index, group)
    }
    return groups
  }
}

function byVersion(a: AccountWrite, b: AccountWrite): number {
  return a.writeVersion < b.writeVersion ? -1 : 1
}

type BlockWrites = {
  readonly ofTransaction: (index: number) => readonly AccountWrite[]
  readonly ofBlock: () => readonly AccountWrite[]
}

const NO_WRITES: BlockWrites = { ofTransaction: () => [], ofBlock: () => [] }

/** The block, by default without its writes, and the head it left. */
export function unpackCore(bytes: Uint8Array, writes: BlockWrites = NO_WRITES): UnpackedBlock {
  const core = deserialize(bytes) as PackedCore
  const [slot, parentSlot, height, blockhash, previous, time, leader, ticks, rewards] = core
  const [, , , , , , , , , hash, epochStartTimestamp, transactionCount, writeVersion, packed, alpenglow] = core
  const bankHash = new Uint8Array(hash)
  const transactions = packed.map(([wire, meta], index) =>
    unpackTransaction({ slot, index, wire: new Uint8Array(wire), meta: unpackMeta(meta) }, writes),
  )
  const block: Block = {
    slot,
    parentSlot,
    height,
    blockhash: encodeBase58(blockhash),
    previousBlockhash: encodeBase58(previous),
    time,
    leader: encodeBase58(leader),
    get entries(): Entry[] {
      const first = alpenglow ? slotHash(previous, slot) : previous
      return entriesOf(first, transactions, ticks)
    },
    transactions,
    get systemWrites() {
      return writes.ofBlock()
    },
    rewards,
    ...(alpenglow ? { footer: { bankHash, producerTimeNanos: alpenglow[0], userAgent: alpenglow[1] } } : {}),
  }
  const head: Head = {
    slot,
    height,
    blockhash: block.blockhash,
    bankHash,
    time,
    epochStartTimestamp,
    transactionCount,
    writeVersion,
    ...(alpenglow ? { alpenglowGenesis: alpenglow[2] } : {}),
  }
  return { block, head }
}

export function unpackWrites(bytes: Uint8Array, slot: number): AccountWrite[] {
  return (deserialize(bytes) as PackedWrite[]).map((packed) => unpackWrite(packed, slot))
}

function unpackWrite([address, writeVersion, account]: PackedWrite, slot: number): AccountWrite {
  return {
    address,
    slot,
    writeVersion,
    account: account && {
      lamports: account[0],
      owner: account[1],
      data: padded(account[2], account[4]),
      executable: account[3],
      rentEpoch: RENT_EXEMPT_EPOCH,
    },
  }
}

/** Every transaction has its own entry. */
function entriesOf(previousHash: Uint8Array, transactions: readonly TransactionRecord[], ticks: number): Entry[] {
  const batches = transactions.map(({ wire }) => {
    const parsed = parseTransaction(wire)
    return [parsed.ok ? parsed.transaction.signatures : []]
  })
  return recordEntries({ previousHash, batches, ticks })
}

type PackedCore = [
  slot: number,
  parentSlot: number,
  height: number,
  blockhash: Uint8Array,
  previousBlockhash: Uint8Array,
  time: number,
  leader: Uint8Array,
  ticks: number,
  rewards: readonly BlockReward[],
  bankHash: Uint8Array,
  epochStartTimestamp: number,
  transactionCount: number,
  writeVersion: bigint,
  transactions: [wire: Uint8Array, meta: PackedMeta][],
  /** Undefined for a block of the tower. Earlier versions wrote none. */
  alpenglow: [producerTimeNanos: bigint, userAgent: string, genesis: AlpenglowGenesis] | undefined,
]

type PackedWrite = [
  address: string,
  writeVersion: bigint,
  /** Data without the zeros at its end, and its size. Earlier versions wrote all of it, without the size. */
  account: [lamports: bigint, owner: string, data: Uint8Array, executable: boolean, space?: number] | null,
  /** The index of the transaction; undefined for a write outside transactions. Earlier versions wrote none. */
  transaction?: number,
]

/** The members of the meta in a fixed order; member names in every record would take more bytes than the values. */
type PackedMeta = [
  TransactionMeta['err'],
  bigint,
  TransactionMeta['preBalances'],
  TransactionMeta['postBalances'],
  TransactionMeta['preTokenBalances'],
  TransactionMeta['postTokenBalances'],
  TransactionMeta['innerInstructions'],
  TransactionMeta['logMessages'],
  TransactionMeta['loadedAddresses'],
  bigint,
  TransactionMeta['returnData'],
]

function packMeta(meta: TransactionMeta): PackedMeta {
  return [
    meta.err,
    meta.fee,
    meta.preBalances,
    meta.postBalances,
    meta.preTokenBalances,
    meta.postTokenBalances,
    meta.innerInstructions,
    meta.logMessages,
    meta.loadedAddresses,
    meta.computeUnitsConsumed,
    meta.returnData,
  ]
}

function unpackMeta(packed: PackedMeta): TransactionMeta {
  const [err, fee, preBalances, postBalances, preTokenBalances, postTokenBalances] = packed
  const [, , , , , , innerInstructions, logMessages, loadedAddresses, computeUnitsConsumed, returnData] = packed
  return {
    err,
    fee,
    preBalances,
    postBalances,
    preTokenBalances,
    postTokenBalances,
    innerInstructions,
    logMessages,
    loadedAddresses,
    computeUnitsConsumed,
    returnData,
  }
}

function unpackTransaction(
  record: Omit<TransactionRecord, 'signature' | 'writes'>,
  writes: BlockWrites,
): TransactionRecord {
  const parsed = parseTransaction(record.wire)
  const signature = parsed.ok ? encodeBase58(parsed.transaction.signatures[0] as Uint8Array) : ''
  return {
    signature,
    ...record,
    get writes() {
      return writes.ofTransaction(record.index)
    },
  }
}

const SLOT_SYSVARS = new Set([CLOCK_SYSVAR, SLOT_HASHES_SYSVAR, SLOT_HISTORY_SYSVAR, RECENT_BLOCKHASHES_SYSVAR])

function packWrite({ address, writeVersion, account }: AccountWrite, transaction?: number): PackedWrite {
  const packed: PackedWrite = [address, writeVersion, null]
  if (account) {
    const { lamports, owner, data, executable } = account
    packed[2] = [lamports, owner, withoutTrailingZeros(data), executable, data.length]
  }
  if (transaction !== undefined) packed.push(transaction)
  return packed
}

/** Each vote writes the vote account, and most of its data is not used. */
function withoutTrailingZeros(data: Uint8Array): Uint8Array {
  let end = data.length
  while (end > 0 && data[end - 1] === 0) end--
  return data.subarray(0, end)
}

function padded(data: Uint8Array, space = data.length): Uint8Array {
  const full = new Uint8Array(space)
  full.set(data)
  return full
}
