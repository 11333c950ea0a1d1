import type { Json } from '../json.ts'
import { type ByteReader, BytesError } from './byte-reader.ts'
import { nameAccounts, type ParsedState } from './parser.ts'
import { base64, flag, maybeElgamal, maybeKey } from './token-extensions.ts'
import { nameSigned } from './token-instruction-parts.ts'

type Accounts = readonly string[]
type Members = { readonly [name: string]: Json | undefined }

/** Keys and ciphertexts are printed as base64. */
const ELGAMAL_KEY_BYTES = 32
const AE_CIPHERTEXT_BYTES = 36
/** The amount for the auditor, low and high half, which some versions of the program have in the instruction. It is not printed. */
const AUDITOR_BYTES = 2 * 64

/** From instruction 9 on: which credits an account accepts. */
const CREDITS = [
  'enableConfidentialTransferConfidentialCredits',
  'disableConfidentialTransferConfidentialCredits',
  'enableConfidentialTransferNonConfidentialCredits',
  'disableConfidentialTransferNonConfidentialCredits',
]
const CREDITS_FROM = 9

/** The proofs of an instruction in the order of their offsets in its data, and of their accounts. */
type Proofs = { readonly offsets: readonly string[]; readonly accounts: readonly string[] }

const ofOneOrder = (...names: readonly string[]): Proofs => ({ offsets: names, accounts: names })

const WITHDRAW_PROOFS = ofOneOrder('equality', 'range')
const TRANSFER_PROOFS = ofOneOrder('equality', 'ciphertextValidity', 'range')
const TRANSFER_WITH_FEE_PROOFS: Proofs = {
  offsets: ['equality', 'transferAmountCiphertextValidity', 'feeSigma', 'feeCiphertextValidity', 'range'],
  accounts: ['equality', 'transferAmountCiphertextValidity', 'feeCiphertextValidity', 'feeSigma', 'range'],
}

/** Instructions of Token-2022's confidential transfers. */
export function parseConfidentialTransfer(accounts: Accounts, read: ByteReader): ParsedState {
  const kind = read.u8()
  switch (kind) {
    case 0: {
      const authority = maybeKey(read) ?? undefined
      const info = { ...nameAccounts(accounts, ['mint']), authority, ...readMint(read) }
      return { type: 'initializeConfidentialTransferMint', info: whole(read, info) }
    }
    case 1: {
      const info = { ...nameAccounts(accounts, ['mint', 'confidentialTransferMintAuthority']), ...readMint(read) }
      return { type: 'updateConfidentialTransferMint', info: whole(read, info) }
    }
    case 2: {
      const fields = {
        decryptableZeroBalance: base64(read, AE_CIPHERTEXT_BYTES),
        maximumPendingBalanceCreditCounter: read.u64(),
        proofInstructionOffset: read.i8(),
      }
      const names = nameOneProof(accounts, ['account', 'mint'], fields.proofInstructionOffset)
      return { type: 'configureConfidentialTransferAccount', info: whole(read, { ...names, ...fields }) }
    }
    case 3: {
      const names = ['account', 'mint', 'confidentialTransferAuditorAuthority']
      return { type: 'approveConfidentialTransferAccount', info: nameAccounts(accounts, names) }
    }
    case 4: {
      const proofInstructionOffset = read.i8()
      const info = { ...nameOneProof(accounts, ['account'], proofInstructionOffset), proofInstructionOffset }
      return { type: 'emptyConfidentialTransferAccount', info: whole(read, info) }
    }
    case 5: {
      const names = nameSigned(accounts, ['source', 'destination', 'mint'], 'owner')
      const info = { ...names, amount: read.u64(), decimals: read.u8() }
      return { type: 'depositConfidentialTransfer', info: whole(read, info) }
    }
    case 6: {
      const fields = {
        amount: read.u64(),
        decimals: read.u8(),
        newDecryptableAvailableBalance: base64(read, AE_CIPHERTEXT_BYTES),
      }
      atLeast(accounts, 5)
      const names = nameProofs(accounts, ['source', 'destination', 'mint'], read, WITHDRAW_PROOFS)
      return { type: 'withdrawConfidentialTransfer', info: whole(read, { ...names, ...fields }) }
    }
    case 7:
      return { type: 'confidentialTransfer', info: readTransfer(accounts, read, TRANSFER_PROOFS) }
    case 8: {
      const expectedPendingBalanceCreditCounter = read.u64()
      const newDecryptableAvailableBalance = base64(read, AE_CIPHERTEXT_BYTES)
      const names = nameSigned(accounts, ['account'], 'owner')
      const info = { ...names, newDecryptableAvailableBalance, expectedPendingBalanceCreditCounter }
      return { type: 'applyPendingConfidentialTransferBalance', info: whole(read, info) }
    }
    case 13:
      return { type: 'confidentialTransferWithFee', info: readTransfer(accounts, read, TRANSFER_WITH_FEE_PROOFS) }
    case 14: {
      const info = nameAccounts(accounts, ['account', 'mint', 'registry'])
      return { type: 'configureConfidentialAccountWithRegistry', info }
    }
    default: {
      const type = CREDITS[kind - CREDITS_FROM]
      if (type === undefined) throw new BytesError('unknown instruction')
      return { type, info: nameSigned(accounts, ['account'], 'owner') }
    }
  }
}

