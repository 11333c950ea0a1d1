import type { Json } from '../json.ts'
import { ByteReader, BytesError } from './byte-reader.ts'
import {
  parseConfidentialMintBurn,
  parseConfidentialTransfer,
  parseConfidentialTransferFee,
} from './confidential-instructions.ts'
import { nameAccounts, type ParsedState } from './parser.ts'
import { accountStateName, maybeKey } from './token-extensions.ts'
import { nameSigned, readOptionalKey, showAmount } from './token-instruction-parts.ts'

type Parser = (accounts: readonly string[], read: ByteReader) => ParsedState

/** Instructions of Token-2022's extensions, by their first byte. */
const PARSERS: Readonly<Record<number, Parser>> = {
  25: (accounts, read) => ({
    type: 'initializeMintCloseAuthority',
    info: { ...nameAccounts(accounts, ['mint']), newAuthority: readOptionalKey(read) },
  }),
  26: parseTransferFee,
  27: parseConfidentialTransfer,
  28: parseDefaultAccountState,
  30: (accounts, read) => ({
    type: choose(read, ['enableRequiredMemoTransfers', 'disableRequiredMemoTransfers']),
    info: nameSigned(accounts, ['account'], 'owner'),
  }),
  33: parseInterestBearing,
  34: (accounts, read) => ({
    type: choose(read, ['enableCpiGuard', 'disableCpiGuard']),
    info: nameSigned(accounts, ['account'], 'owner'),
  }),
  35: (accounts, read) => ({
    type: 'initializePermanentDelegate',
    info: { ...nameAccounts(accounts, ['mint']), delegate: read.key() },
  }),
  36: pointer('TransferHook', 'programId'),
  37: parseConfidentialTransferFee,
  39: pointer('MetadataPointer', 'metadataAddress'),
  40: pointer('GroupPointer', 'groupAddress'),
  41: pointer('GroupMemberPointer', 'memberAddress'),
  42: parseConfidentialMintBurn,
  43: parseScaledUiAmount,
  44: parsePausable,
  46: parsePermissionedBurn,
}

/** Undefined where the first byte is not an instruction in `PARSERS`. */
export function parseTokenExtensionInstruction(accounts: readonly string[], data: Uint8Array): ParsedState | undefined {
  const parse = PARSERS[data[0] ?? 0]
  return parse?.(accounts, new ByteReader(data, 1))
}

function choose(read: ByteReader, names: readonly string[]): string {
  const name = names[read.u8()]
  if (name === undefined) throw new BytesError('unknown instruction')
  return name
}

/** Extensions with one address and an authority: initialized once, then updated by the authority. */
function pointer(name: string, member: string): Parser {
  return (accounts, read) => {
    if (choose(read, ['initialize', 'update']) === 'initialize') {
      const authority = maybeKey(read) ?? undefined
      return {
        type: `initialize${name}`,
        info: { ...nameAccounts(accounts, ['mint']), authority, [member]: maybeKey(read) ?? undefined },
      }
    }
    return {
      type: `update${name}`,
      info: { ...nameSigned(accounts, ['mint'], 'authority'), [member]: maybeKey(read) ?? undefined },
    }
  }
}

