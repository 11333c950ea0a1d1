import type { Commitment } from '../chain/model.ts'
import { ACCOUNT_ENCODINGS, type AccountEncoding, type DataSlice } from '../rpc/encode-account.ts'
import { type BlockEncodingOptions, TRANSACTION_DETAILS, TRANSACTION_ENCODINGS } from '../rpc/encode-transaction.ts'
import { invalidParams, RpcError } from '../rpc/errors.ts'
import { type AccountFilter, createMatcher } from '../rpc/filters.ts'
import * as read from '../rpc/params.ts'
import { accountConfig, base58Fault, commitment, programAccountsConfig, toDataSlice } from '../rpc/request-shapes.ts'

/** A subscribe request with defaults applied. Equal requests serialize to the same JSON, which is their key. */
export type SubscriptionRequest =
  | {
      readonly kind: 'account'
      readonly address: string
      readonly commitment: Commitment
      readonly encoding: AccountEncoding
      readonly dataSlice: DataSlice | undefined
    }
  | {
      readonly kind: 'program'
      readonly programId: string
      readonly commitment: Commitment
      readonly encoding: AccountEncoding
      readonly dataSlice: DataSlice | undefined
      readonly filters: readonly AccountFilter[]
      readonly withContext: boolean
    }
  | {
      readonly kind: 'logs'
      readonly filter: 'all' | 'allWithVotes' | { readonly mentions: string }
      readonly commitment: Commitment
    }
  | {
      readonly kind: 'signature'
      readonly signature: string
      readonly commitment: Commitment
      readonly enableReceived: boolean
    }
  | {
      readonly kind: 'block'
      readonly mentions: string | undefined
      readonly commitment: Commitment
      readonly options: BlockEncodingOptions
    }
  | { readonly kind: 'slot' | 'slotsUpdates' | 'root' | 'vote' }

export type SubscriptionKind = SubscriptionRequest['kind']

/** The default of every subscription; an invalid commitment is ignored, as in the other configs. */
const DEFAULT_COMMITMENT: Commitment = 'finalized'
const withCommitment = { commitment: read.lenient(commitment) }

const logsFilter: read.Decode<'all' | 'allWithVotes' | { readonly mentions: readonly string[] }> = (value) => {
  if (value === 'all' || value === 'allWithVotes') return value
  if (typeof value === 'string') throw read.unknownVariant(value, ['all', 'allWithVotes', 'mentions'])
  return { mentions: read.listOf(read.string)(singleMember(value, 'mentions', ['all', 'allWithVotes', 'mentions'])) }
}

const blockFilter: read.Decode<string | undefined> = (value) => {
  if (value === 'all') return undefined
  const variants = ['all', 'mentionsAccountOrProgram']
  if (typeof value === 'string') throw read.unknownVariant(value, variants)
  return read.string(singleMember(value, 'mentionsAccountOrProgram', variants))
}

const logsConfig = read.optional(read.struct('RpcTransactionLogsConfig', withCommitment))
const signatureConfig = read.optional(
  read.struct('RpcSignatureSubscribeConfig', {
    enableReceivedNotification: read.optional(read.boolean),
    ...withCommitment,
  }),
)
const blockConfig = read.optional(
  read.struct('RpcBlockSubscribeConfig', {
    encoding: read.optional(read.oneOf(...TRANSACTION_ENCODINGS)),
    transactionDetails: read.optional(read.oneOf(...TRANSACTION_DETAILS)),
    showRewards: read.optional(read.boolean),
    maxSupportedTransactionVersion: read.optional(read.u8),
    ...withCommitment,
  }),
)

