import { Buffer } from 'node:buffer'
import * as address from '../../chain/addresses.ts'
import type { Json } from '../json.ts'
import { ByteReader, BytesError, parsable } from './byte-reader.ts'
import { parseConfig } from './config.ts'
import type { AccountToParse, ParsedState } from './parser.ts'
import { parseStake } from './stake.ts'
import { parseSysvar } from './sysvars.ts'
import { encodeTokenAmount } from './token-amount.ts'
import { encodeExtensions } from './token-extensions.ts'
import { parseMint, parseMultisig, parseTokenAccount } from './token-state.ts'
import { parseVote } from './vote.ts'

const PARSERS: Readonly<
  Record<string, { readonly program: string; readonly parse: (account: AccountToParse) => ParsedState | undefined }>
> = {
  [address.LOOKUP_TABLE_PROGRAM]: { program: 'address-lookup-table', parse: parseLookupTable },
  [address.UPGRADEABLE_LOADER]: { program: 'bpf-upgradeable-loader', parse: parseUpgradeableLoader },
  [address.CONFIG_PROGRAM]: { program: 'config', parse: parseConfig },
  [address.SYSTEM_PROGRAM]: { program: 'nonce', parse: parseNonce },
  [address.TOKEN_PROGRAM]: { program: 'spl-token', parse: parseToken },
  [address.TOKEN_2022_PROGRAM]: { program: 'spl-token-2022', parse: parseToken },
  [address.STAKE_PROGRAM]: { program: 'stake', parse: parseStake },
  [address.SYSVAR_OWNER]: { program: 'sysvar', parse: parseSysvar },
  [address.VOTE_PROGRAM]: { program: 'vote', parse: parseVote },
}

/** The object of encoding `jsonParsed`, or undefined where owner or data cannot be parsed. */
export function parseAccountData(account: AccountToParse): Json | undefined {
  const known = PARSERS[account.owner]
  const parsed = known && parsable(() => known.parse(account))
  if (!known || !parsed) return undefined
  return { program: known.program, parsed, space: account.data.length }
}

function parseToken({ data, display }: AccountToParse): ParsedState | undefined {
  const account = parseTokenAccount(data)
  if (account) {
    if (!display) return undefined
    const { mint, owner, amount, delegate, state, nativeReserve, delegatedAmount, closeAuthority, extensions } = account
    const info = {
      mint,
      owner,
      tokenAmount: encodeTokenAmount(amount, display),
      delegate: delegate ?? undefined,
      state,
      isNative: nativeReserve !== null,
      rentExemptReserve: nativeReserve === null ? undefined : encodeTokenAmount(nativeReserve, display),
      delegatedAmount: delegate === null ? undefined : encodeTokenAmount(delegatedAmount, display),
      closeAuthority: closeAuthority ?? undefined,
      extensions: encodeExtensions(extensions),
    }
    return { type: 'account', info }
  }
  const mint = parseMint(data)
  if (mint) {
    const { mintAuthority, supply, decimals, freezeAuthority, extensions } = mint
    const info = {
      mintAuthority,
      supply: supply.toString(),
      decimals,
      isInitialized: true,
      freezeAuthority,
      extensions: encodeExtensions(extensions),
    }
    return { type: 'mint', info }
  }
  const multisig = parseMultisig(data)
  if (!multisig) return undefined
  const { m, n, signers } = multisig
  return { type: 'multisig', info: { numRequiredSigners: m, numValidSigners: n, isInitialized: true, signers } }
}

/** An uninitialized nonce is not parsed: it cannot be distinguished from any allocated account of the System program. */
function parseNonce({ data }: AccountToParse): ParsedState | undefined {
  const read = new ByteReader(data)
  const version = read.u32()
  if (version > 1 || read.u32() !== 1) return undefined
  const authority = read.key()
  const blockhash = read.key()
  return {
    type: 'initialized',
    info: { authority, blockhash, feeCalculator: { lamportsPerSignature: read.u64().toString() } },
  }
}

const LOOKUP_TABLE_META_BYTES = 56

function parseLookupTable({ data }: AccountToParse): ParsedState | undefined {
  const read = new ByteReader(data)
  const kind = read.u32()
  if (kind === 0) return { type: 'uninitialized' }
  if (kind !== 1) return undefined
  const deactivationSlot = read.u64().toString()
  const lastExtendedSlot = read.u64().toString()
  const lastExtendedSlotStartIndex = read.u8()
  const authority = read.option(() => read.key()) ?? undefined
  if (data.length < LOOKUP_TABLE_META_BYTES || (data.length - LOOKUP_TABLE_META_BYTES) % 32 !== 0) return undefined
  read.offset = LOOKUP_TABLE_META_BYTES
  const addresses = Array.from({ length: read.remaining / 32 }, () => read.key())
  return {
    type: 'lookupTable',
    info: { deactivationSlot, lastExtendedSlot, lastExtendedSlotStartIndex, authority, addresses },
  }
}

function parseUpgradeableLoader({ data }: AccountToParse): ParsedState {
  const read = new ByteReader(data)
  const rest = (): Json => [Buffer.from(data.subarray(read.offset)).toString('base64'), 'base64']
  switch (read.u32()) {
    case 0:
      return { type: 'uninitialized' }
    case 1: {
      const authority = read.option(() => read.key())
      return { type: 'buffer', info: { authority, data: rest() } }
    }
    case 2:
      return { type: 'program', info: { programData: read.key() } }
    case 3: {
      const slot = read.u64()
      const authority = read.option(() => read.key())
      return { type: 'programData', info: { slot, authority, data: rest() } }
    }
    default:
      throw new BytesError('not a loader account')
  }
}
