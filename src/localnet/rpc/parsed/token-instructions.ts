import type { Json } from '../json.ts'
import { ByteReader, BytesError, readUtf8 } from './byte-reader.ts'
import { nameAccounts, type ParsedState } from './parser.ts'
import { parseTokenExtensionInstruction } from './token-extension-instructions.ts'
import { extensionTypeName } from './token-extensions.ts'
import { nameSigned, readOptionalKey, showAmount } from './token-instruction-parts.ts'
import { parseTokenInterfaceInstruction } from './token-interface-instructions.ts'

const BATCH = 255

/** Authorities by number (token-2022 `AuthorityType`); two belong to an account, the others to a mint. */
const AUTHORITY_TYPES = [
  'mintTokens',
  'freezeAccount',
  'accountOwner',
  'closeAccount',
  'transferFeeConfig',
  'withheldWithdraw',
  'closeMint',
  'interestRate',
  'permanentDelegate',
  'confidentialTransferMint',
  'transferHookProgramId',
  'confidentialTransferFeeConfig',
  'metadataPointer',
  'groupPointer',
  'groupMemberPointer',
  'scaledUiAmount',
  'pause',
  'permissionedBurn',
]

/** Token and Token-2022: one byte is the instruction, except for the interfaces, which begin with eight bytes of a hash. */
export function parseTokenInstruction(accounts: readonly string[], data: Uint8Array): ParsedState {
  if (data[0] === BATCH) return parseBatch(accounts, new ByteReader(data, 1))
  return (
    parseBaseInstruction(accounts, data) ??
    parseTokenExtensionInstruction(accounts, data) ??
    parseTokenInterfaceInstruction(accounts, data)
  )
}

function parseBaseInstruction(accounts: readonly string[], data: Uint8Array): ParsedState | undefined {
  const read = new ByteReader(data)
  const named = (...names: string[]) => nameAccounts(accounts, names)
  const signed = (signer: string, ...names: string[]) => nameSigned(accounts, names, signer)
  const amount = () => ({ amount: read.u64().toString() })
  const tokenAmount = () => {
    const raw = read.u64()
    return { tokenAmount: showAmount(raw, read.u8()) }
  }
  switch (read.u8()) {
    case 0:
      return { type: 'initializeMint', info: { ...named('mint', 'rentSysvar'), ...readMint(read) } }
    case 1:
      return { type: 'initializeAccount', info: named('account', 'mint', 'owner', 'rentSysvar') }
    case 2:
      return { type: 'initializeMultisig', info: readMultisig(accounts, ['multisig', 'rentSysvar'], read) }
    case 3:
      return { type: 'transfer', info: { ...signed('authority', 'source', 'destination'), ...amount() } }
    case 4:
      return { type: 'approve', info: { ...signed('owner', 'source', 'delegate'), ...amount() } }
    case 5:
      return { type: 'revoke', info: signed('owner', 'source') }
    case 6:
      return { type: 'setAuthority', info: readSetAuthority(accounts, read) }
    case 7:
      return { type: 'mintTo', info: { ...signed('mintAuthority', 'mint', 'account'), ...amount() } }
    case 8:
      return { type: 'burn', info: { ...signed('authority', 'account', 'mint'), ...amount() } }
    case 9:
      return { type: 'closeAccount', info: signed('owner', 'account', 'destination') }
    case 10:
      return { type: 'freezeAccount', info: signed('freezeAuthority', 'account', 'mint') }
    case 11:
      return { type: 'thawAccount', info: signed('freezeAuthority', 'account', 'mint') }
    case 12:
      return {
        type: 'transferChecked',
        info: { ...signed('authority', 'source', 'mint', 'destination'), ...tokenAmount() },
      }
    case 13:
      return { type: 'approveChecked', info: { ...signed('owner', 'source', 'mint', 'delegate'), ...tokenAmount() } }
    case 14:
      return { type: 'mintToChecked', info: { ...signed('mintAuthority', 'mint', 'account'), ...tokenAmount() } }
    case 15:
      return { type: 'burnChecked', info: { ...signed('authority', 'account', 'mint'), ...tokenAmount() } }
    case 16:
      return { type: 'initializeAccount2', info: { ...named('account', 'mint', 'rentSysvar'), owner: read.key() } }
    case 17:
      return { type: 'syncNative', info: named('account') }
    case 18:
      return { type: 'initializeAccount3', info: { ...named('account', 'mint'), owner: read.key() } }
    case 19:
      return { type: 'initializeMultisig2', info: readMultisig(accounts, ['multisig'], read) }
    case 20:
      return { type: 'initializeMint2', info: { ...named('mint'), ...readMint(read) } }
    case 21: {
      const types = readExtensionTypes(read)
      return {
        type: 'getAccountDataSize',
        info: { ...named('mint'), extensionTypes: types.length > 0 ? types : undefined },
      }
    }
    case 22:
      return { type: 'initializeImmutableOwner', info: named('account') }
    case 23:
      return { type: 'amountToUiAmount', info: { ...named('mint'), ...amount() } }
    case 24:
      return { type: 'uiAmountToAmount', info: { ...named('mint'), uiAmount: readUtf8(read.bytes(read.remaining)) } }
    case 29: {
      const names = signed('owner', 'account', 'payer', 'systemProgram')
      return { type: 'reallocate', info: { ...names, extensionTypes: readExtensionTypes(read) } }
    }
    case 31:
      return { type: 'createNativeMint', info: named('payer', 'nativeMint', 'systemProgram') }
    case 32:
      return { type: 'initializeNonTransferableMint', info: named('mint') }
    case 38:
      return { type: 'withdrawExcessLamports', info: signed('authority', 'source', 'destination') }
    case 45: {
      const names = signed('authority', 'source', 'destination')
      return {
        type: 'unwrapLamports',
        info: { ...names, amount: read.option(() => read.u64().toString()) ?? undefined },
      }
    }
    default:
      return undefined
  }
}

