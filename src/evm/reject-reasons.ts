/** Names of rejection codes in the order of the node's source. They may shift between versions, so the number always goes along. */

const BLOCK_REASONS = [
  'GasAboveLimit',
  'InvalidGasLimit',
  'ExtraDataTooLong',
  'WrongOmmersHash',
  'WrongParentHash',
  'FieldBeforeFork',
  'MissingField',
  'PowBlockAfterMerge',
  'InvalidNonce',
  'TooManyOmmers',
  'DuplicateOmmers',
  'InvalidOmmerHeader',
  'WrongLogsBloom',
  'InvalidGasUsed',
  'InvalidExcessBlobGas',
  'WrongMerkleRoot',
  'SystemCallMissingCode',
  'SystemCallFailed',
  'InvalidRequestsHash',
  'InvalidDepositLog',
] as const

const TXN_REASONS = [
  'InsufficientBalance',
  'IntrinsicGasGreaterThanLimit',
  'BadNonce',
  'SenderNotEoa',
  'TypeNotSupported',
  'MaxFeeLessThanBase',
  'PriorityFeeGreaterThanMax',
  'NonceExceedsMax',
  'InitCodeLimitExceeded',
  'GasLimitReached',
  'WrongChainId',
  'MissingSender',
  'GasLimitOverflow',
  'InvalidSignature',
  'InvalidBlobHash',
  'EmptyAuthorizationList',
] as const

/** `3 ExtraDataTooLong`, or the bare number for codes never heard of. */
export function blockRejectText(code: number): string {
  return describe(code, BLOCK_REASONS[code - 1])
}

export function txnRejectText(code: number): string {
  return describe(code, TXN_REASONS[code - 1])
}

function describe(code: number, name: string | undefined): string {
  return name === undefined ? String(code) : `${code} ${name}`
}