/** Instructions for the fees of confidential transfers. */
export function parseConfidentialTransferFee(accounts: Accounts, read: ByteReader): ParsedState {
  switch (read.u8()) {
    case 0: {
      const authority = maybeKey(read) ?? undefined
      const withdrawWithheldAuthorityElGamalPubkey = maybeElgamal(read)
      const info = { ...nameAccounts(accounts, ['mint']), authority, withdrawWithheldAuthorityElGamalPubkey }
      return { type: 'initializeConfidentialTransferFeeConfig', info: whole(read, info) }
    }
    case 1:
      return { type: 'withdrawWithheldConfidentialTransferTokensFromMint', info: readWithdrawal(read, accounts) }
    case 2: {
      const sources = read.u8()
      atLeast(accounts, 4 + sources)
      const first = accounts.length - sources
      const info = { ...readWithdrawal(read, accounts.slice(0, first)), sourceAccounts: accounts.slice(first) }
      return { type: 'withdrawWithheldConfidentialTransferTokensFromAccounts', info }
    }
    case 3: {
      const info = { ...nameAccounts(accounts, ['mint']), sourceAccounts: accounts.slice(1) }
      return { type: 'harvestWithheldConfidentialTransferTokensToMint', info }
    }
    case 4:
      return {
        type: 'enableConfidentialTransferFeeHarvestToMint',
        info: nameSigned(accounts, ['account'], 'owner'),
      }
    case 5:
      return {
        type: 'disableConfidentialTransferFeeHarvestToMint',
        info: nameSigned(accounts, ['account'], 'owner'),
      }
    default:
      throw new BytesError('unknown instruction')
  }
}

/** Instructions that mint and burn confidential amounts. */
export function parseConfidentialMintBurn(accounts: Accounts, read: ByteReader): ParsedState {
  switch (read.u8()) {
    case 0: {
      const supplyElGamalPubkey = base64(read, ELGAMAL_KEY_BYTES)
      const decryptableSupply = base64(read, AE_CIPHERTEXT_BYTES)
      const info = { ...nameAccounts(accounts, ['mint']), supplyElGamalPubkey, decryptableSupply }
      return { type: 'initializeConfidentialMintBurnMint', info: whole(read, info) }
    }
    case 1: {
      const newSupplyElGamalPubkey = base64(read, ELGAMAL_KEY_BYTES)
      const proofInstructionOffset = read.i8()
      const proof = proofInstructionOffset === 0 ? 'proofAccount' : 'instructionsSysvar'
      const names = nameSigned(accounts, ['mint', proof], 'owner')
      const info = { ...names, newSupplyElGamalPubkey, proofInstructionOffset }
      return { type: 'rotateConfidentialMintBurnSupplyElGamalPubkey', info: whole(read, info) }
    }
    case 2: {
      const newDecryptableSupply = base64(read, AE_CIPHERTEXT_BYTES)
      const info = { ...nameSigned(accounts, ['mint'], 'owner'), newDecryptableSupply }
      return { type: 'updateConfidentialMintBurnDecryptableSupply', info: whole(read, info) }
    }
    case 3:
      return { type: 'confidentialMint', info: readMintOrBurn(accounts, read, 'newDecryptableSupply') }
    case 4:
      return { type: 'confidentialBurn', info: readMintOrBurn(accounts, read, 'newDecryptableAvailableBalance') }
    default:
      throw new BytesError('unknown instruction')
  }
}