function readMint(read: ByteReader): { readonly [name: string]: Json | undefined } {
  return { decimals: read.u8(), mintAuthority: read.key(), freezeAuthority: readOptionalKey(read) ?? undefined }
}

function readMultisig(accounts: readonly string[], names: readonly string[], read: ByteReader): Json {
  const signers = accounts.slice(names.length)
  if (signers.length === 0) throw new BytesError('too few accounts')
  return { ...nameAccounts(accounts, names), signers, m: read.u8() }
}

function readSetAuthority(accounts: readonly string[], read: ByteReader): Json {
  const authorityType = AUTHORITY_TYPES[read.u8()]
  if (authorityType === undefined) throw new BytesError('unknown authority')
  const owned = authorityType === 'accountOwner' || authorityType === 'closeAccount' ? 'account' : 'mint'
  return { ...nameSigned(accounts, [owned], 'authority'), authorityType, newAuthority: readOptionalKey(read) }
}

function readExtensionTypes(read: ByteReader): string[] {
  const types: string[] = []
  while (read.remaining > 0) types.push(extensionTypeName(read.u16()))
  return types
}

/** Consecutive instructions, each prefixed with its number of accounts and bytes; accounts are assigned in order. Batches do not nest. */
function parseBatch(accounts: readonly string[], read: ByteReader): ParsedState {
  const instructions: Json[] = []
  let at = 0
  while (read.remaining > 0) {
    const accountCount = read.u8()
    const data = read.bytes(read.u8())
    if (data[0] === BATCH || at + accountCount > accounts.length || accountCount === 0)
      throw new BytesError('not a batch')
    instructions.push(parseTokenInstruction(accounts.slice(at, at + accountCount), data))
    at += accountCount
  }
  return { type: 'batch', info: { instructions } }
}
