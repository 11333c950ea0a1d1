import { createHash } from 'node:crypto'
import type {
  Account,
  AccountWrite,
  Block,
  Chain,
  ChainEvent,
  Commitment,
  Entry,
  TransactionMeta,
  TransactionRecord,
} from '../../../src/localnet/chain/model.ts'
import { decodeBase58, encodeBase58 } from '../../../src/solana/crypto/base58.ts'
import { createSigningKey } from '../../../src/solana/crypto/ed25519.ts'
import { buildLegacyMessage, memoInstruction, signMessage } from '../../../src/solana/transaction/build.ts'

/** A chain without an engine: tests set the content of each block and when it is confirmed and finalized. */
export type ChainDouble = {
  readonly chain: Chain
  /** Freezes the open slot with this content, confirms and finalizes older blocks by their distance, and opens the next slot. */
  produce(content?: BlockContent): Block
  /** A record for a future block: a memo transaction that writes these accounts. */
  transaction(parts?: TransactionParts): TransactionRecord
  write(address: string, account: Account | null, signature?: string): AccountWrite
}

export type BlockContent = {
  readonly transactions?: readonly TransactionRecord[]
  readonly systemWrites?: readonly AccountWrite[]
  readonly entries?: readonly Entry[]
}

export type TransactionParts = {
  readonly memo?: string
  /** The program called with the memo as data; the memo program by default. */
  readonly programId?: string
  /** Seeds the payer's key. */
  readonly payer?: number
  readonly writes?: readonly (readonly [string, Account | null])[]
  readonly meta?: Partial<TransactionMeta>
  readonly wire?: Uint8Array
}

export const MEMO = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr'

export function address(name: string | number): string {
  return encodeBase58(digest(`address ${name}`))
}

export function account(parts: Partial<Account> = {}): Account {
  return {
    lamports: 1_000_000n,
    owner: '11111111111111111111111111111111',
    data: new Uint8Array(0),
    executable: false,
    rentEpoch: 18446744073709551615n,
    ...parts,
  }
}

