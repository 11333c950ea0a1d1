import { Buffer } from 'node:buffer'
import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import type { Json } from '../json.ts'
import { ByteReader, BytesError, parsable } from './byte-reader.ts'
import type { InterestBearing, ScaledAmount, TokenDisplay } from './token-amount.ts'
import type { MintState, TokenExtension } from './token-state.ts'

const INTEREST_BEARING = 10
const SCALED_UI_AMOUNT = 25

type Reader = (read: ByteReader) => Json

/** Extensions by type number (token-2022 `ExtensionType`): name in the JSON, and the reader of its state; without a reader it has no state. */
const EXTENSIONS: Readonly<Record<number, { readonly name: string; readonly read?: Reader }>> = {
  1: { name: 'transferFeeConfig', read: readTransferFeeConfig },
  2: { name: 'transferFeeAmount', read: (read) => ({ withheldAmount: read.u64() }) },
  3: { name: 'mintCloseAuthority', read: (read) => ({ closeAuthority: maybeKey(read) }) },
  4: {
    name: 'confidentialTransferMint',
    read: (read) => ({
      authority: maybeKey(read),
      autoApproveNewAccounts: flag(read),
      auditorElgamalPubkey: maybeElgamal(read),
    }),
  },
  5: { name: 'confidentialTransferAccount', read: readConfidentialAccount },
  6: { name: 'defaultAccountState', read: (read) => ({ accountState: accountStateName(read.u8()) }) },
  7: { name: 'immutableOwner' },
  8: { name: 'memoTransfer', read: (read) => ({ requireIncomingTransferMemos: flag(read) }) },
  9: { name: 'nonTransferable' },
  10: {
    name: 'interestBearingConfig',
    read: (read) => ({
      rateAuthority: maybeKey(read),
      initializationTimestamp: read.i64(),
      preUpdateAverageRate: read.i16(),
      lastUpdateTimestamp: read.i64(),
      currentRate: read.i16(),
    }),
  },
  11: { name: 'cpiGuard', read: (read) => ({ lockCpi: flag(read) }) },
  12: { name: 'permanentDelegate', read: (read) => ({ delegate: maybeKey(read) }) },
  13: { name: 'nonTransferableAccount' },
  14: { name: 'transferHook', read: (read) => ({ authority: maybeKey(read), programId: maybeKey(read) }) },
  15: { name: 'transferHookAccount', read: (read) => ({ transferring: flag(read) }) },
  16: {
    name: 'confidentialTransferFeeConfig',
    read: (read) => ({
      authority: maybeKey(read),
      withdrawWithheldAuthorityElgamalPubkey: maybeElgamal(read),
      harvestToMintEnabled: flag(read),
      withheldAmount: base64(read, 64),
    }),
  },
  17: { name: 'confidentialTransferFeeAmount', read: (read) => ({ withheldAmount: base64(read, 64) }) },
  18: { name: 'metadataPointer', read: (read) => ({ authority: maybeKey(read), metadataAddress: maybeKey(read) }) },
  19: { name: 'tokenMetadata', read: readTokenMetadata },
  20: { name: 'groupPointer', read: (read) => ({ authority: maybeKey(read), groupAddress: maybeKey(read) }) },
  21: { name: 'tokenGroup', read: readTokenGroup },
  22: { name: 'groupMemberPointer', read: (read) => ({ authority: maybeKey(read), memberAddress: maybeKey(read) }) },
  23: {
    name: 'tokenGroupMember',
    read: (read) => ({ mint: read.key(), group: read.key(), memberNumber: wholeRest(read) }),
  },
  24: {
    name: 'confidentialMintBurn',
    read: (read) => ({
      confidentialSupply: base64(read, 64),
      decryptableSupply: base64(read, 36),
      supplyElgamalPubkey: base64(read, 32),
      pendingBurn: base64(read, 64),
    }),
  },
  25: {
    name: 'scaledUiAmountConfig',
    read: (read) => ({
      authority: maybeKey(read),
      multiplier: String(read.f64()),
      newMultiplierEffectiveTimestamp: read.i64(),
      newMultiplier: String(read.f64()),
    }),
  },
  26: { name: 'pausableConfig', read: (read) => ({ authority: maybeKey(read), paused: flag(read) }) },
  27: { name: 'pausableAccount' },
  28: { name: 'permissionedBurn', read: (read) => ({ authority: maybeKey(read) }) },
}

/** Names used in instructions, by type number. */
export function extensionTypeName(type: number): string {
  if (type === 0) return 'uninitialized'
  if (type === 25) return 'scaledUiAmount'
  if (type === 26) return 'pausable'
  const known = EXTENSIONS[type]
  if (!known) throw new BytesError('unknown extension')
  return known.name
}