function readTransfer(accounts: Accounts, read: ByteReader, proofs: Proofs): Json {
  const newSourceDecryptableAvailableBalance = readBalance(read, proofs)
  const names = nameProofs(accounts, ['source', 'mint', 'destination'], read, proofs)
  return whole(read, { ...names, newSourceDecryptableAvailableBalance })
}

function readMintOrBurn(accounts: Accounts, read: ByteReader, member: string): Json {
  const balance = readBalance(read, TRANSFER_PROOFS)
  const names = nameProofs(accounts, ['destination', 'mint'], read, TRANSFER_PROOFS, 'ProofRecordAccount')
  return whole(read, { ...names, [member]: balance })
}

/** The new balance, before the offsets of the proofs. */
function readBalance(read: ByteReader, { offsets }: Proofs): string {
  const balance = base64(read, AE_CIPHERTEXT_BYTES)
  if (read.remaining === AUDITOR_BYTES + offsets.length) read.bytes(AUDITOR_BYTES)
  return balance
}

function readMint(read: ByteReader): Members {
  return { autoApproveNewAccounts: flag(read), auditorElGamalPubkey: maybeElgamal(read) }
}

function readWithdrawal(read: ByteReader, accounts: Accounts): Members {
  const proofInstructionOffset = read.i8()
  const newDecryptableAvailableBalance = base64(read, AE_CIPHERTEXT_BYTES)
  const proof = proofInstructionOffset === 0 ? 'proofContextStateAccount' : 'instructionsSysvar'
  const names = nameSigned(accounts, ['mint', 'feeRecipient', proof], 'withdrawWithheldAuthority')
  return whole(read, { ...names, proofInstructionOffset, newDecryptableAvailableBalance })
}

/** A proof is in an account, or in another instruction, which may have its data in an account. */
function nameOneProof(accounts: Accounts, names: readonly string[], offset: number): Members {
  const all = [...names, offset === 0 ? 'proofContextStateAccount' : 'instructionsSysvar']
  if (offset !== 0 && accounts.length > all.length + 1) all.push('recordAccount')
  return nameSigned(accounts, all, 'owner')
}

/**
 * Reads the offsets of the proofs and names the accounts: the sysvar where one is in another instruction, then as many accounts of
 * proofs as there are before the owner. The signers of a multisig cannot be distinguished from them.
 */
function nameProofs(
  accounts: Accounts,
  names: readonly string[],
  read: ByteReader,
  proofs: Proofs,
  suffix = 'ProofAccount',
): Members {
  const offsets = proofs.offsets.map((proof) => [`${proof}ProofInstructionOffset`, read.i8()] as const)
  const all = [...names]
  if (offsets.some(([, offset]) => offset !== 0)) all.push('instructionsSysvar')
  for (const proof of proofs.accounts) if (all.length < accounts.length - 1) all.push(`${proof}${suffix}`)
  return { ...nameSigned(accounts, all, 'owner'), ...Object.fromEntries(offsets) }
}

function atLeast(accounts: Accounts, count: number): void {
  if (accounts.length < count) throw new BytesError('too few accounts')
}

/** Throws BytesError where the instruction is longer than its fields. */
function whole<T extends Members>(read: ByteReader, info: T): T {
  if (read.remaining > 0) throw new BytesError('bytes left over')
  return info
}
