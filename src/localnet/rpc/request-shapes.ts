import { decodeBase58 } from '../../solana/crypto/base58.ts'
import type { Commitment } from '../chain/model.ts'
import { ACCOUNT_ENCODINGS, type DataSlice } from './encode-account.ts'
import { TRANSACTION_DETAILS, TRANSACTION_ENCODINGS } from './encode-transaction.ts'
import { invalidParams } from './errors.ts'
import { accountFilter } from './filters.ts'
import * as read from './params.ts'

/** Method configs as in Agave (`rpc-client-types/config.rs`), and the three kinds of base58 text. */
export const commitment = read.oneOf('processed', 'confirmed', 'finalized')

/** Most configs ignore an invalid commitment and use the default. */
const withCommitment = { commitment: read.lenient(commitment) }
const withContext = { ...withCommitment, minContextSlot: read.optional(read.u64) }

/** The config of methods that take nothing but a commitment. */
export const commitmentConfig = read.optional(
  read.struct('CommitmentConfig', { commitment: read.required('commitment', commitment) }),
)

export const contextConfig = read.optional(read.struct('RpcContextConfig', withContext))

const dataSlice = read.struct('UiDataSliceConfig', {
  offset: read.required('offset', read.usize),
  length: read.required('length', read.usize),
})

const accountMembers = {
  encoding: read.optional(read.oneOf(...ACCOUNT_ENCODINGS)),
  dataSlice: read.optional(dataSlice),
  ...withContext,
}

export const accountConfig = read.optional(read.struct('RpcAccountInfoConfig', accountMembers))

export const programAccountsConfig = read.optional(
  read.struct('RpcProgramAccountsConfig', {
    filters: read.optional(read.listOf(accountFilter)),
    withContext: read.optional(read.boolean),
    sortResults: read.optional(read.boolean),
    ...accountMembers,
  }),
)

export const largestAccountsConfig = read.optional(
  read.struct('RpcLargestAccountsConfig', {
    filter: read.optional(read.oneOf('circulating', 'nonCirculating')),
    sortResults: read.optional(read.boolean),
    ...withCommitment,
  }),
)

export const supplyConfig = read.optional(
  read.struct('RpcSupplyConfig', {
    excludeNonCirculatingAccountsList: read.defaulted(read.boolean, false),
    ...withCommitment,
  }),
)

/** `{mint}` or `{programId}`, exactly one of them. */
export const tokenAccountsFilter: read.Decode<{ readonly kind: 'mint' | 'programId'; readonly address: string }> = (
  value,
) => {
  if (!read.isObject(value)) {
    if (typeof value === 'string') throw read.unknownVariant(value, ['mint', 'programId'])
    throw read.wrongType(value, 'string or map')
  }
  const members = Object.keys(value)
  const [kind] = members
  if (members.length !== 1) throw read.wrongType(value, 'map with a single key')
  if (kind !== 'mint' && kind !== 'programId') throw read.unknownVariant(String(kind), ['mint', 'programId'])
  return { kind, address: read.string(value[kind]) }
}

export const sendTransactionConfig = read.optional(
  read.struct('RpcSendTransactionConfig', {
    skipPreflight: read.defaulted(read.boolean, false),
    preflightCommitment: read.optional(commitment),
    encoding: read.optional(read.oneOf(...TRANSACTION_ENCODINGS)),
    maxRetries: read.optional(read.usize),
    minContextSlot: read.optional(read.u64),
  }),
)

export const simulateTransactionConfig = read.optional(
  read.struct('RpcSimulateTransactionConfig', {
    sigVerify: read.defaulted(read.boolean, false),
    replaceRecentBlockhash: read.defaulted(read.boolean, false),
    encoding: read.optional(read.oneOf(...TRANSACTION_ENCODINGS)),
    accounts: read.optional(
      read.struct('RpcSimulateTransactionAccountsConfig', {
        encoding: read.optional(read.oneOf(...ACCOUNT_ENCODINGS)),
        addresses: read.required('addresses', read.listOf(read.string)),
      }),
    ),
    innerInstructions: read.defaulted(read.boolean, false),
    ...withContext,
  }),
)

export const airdropConfig = read.optional(
  read.struct('RpcRequestAirdropConfig', { recentBlockhash: read.optional(read.string), ...withCommitment }),
)

