import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import { A, a, B, b, C, c, D, d, E, e, expectParsed, show } from '../../../../test/support/solana/parsed-instruction.ts'
import { TOKEN_2022_PROGRAM } from '../../chain/addresses.ts'

const key = Buffer.alloc(32, 7)
const balance = Buffer.alloc(36, 8)
const auditor = Buffer.alloc(128, 9)
const [KEY, BALANCE] = [key, balance].map((bytes) => bytes.toString('base64'))
const u64 = (value: number) => Buffer.of(value, 0, 0, 0, 0, 0, 0, 0)
const ALL = [a, b, c, d, e]

/** With accounts a, b, c and so on. */
function instruction(accounts: number, ...data: (Buffer | number)[]): web3.TransactionInstruction {
  const keys = Array.from({ length: accounts }, (_none, index) => ({
    pubkey: ALL[index % ALL.length] as web3.PublicKey,
    isSigner: false,
    isWritable: false,
  }))
  const parts = data.map((part) => (typeof part === 'number' ? Buffer.of(part & 0xff) : part))
  return new web3.TransactionInstruction({
    programId: new web3.PublicKey(TOKEN_2022_PROGRAM),
    keys,
    data: Buffer.concat(parts),
  })
}

const expect = (parsed: web3.TransactionInstruction, type: string, info: Record<string, unknown>) =>
  expectParsed(parsed, 'spl-token', type, info)