/** The member `extensions`, omitted when there are none. */
export function encodeExtensions(extensions: readonly TokenExtension[]): Json | undefined {
  return extensions.length === 0 ? undefined : extensions.map(encodeExtension)
}

function encodeExtension({ type, data }: TokenExtension): Json {
  const known = EXTENSIONS[type]
  if (known && !known.read) return { extension: known.name }
  const state = known?.read && parsable(() => readExactly(data, known.read as Reader))
  return known && state !== undefined ? { extension: known.name, state } : { extension: 'unparseableExtension' }
}

/** How amounts of a mint are displayed: its decimals, and the extensions that scale them. */
export function tokenDisplay(mint: MintState, unixTimestamp: number): TokenDisplay {
  return {
    decimals: mint.decimals,
    interest: findExtension(mint, INTEREST_BEARING, readInterest),
    scale: findExtension(mint, SCALED_UI_AMOUNT, readScale),
    unixTimestamp,
  }
}

function findExtension<T>(mint: MintState, type: number, read: (reader: ByteReader) => T): T | undefined {
  const extension = mint.extensions.find((each) => each.type === type)
  return extension && parsable(() => read(new ByteReader(extension.data, 32)))
}

function readInterest(read: ByteReader): InterestBearing {
  return {
    initializationTimestamp: Number(read.i64()),
    preUpdateAverageRate: read.i16(),
    lastUpdateTimestamp: Number(read.i64()),
    currentRate: read.i16(),
  }
}

function readScale(read: ByteReader): ScaledAmount {
  return { multiplier: read.f64(), newMultiplierEffectiveTimestamp: Number(read.i64()), newMultiplier: read.f64() }
}

/** Throws BytesError unless the reader consumes all bytes of the extension. */
function readExactly(data: Uint8Array, read: Reader): Json {
  const reader = new ByteReader(data)
  const state = read(reader)
  if (reader.remaining > 0) throw new BytesError('bytes left over')
  return state
}

function readTransferFeeConfig(read: ByteReader): Json {
  const fee = () => ({ epoch: read.u64(), maximumFee: read.u64(), transferFeeBasisPoints: read.u16() })
  return {
    transferFeeConfigAuthority: maybeKey(read),
    withdrawWithheldAuthority: maybeKey(read),
    withheldAmount: read.u64(),
    olderTransferFee: fee(),
    newerTransferFee: fee(),
  }
}

function readConfidentialAccount(read: ByteReader): Json {
  return {
    approved: flag(read),
    elgamalPubkey: base64(read, 32),
    pendingBalanceLo: base64(read, 64),
    pendingBalanceHi: base64(read, 64),
    availableBalance: base64(read, 64),
    decryptableAvailableBalance: base64(read, 36),
    allowConfidentialCredits: flag(read),
    allowNonConfidentialCredits: flag(read),
    pendingBalanceCreditCounter: read.u64(),
    maximumPendingBalanceCreditCounter: read.u64(),
    expectedPendingBalanceCreditCounter: read.u64(),
    actualPendingBalanceCreditCounter: read.u64(),
  }
}

function readTokenMetadata(read: ByteReader): Json {
  const updateAuthority = maybeKey(read)
  const mint = read.key()
  const [name, symbol, uri] = [read.string32(), read.string32(), read.string32()]
  const pairs = read.u32()
  const additionalMetadata: Json[] = []
  for (let i = 0; i < pairs; i++) additionalMetadata.push([read.string32(), read.string32()])
  return { updateAuthority, mint, name, symbol, uri, additionalMetadata }
}

/** The counters had 32 bits in an earlier version. */
function readTokenGroup(read: ByteReader): Json {
  const updateAuthority = maybeKey(read)
  const mint = read.key()
  const counter = read.remaining === 8 ? () => read.u32() : () => read.u64()
  return { updateAuthority, mint, size: counter(), maxSize: counter() }
}

function wholeRest(read: ByteReader): Json {
  return read.remaining === 4 ? read.u32() : read.u64()
}

/** A key of zeros means none. */
export function maybeKey(read: ByteReader): string | null {
  const bytes = read.bytes(32)
  return bytes.every((byte) => byte === 0) ? null : encodeBase58(bytes)
}

export function maybeElgamal(read: ByteReader): string | null {
  const bytes = read.bytes(32)
  return bytes.every((byte) => byte === 0) ? null : toBase64(bytes)
}

/** The programs' own booleans: any byte but zero is true. */
export function flag(read: ByteReader): boolean {
  return read.u8() !== 0
}

export function base64(read: ByteReader, length: number): string {
  return toBase64(read.bytes(length))
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

export function accountStateName(state: number): string {
  return state === 1 ? 'initialized' : state === 2 ? 'frozen' : 'uninitialized'
}