/** Reads the params of `<kind>Subscribe`; throws RpcError with Agave's messages. */
export const READ_REQUEST: {
  readonly [Kind in SubscriptionKind]: (params: string | undefined) => SubscriptionRequest
} = {
  account(params) {
    const [address, config] = read.readArguments(params, [read.string], [accountConfig])
    return {
      kind: 'account',
      address: checkText(address, 32, 'pubkey'),
      commitment: config?.commitment ?? DEFAULT_COMMITMENT,
      encoding: config?.encoding ?? DEFAULT_ENCODING,
      dataSlice: toDataSlice(config?.dataSlice),
    }
  },

  program(params) {
    const [programId, config] = read.readArguments(params, [read.string], [programAccountsConfig])
    const filters = config?.filters ?? []
    checkFilters(filters)
    return {
      kind: 'program',
      programId: checkText(programId, 32, 'pubkey'),
      commitment: config?.commitment ?? DEFAULT_COMMITMENT,
      encoding: config?.encoding ?? DEFAULT_ENCODING,
      dataSlice: toDataSlice(config?.dataSlice),
      filters,
      withContext: config?.withContext ?? false,
    }
  },

  logs(params) {
    const [filter, config] = read.readArguments(params, [logsFilter], [logsConfig])
    return { kind: 'logs', filter: checkMentions(filter), commitment: config?.commitment ?? DEFAULT_COMMITMENT }
  },

  signature(params) {
    const [signature, config] = read.readArguments(params, [read.string], [signatureConfig])
    return {
      kind: 'signature',
      signature: checkText(signature, 64, 'signature'),
      commitment: config?.commitment ?? DEFAULT_COMMITMENT,
      enableReceived: config?.enableReceivedNotification ?? false,
    }
  },

  block(params) {
    const [mentions, config] = read.readArguments(params, [blockFilter], [blockConfig])
    const level = config?.commitment ?? DEFAULT_COMMITMENT
    if (level === 'processed') throw invalidParams('Method does not support commitment below `confirmed`')
    return {
      kind: 'block',
      mentions: mentions === undefined ? undefined : checkText(mentions, 32, 'mentions_account_or_program'),
      commitment: level,
      options: {
        encoding: config?.encoding ?? 'base64',
        details: config?.transactionDetails ?? 'full',
        showRewards: config?.showRewards ?? false,
        maxSupportedVersion: config?.maxSupportedTransactionVersion,
      },
    }
  },

  slot: (params) => withoutParams('slot', params),
  slotsUpdates: (params) => withoutParams('slotsUpdates', params),
  root: (params) => withoutParams('root', params),
  vote: (params) => withoutParams('vote', params),
}

/** The plain base58 string of old clients. */
const DEFAULT_ENCODING: AccountEncoding = ACCOUNT_ENCODINGS[0]

export function keyOf(request: SubscriptionRequest): string {
  return JSON.stringify(request, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))
}

function withoutParams(
  kind: 'slot' | 'slotsUpdates' | 'root' | 'vote',
  params: string | undefined,
): SubscriptionRequest {
  read.readArguments(params, [])
  return { kind }
}

function checkMentions(filter: 'all' | 'allWithVotes' | { readonly mentions: readonly string[] }) {
  if (typeof filter === 'string') return filter
  const [address] = filter.mentions
  if (address === undefined || filter.mentions.length !== 1) {
    throw invalidParams('Invalid Request: Only 1 address supported')
  }
  return { mentions: checkText(address, 32, 'mentions') }
}

/** Agave's PubSub writes the whole error into the message, with the description of its code. */
function checkFilters(filters: readonly AccountFilter[]): void {
  try {
    createMatcher(filters)
  } catch (error) {
    throw error instanceof RpcError ? invalidParams(`Invalid params: ${error.message}`) : error
  }
}

function checkText(text: string, bytes: number, what: string): string {
  if (base58Fault(text, bytes, bytes === 32 ? 44 : 88)) throw invalidParams(`Invalid Request: Invalid ${what} provided`)
  return text
}

function singleMember(value: unknown, wanted: string, variants: readonly string[]): unknown {
  if (!read.isObject(value)) throw read.wrongType(value, 'string or map')
  const members = Object.keys(value)
  const [member] = members
  if (members.length !== 1 || member === undefined) throw read.wrongType(value, 'map with a single key')
  if (member !== wanted) throw read.unknownVariant(member, variants)
  return value[member]
}