export const signatureStatusConfig = read.optional(
  read.struct('RpcSignatureStatusConfig', {
    searchTransactionHistory: read.required('searchTransactionHistory', read.boolean),
  }),
)

export const signaturesForAddressConfig = read.optional(
  read.struct('RpcSignaturesForAddressConfig', {
    before: read.optional(read.string),
    until: read.optional(read.string),
    limit: read.optional(read.usize),
    withContext: read.optional(read.boolean),
    ...withContext,
  }),
)

const transactionEncoding = read.oneOf(...TRANSACTION_ENCODINGS)
const maxSupportedTransactionVersion = read.optional(read.u8)

/** Old clients send only the encoding in place of the config. */
function orEncodingAlone<T>(config: read.Decode<T>): read.Decode<T | undefined> {
  const alone: read.Decode<T> = (value) => config({ encoding: transactionEncoding(value) })
  return read.optional(read.either('RpcEncodingConfigWrapper', alone, config))
}

export const transactionConfig = orEncodingAlone(
  read.struct('RpcTransactionConfig', {
    encoding: read.optional(transactionEncoding),
    maxSupportedTransactionVersion,
    withContext: read.optional(read.boolean),
    ...withCommitment,
  }),
)

export const blockConfig = orEncodingAlone(
  read.struct('RpcBlockConfig', {
    encoding: read.optional(transactionEncoding),
    transactionDetails: read.optional(read.oneOf(...TRANSACTION_DETAILS)),
    rewards: read.optional(read.boolean),
    maxSupportedTransactionVersion,
    ...withCommitment,
  }),
)

export const blocksWrapper = read.optional(
  read.either('RpcBlocksConfigWrapper', read.u64, read.struct('RpcContextConfig', withContext)),
)

const leaderScheduleMembers = read.struct('RpcLeaderScheduleConfig', {
  identity: read.optional(read.string),
  ...withCommitment,
})
export const leaderScheduleConfig = read.optional(leaderScheduleMembers)
export const leaderScheduleWrapper = read.optional(
  read.either('RpcLeaderScheduleConfigWrapper', read.u64, leaderScheduleMembers),
)

export const blockProductionConfig = read.optional(
  read.struct('RpcBlockProductionConfig', {
    identity: read.optional(read.string),
    range: read.optional(
      read.struct('RpcBlockProductionConfigRange', {
        firstSlot: read.required('firstSlot', read.u64),
        lastSlot: read.optional(read.u64),
      }),
    ),
    ...withCommitment,
  }),
)

export const voteAccountsConfig = read.optional(
  read.struct('RpcGetVoteAccountsConfig', {
    votePubkey: read.optional(read.string),
    keepUnstakedDelinquents: read.optional(read.boolean),
    delinquentSlotDistance: read.optional(read.u64),
    ...withCommitment,
  }),
)

export const epochConfig = read.optional(
  read.struct('RpcEpochConfig', { epoch: read.optional(read.u64), ...withContext }),
)

export type ContextConfig = {
  readonly commitment?: Commitment | undefined
  readonly minContextSlot?: bigint | undefined
}

/** Converting to a double is safe: account data is much shorter than 2^53. */
export function toDataSlice(
  slice: { readonly offset: bigint; readonly length: bigint } | undefined,
): DataSlice | undefined {
  return slice && { offset: Number(slice.offset), length: Number(slice.length) }
}

const KEY_CHARS_MAX = 44
const SIGNATURE_CHARS_MAX = 88

/** Returns the text if it is an address; otherwise throws -32602 with Agave's message. */
export const checkAddress = (text: string) => checkBase58(text, 32, KEY_CHARS_MAX)
export const checkHash = (text: string) => checkBase58(text, 32, KEY_CHARS_MAX)
export const checkSignature = (text: string) => checkBase58(text, 64, SIGNATURE_CHARS_MAX)

function checkBase58(text: string, bytes: number, charsMax: number): string {
  const fault = base58Fault(text, bytes, charsMax)
  if (fault) throw invalidParams(`Invalid param: ${fault}`)
  return text
}

/** Undefined for valid base58 of this many bytes. */
export function base58Fault(text: string, bytes = 32, charsMax = KEY_CHARS_MAX): 'WrongSize' | 'Invalid' | undefined {
  if (text.length > charsMax) return 'WrongSize'
  try {
    return decodeBase58(text).length === bytes ? undefined : 'WrongSize'
  } catch {
    return 'Invalid'
  }
}