function parseTransferFee(accounts: readonly string[], read: ByteReader): ParsedState {
  const withdrawn = (from: readonly string[]) => nameSigned(from, ['mint', 'feeRecipient'], 'withdrawWithheldAuthority')
  switch (read.u8()) {
    case 0: {
      const transferFeeConfigAuthority = readOptionalKey(read) ?? undefined
      const withdrawWithheldAuthority = readOptionalKey(read) ?? undefined
      const info = {
        ...nameAccounts(accounts, ['mint']),
        transferFeeConfigAuthority,
        withdrawWithheldAuthority,
        ...readFee(read),
      }
      return { type: 'initializeTransferFeeConfig', info }
    }
    case 1: {
      const amount = read.u64()
      const decimals = read.u8()
      const amounts = { tokenAmount: showAmount(amount, decimals), feeAmount: showAmount(read.u64(), decimals) }
      return {
        type: 'transferCheckedWithFee',
        info: { ...nameSigned(accounts, ['source', 'mint', 'destination'], 'authority'), ...amounts },
      }
    }
    case 2:
      return { type: 'withdrawWithheldTokensFromMint', info: withdrawn(accounts) }
    case 3: {
      const firstSource = accounts.length - read.u8()
      if (firstSource < 3) throw new BytesError('too few accounts')
      const info = { ...withdrawn(accounts.slice(0, firstSource)), sourceAccounts: accounts.slice(firstSource) }
      return { type: 'withdrawWithheldTokensFromAccounts', info }
    }
    case 4:
      return {
        type: 'harvestWithheldTokensToMint',
        info: { ...nameAccounts(accounts, ['mint']), sourceAccounts: accounts.slice(1) },
      }
    case 5:
      return {
        type: 'setTransferFee',
        info: { ...nameSigned(accounts, ['mint'], 'transferFeeConfigAuthority'), ...readFee(read) },
      }
    default:
      throw new BytesError('unknown instruction')
  }
}

function readFee(read: ByteReader): { readonly [name: string]: Json } {
  return { transferFeeBasisPoints: read.u16(), maximumFee: read.u64() }
}

function parseDefaultAccountState(accounts: readonly string[], read: ByteReader): ParsedState {
  const which = choose(read, ['initialize', 'update'])
  const state = { accountState: accountStateName(read.u8()) }
  const names =
    which === 'initialize' ? nameAccounts(accounts, ['mint']) : nameSigned(accounts, ['mint'], 'freezeAuthority')
  return { type: `${which}DefaultAccountState`, info: { ...names, ...state } }
}

function parseInterestBearing(accounts: readonly string[], read: ByteReader): ParsedState {
  if (choose(read, ['initialize', 'update']) === 'initialize') {
    const info = { ...nameAccounts(accounts, ['mint']), rateAuthority: maybeKey(read), rate: read.i16() }
    return { type: 'initializeInterestBearingConfig', info }
  }
  const info = { ...nameSigned(accounts, ['mint'], 'rateAuthority'), newRate: read.i16() }
  return { type: 'updateInterestBearingConfigRate', info }
}

function parseScaledUiAmount(accounts: readonly string[], read: ByteReader): ParsedState {
  if (choose(read, ['initialize', 'update']) === 'initialize') {
    const info = { ...nameAccounts(accounts, ['mint']), authority: maybeKey(read), multiplier: String(read.f64()) }
    return { type: 'initializeScaledUiAmountConfig', info }
  }
  const info = {
    ...nameSigned(accounts, ['mint'], 'authority'),
    newMultiplier: String(read.f64()),
    newMultiplierTimestamp: read.i64(),
  }
  return { type: 'updateMultiplier', info }
}

function parsePausable(accounts: readonly string[], read: ByteReader): ParsedState {
  const type = choose(read, ['initializePausableConfig', 'pause', 'resume'])
  if (type !== 'initializePausableConfig') return { type, info: nameSigned(accounts, ['mint'], 'authority') }
  return { type, info: { ...nameAccounts(accounts, ['mint']), authority: maybeKey(read) } }
}

function parsePermissionedBurn(accounts: readonly string[], read: ByteReader): ParsedState {
  const type = choose(read, ['initializePermissionedBurnConfig', 'permissionedBurn', 'permissionedBurnChecked'])
  if (type === 'initializePermissionedBurnConfig') {
    return { type, info: { ...nameAccounts(accounts, ['mint']), authority: read.key() } }
  }
  const names = nameSigned(accounts, ['account', 'mint', 'permissionedBurnAuthority'], 'authority')
  const amount = read.u64()
  if (type === 'permissionedBurn') return { type, info: { ...names, amount: amount.toString() } }
  return { type, info: { ...names, tokenAmount: showAmount(amount, read.u8()) } }
}