describe('confidential instructions of Token-2022 are parsed', () => {
  it('that set up mints and accounts', () => {
    const mint = { mint: A, autoApproveNewAccounts: true, auditorElGamalPubkey: null }
    expect(instruction(1, 27, 0, b.toBuffer(), 1, Buffer.alloc(32)), 'initializeConfidentialTransferMint', {
      ...mint,
      authority: B,
    })
    expect(instruction(1, 27, 0, Buffer.alloc(32), 1, Buffer.alloc(32)), 'initializeConfidentialTransferMint', mint)
    expect(instruction(2, 27, 1, 0, key), 'updateConfidentialTransferMint', {
      mint: A,
      confidentialTransferMintAuthority: B,
      autoApproveNewAccounts: false,
      auditorElGamalPubkey: KEY,
    })
    const configured = { account: A, mint: B, decryptableZeroBalance: BALANCE, maximumPendingBalanceCreditCounter: 5 }
    expect(instruction(4, 27, 2, balance, u64(5), 0), 'configureConfidentialTransferAccount', {
      ...configured,
      proofInstructionOffset: 0,
      proofContextStateAccount: C,
      owner: D,
    })
    expect(instruction(5, 27, 2, balance, u64(5), -1), 'configureConfidentialTransferAccount', {
      ...configured,
      proofInstructionOffset: -1,
      instructionsSysvar: C,
      recordAccount: D,
      owner: E,
    })
    expect(instruction(3, 27, 3), 'approveConfidentialTransferAccount', {
      account: A,
      mint: B,
      confidentialTransferAuditorAuthority: C,
    })
    expect(instruction(3, 27, 4, 1), 'emptyConfidentialTransferAccount', {
      account: A,
      proofInstructionOffset: 1,
      instructionsSysvar: B,
      owner: C,
    })
    const credits = [
      'enableConfidentialTransferConfidentialCredits',
      'disableConfidentialTransferConfidentialCredits',
      'enableConfidentialTransferNonConfidentialCredits',
      'disableConfidentialTransferNonConfidentialCredits',
    ]
    for (const [index, type] of credits.entries()) expect(instruction(2, 27, 9 + index), type, { account: A, owner: B })
    expect(instruction(3, 27, 14), 'configureConfidentialAccountWithRegistry', { account: A, mint: B, registry: C })
  })

  it('that move balances', () => {
    expect(instruction(5, 27, 5, u64(6), 2), 'depositConfidentialTransfer', {
      source: A,
      destination: B,
      mint: C,
      multisigOwner: D,
      signers: [E],
      amount: 6,
      decimals: 2,
    })
    expect(instruction(5, 27, 6, u64(6), 2, balance, 0, 1), 'withdrawConfidentialTransfer', {
      source: A,
      destination: B,
      mint: C,
      instructionsSysvar: D,
      owner: E,
      amount: 6,
      decimals: 2,
      newDecryptableAvailableBalance: BALANCE,
      equalityProofInstructionOffset: 0,
      rangeProofInstructionOffset: 1,
    })
    const transfer = {
      source: A,
      mint: B,
      destination: C,
      equalityProofAccount: D,
      ciphertextValidityProofAccount: E,
      rangeProofAccount: A,
      owner: B,
      newSourceDecryptableAvailableBalance: BALANCE,
      equalityProofInstructionOffset: 0,
      ciphertextValidityProofInstructionOffset: 0,
      rangeProofInstructionOffset: 0,
    }
    expect(instruction(7, 27, 7, balance, 0, 0, 0), 'confidentialTransfer', transfer)
    expect(instruction(7, 27, 7, balance, auditor, 0, 0, 0), 'confidentialTransfer', transfer)
    expect(instruction(2, 27, 8, u64(3), balance), 'applyPendingConfidentialTransferBalance', {
      account: A,
      owner: B,
      newDecryptableAvailableBalance: BALANCE,
      expectedPendingBalanceCreditCounter: 3,
    })
    expect(instruction(5, 27, 13, balance, 1, 2, 3, 4, 5), 'confidentialTransferWithFee', {
      source: A,
      mint: B,
      destination: C,
      instructionsSysvar: D,
      owner: E,
      newSourceDecryptableAvailableBalance: BALANCE,
      equalityProofInstructionOffset: 1,
      transferAmountCiphertextValidityProofInstructionOffset: 2,
      feeSigmaProofInstructionOffset: 3,
      feeCiphertextValidityProofInstructionOffset: 4,
      rangeProofInstructionOffset: 5,
    })
  })

  it('for fees', () => {
    expect(instruction(1, 37, 0, Buffer.alloc(32), key), 'initializeConfidentialTransferFeeConfig', {
      mint: A,
      withdrawWithheldAuthorityElGamalPubkey: KEY,
    })
    const withdrawn = {
      mint: A,
      feeRecipient: B,
      newDecryptableAvailableBalance: BALANCE,
      withdrawWithheldAuthority: D,
    }
    expect(instruction(4, 37, 1, 0, balance), 'withdrawWithheldConfidentialTransferTokensFromMint', {
      ...withdrawn,
      proofInstructionOffset: 0,
      proofContextStateAccount: C,
    })
    expect(instruction(5, 37, 2, 1, 1, balance), 'withdrawWithheldConfidentialTransferTokensFromAccounts', {
      ...withdrawn,
      proofInstructionOffset: 1,
      instructionsSysvar: C,
      sourceAccounts: [E],
    })
    expect(instruction(3, 37, 3), 'harvestWithheldConfidentialTransferTokensToMint', {
      mint: A,
      sourceAccounts: [B, C],
    })
    expect(instruction(2, 37, 4), 'enableConfidentialTransferFeeHarvestToMint', { account: A, owner: B })
    expect(instruction(2, 37, 5), 'disableConfidentialTransferFeeHarvestToMint', { account: A, owner: B })
  })

  it('that mint and burn', () => {
    expect(instruction(1, 42, 0, key, balance), 'initializeConfidentialMintBurnMint', {
      mint: A,
      supplyElGamalPubkey: KEY,
      decryptableSupply: BALANCE,
    })
    expect(instruction(3, 42, 1, key, 0), 'rotateConfidentialMintBurnSupplyElGamalPubkey', {
      mint: A,
      proofAccount: B,
      owner: C,
      newSupplyElGamalPubkey: KEY,
      proofInstructionOffset: 0,
    })
    expect(instruction(2, 42, 2, balance), 'updateConfidentialMintBurnDecryptableSupply', {
      mint: A,
      owner: B,
      newDecryptableSupply: BALANCE,
    })
    const offsets = {
      equalityProofInstructionOffset: 1,
      ciphertextValidityProofInstructionOffset: 2,
      rangeProofInstructionOffset: 3,
    }
    expect(instruction(5, 42, 3, balance, auditor, 1, 2, 3), 'confidentialMint', {
      destination: A,
      mint: B,
      instructionsSysvar: C,
      equalityProofRecordAccount: D,
      owner: E,
      newDecryptableSupply: BALANCE,
      ...offsets,
    })
    expect(instruction(4, 42, 4, balance, 1, 2, 3), 'confidentialBurn', {
      destination: A,
      mint: B,
      instructionsSysvar: C,
      owner: D,
      newDecryptableAvailableBalance: BALANCE,
      ...offsets,
    })
  })

  it('unless bytes or accounts are missing or left over', () => {
    const unparsed = [
      instruction(1, 27, 1, 0, key),
      instruction(4, 27, 5, u64(6)),
      instruction(4, 27, 5, u64(6), 2, 0),
      instruction(4, 27, 6, u64(6), 2, balance, 0, 0),
      instruction(7, 27, 7, balance, auditor, 0, 0, 0, 0),
      instruction(4, 37, 2, 1, 1, balance),
      instruction(2, 27, 15),
      instruction(2, 37, 6),
      instruction(2, 42, 9),
      instruction(2, 27),
    ]
    for (const each of unparsed) assert.equal(show(each).parsed, undefined, each.data.toString('hex'))
  })
})
