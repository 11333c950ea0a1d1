import { Buffer } from 'node:buffer'
import { BlockFault, type ChainBlock, type ChainReward, type ChainTransaction } from '../chain-block.ts'
import { RewardType } from '../gen/solana-storage_pb.ts'
import { MessageReader, WireFault } from './message-reader.ts'
import { KeyTexts, transactionOf } from './transaction.ts'

/** A block update of a geyser stream. */
export type GeyserBlock = {
  readonly block: ChainBlock
  /** The number of transactions as the node reports it. */
  readonly executedTransactionCount: number
  /** Accounts that changed, in the order of the message. */
  readonly accounts: readonly GeyserAccount[]
}

export type GeyserAccount = {
  readonly pubkey: Uint8Array
  readonly lamports: bigint
  readonly owner: Uint8Array
  readonly executable: boolean
  readonly rentEpoch: bigint
  readonly data: Uint8Array
  readonly writeVersion: bigint
  readonly txnSignature: Uint8Array | undefined
}

/**
 * Decodes a SubscribeUpdate with a block directly from its bytes: a block has thousands of transactions, and creating objects for unused messages
 * costs more than decoding. Field numbers are those of proto/geyser.proto and proto/solana-storage.proto; unknown fields are skipped.
 * Throws BlockFault when the bytes are not a block or lack a part that every block has.
 */
export function blockFromGeyser(bytes: Uint8Array): GeyserBlock {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    const update = new MessageReader(buffer, 0, buffer.length)
    let block: GeyserBlock | undefined
    while (update.next()) {
      if (update.field === 5) block = blockOf(update.message())
      else update.skip()
    }
    if (block === undefined) throw new BlockFault('the message holds no block')
    return block
  } catch (fault) {
    if (fault instanceof WireFault) throw new BlockFault('the message cannot be read to its end', { cause: fault })
    throw fault
  }
}

function blockOf(reader: MessageReader): GeyserBlock {
  const keys = new KeyTexts()
  const transactions: ChainTransaction[] = []
  const accounts: GeyserAccount[] = []
  let rewards: ChainReward[] = []
  let [slot, parentSlot, executedTransactionCount] = [0, 0, 0]
  let [blockhash, parentBlockhash] = ['', '']
  let blockTime: number | undefined
  let blockHeight: number | undefined
  while (reader.next()) {
    switch (reader.field) {
      case 1:
        slot = reader.number()
        break
      case 2:
        blockhash = reader.text()
        break
      case 3:
        rewards = rewardsOf(reader.message())
        break
      case 4:
        blockTime = Number(BigInt.asIntN(64, onlyVarint(reader.message())))
        break
      case 5:
        blockHeight = Number(onlyVarint(reader.message()))
        break
      case 6:
        transactions.push(transactionOf(reader.message(), keys))
        break
      case 7:
        parentSlot = reader.number()
        break
      case 8:
        parentBlockhash = reader.text()
        break
      case 9:
        executedTransactionCount = reader.number()
        break
      case 11:
        accounts.push(accountOf(reader.message()))
        break
      default:
        reader.skip()
    }
  }
  transactions.sort((a, b) => a.index - b.index)
  const block = { slot, blockhash, parentSlot, parentBlockhash, blockTime, blockHeight, transactions, rewards }
  return { block, executedTransactionCount, accounts }
}

const NO_BYTES = new Uint8Array()

const REWARD_NAMES = new Map<number, string>(
  Object.entries(RewardType)
    .filter(([, number]) => number !== RewardType.Unspecified)
    .map(([name, number]) => [number as number, name]),
)

function rewardsOf(reader: MessageReader): ChainReward[] {
  const rewards: ChainReward[] = []
  while (reader.next()) {
    if (reader.field === 1) rewards.push(rewardOf(reader.message()))
    else reader.skip()
  }
  return rewards
}

function rewardOf(reader: MessageReader): ChainReward {
  let pubkey = ''
  let [lamports, postBalance] = [0n, 0n]
  let rewardType = ''
  let commission: number | undefined
  while (reader.next()) {
    if (reader.field === 1) pubkey = reader.text()
    else if (reader.field === 2) lamports = BigInt.asIntN(64, reader.bigint())
    else if (reader.field === 3) postBalance = reader.bigint()
    else if (reader.field === 4) rewardType = REWARD_NAMES.get(reader.number()) ?? ''
    else if (reader.field === 5) {
      const text = reader.text()
      commission = text === '' ? undefined : Number(text)
    } else reader.skip()
  }
  return { pubkey, lamports, postBalance, rewardType, commission }
}

function accountOf(reader: MessageReader): GeyserAccount {
  let [pubkey, owner, data] = [NO_BYTES, NO_BYTES, NO_BYTES]
  let [lamports, rentEpoch, writeVersion] = [0n, 0n, 0n]
  let executable = false
  let txnSignature: Uint8Array | undefined
  while (reader.next()) {
    if (reader.field === 1) pubkey = reader.bytes()
    else if (reader.field === 2) lamports = reader.bigint()
    else if (reader.field === 3) owner = reader.bytes()
    else if (reader.field === 4) executable = reader.number() !== 0
    else if (reader.field === 5) rentEpoch = reader.bigint()
    else if (reader.field === 6) data = reader.bytes()
    else if (reader.field === 7) writeVersion = reader.bigint()
    else if (reader.field === 8) txnSignature = reader.bytes()
    else reader.skip()
  }
  return { pubkey, lamports, owner, executable, rentEpoch, data, writeVersion, txnSignature }
}

/** The value of a message that wraps a single optional number. */
function onlyVarint(reader: MessageReader): bigint {
  let value = 0n
  while (reader.next()) {
    if (reader.field === 1) value = reader.bigint()
    else reader.skip()
  }
  return value
}