export function createChainDouble(
  options: { readonly confirmedSlots?: number; readonly finalizedSlots?: number; readonly firstSlot?: number } = {},
): ChainDouble {
  const { confirmedSlots = 1, finalizedSlots = 2, firstSlot = 10 } = options
  const blocks = new Map<number, Block>()
  const records = new Map<string, TransactionRecord>()
  const accounts = { processed: new Map(), confirmed: new Map(), finalized: new Map() } satisfies Record<
    Commitment,
    Map<string, Account>
  >
  const heads = { processed: firstSlot - 1, confirmed: firstSlot - 1, finalized: firstSlot - 1 }
  const listeners = new Set<(event: ChainEvent) => void>()
  let openSlot = firstSlot
  let version = 0n
  let made = 0
  blocks.set(firstSlot - 1, makeBlock(firstSlot - 1, {}))

  function makeBlock(slot: number, content: BlockContent): Block {
    const transactions = (content.transactions ?? []).map((record, index) => ({
      ...record,
      slot,
      index,
      writes: record.writes.map((write) => ({ ...write, slot })),
    }))
    const whole: Entry = {
      numHashes: 12n,
      hash: digest(`entry ${slot}`),
      firstTransaction: 0,
      transactionCount: transactions.length,
    }
    return {
      slot,
      parentSlot: Math.max(0, slot - 1),
      height: slot,
      blockhash: encodeBase58(digest(`block ${slot}`)),
      previousBlockhash: encodeBase58(digest(`block ${slot - 1}`)),
      time: 1_800_000_000 + slot,
      leader: address('leader'),
      entries: content.entries ?? [whole],
      transactions,
      systemWrites: (content.systemWrites ?? []).map((write) => ({ ...write, slot })),
    }
  }

  function settle(slot: number, commitment: Commitment): Block | undefined {
    const block = blocks.get(slot)
    if (!block) return undefined
    heads[commitment] = slot
    const all = [...block.transactions.flatMap((record) => record.writes), ...block.systemWrites]
    for (const { address: key, account: state } of all.sort((a, b) => (a.writeVersion < b.writeVersion ? -1 : 1))) {
      if (state) accounts[commitment].set(key, state)
      else accounts[commitment].delete(key)
    }
    return block
  }

  function emit(event: ChainEvent): void {
    for (const listener of listeners) listener(event)
  }

  function produce(content: BlockContent = {}): Block {
    const block = makeBlock(openSlot, content)
    blocks.set(block.slot, block)
    for (const record of block.transactions) records.set(record.signature, record)
    settle(block.slot, 'processed')
    openSlot++
    emit({ kind: 'frozen', block })
    const confirmed = settle(block.slot - confirmedSlots, 'confirmed')
    if (confirmed) emit({ kind: 'confirmed', block: confirmed })
    const finalized = settle(block.slot - finalizedSlots, 'finalized')
    if (finalized) emit({ kind: 'finalized', block: finalized })
    emit({ kind: 'opened', slot: openSlot, parentSlot: block.slot })
    return block
  }

  function transaction({
    memo = '',
    programId = MEMO,
    payer = 1,
    writes = [],
    meta = {},
    wire,
  }: TransactionParts = {}) {
    const key = createSigningKey(digest(`payer ${payer}`))
    const message = buildLegacyMessage({
      feePayer: key.publicKey,
      recentBlockhash: digest(`recent ${made++}`),
      instructions: [memoInstruction(decodeBase58(programId), memo, [key.publicKey])],
    })
    const bytes = wire ?? signMessage(message, [key])
    const signature = encodeBase58(bytes.subarray(1, 65))
    return {
      signature,
      slot: 0,
      index: 0,
      wire: bytes,
      meta: { ...PLAIN_META, ...meta },
      writes: writes.map(([to, state]) => write(to, state, signature)),
    }
  }

  function write(to: string, state: Account | null, signature?: string): AccountWrite {
    return {
      address: to,
      account: state,
      slot: 0,
      writeVersion: version++,
      ...(signature === undefined ? {} : { signature }),
    }
  }

  const chain: Chain = {
    genesisHash: encodeBase58(digest('genesis')),
    identity: address('leader'),
    voteAccount: address('vote'),
    faucet: address('faucet'),
    slotMs: 400,
    consensus: 'tower',
    slotsPerEpoch: 432_000,
    startedAtMs: 0,
    slot: (commitment) => heads[commitment],
    openSlot: () => openSlot,
    openBanks: () => [{ kind: 'opened', slot: openSlot, parentSlot: openSlot - 1 }],
    alpenglowGenesis: () => undefined,
    firstAvailableSlot: () => firstSlot - 1,
    firstSlotWithWrites: () => firstSlot - 1,
    transactionCount: () => records.size,
    performanceSamples: () => [],
    hasBlock: (slot) => blocks.has(slot),
    block: (slot) => blocks.get(slot),
    transaction: (signature) => records.get(signature),
    signaturesOf: () => [],
    account: (key, commitment) => accounts[commitment].get(key) ?? null,
    accountsOwnedBy: (owner, commitment) => accounts[commitment].entries().filter(([, state]) => state.owner === owner),
    allAccounts: (commitment) => accounts[commitment].entries(),
    latestBlockhash: (commitment) => ({
      blockhash: (blocks.get(heads[commitment]) as Block).blockhash,
      lastValidBlockHeight: heads[commitment] + 150,
    }),
    blockhashAge: (hash, commitment) => {
      const block = [...blocks.values()].find(({ blockhash, slot }) => blockhash === hash && slot <= heads[commitment])
      return block && heads[commitment] - block.slot
    },
    minimumBalance: (bytes) => BigInt(bytes + 128) * 6960n,
    leaderOf: () => address('leader'),
    submit: async () => ({ ok: false, reason: 'engine-down' }),
    simulate: async () => 'engine-down',
    airdrop: async () => ({ ok: false, reason: 'engine-down' }),
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  return { chain, produce, transaction, write }
}

const PLAIN_META: TransactionMeta = {
  err: null,
  fee: 5000n,
  preBalances: [10_000n, 1n],
  postBalances: [5000n, 1n],
  preTokenBalances: [],
  postTokenBalances: [],
  innerInstructions: [],
  logMessages: [`Program ${MEMO} invoke [1]`, `Program ${MEMO} success`],
  loadedAddresses: { writable: [], readonly: [] },
  computeUnitsConsumed: 287n,
  returnData: null,
}

function digest(text: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(text).digest())
}
