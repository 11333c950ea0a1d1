import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import { A, B, C, D, E, expectParsed, RENT } from '../../../../test/support/solana/parsed-instruction.ts'
import { tokenInstruction } from '../../../../test/support/solana/token-instructions.ts'

describe('Token instructions', () => {
  const expect = (instruction: web3.TransactionInstruction, type: string, info: Record<string, unknown>) =>
    expectParsed(instruction, 'spl-token', type, info)
  const amountOf = (amount: string, uiAmountString: string) => ({
    amount,
    decimals: 2,
    uiAmount: Number(uiAmountString),
    uiAmountString,
  })

  it('are parsed as built by the client library', () => {
    expect(tokenInstruction('initializeMint'), 'initializeMint', {
      mint: A,
      rentSysvar: RENT,
      decimals: 6,
      mintAuthority: B,
      freezeAuthority: C,
    })
    expect(tokenInstruction('initializeMint2'), 'initializeMint2', {
      mint: A,
      decimals: 6,
      mintAuthority: B,
    })
    expect(tokenInstruction('initializeAccount'), 'initializeAccount', {
      account: A,
      mint: B,
      owner: C,
      rentSysvar: RENT,
    })
    expect(tokenInstruction('initializeAccount2'), 'initializeAccount2', {
      account: A,
      mint: B,
      owner: C,
      rentSysvar: RENT,
    })
    expect(tokenInstruction('initializeAccount3'), 'initializeAccount3', { account: A, mint: B, owner: C })
    expect(tokenInstruction('initializeMultisig'), 'initializeMultisig', {
      multisig: A,
      rentSysvar: RENT,
      signers: [B, C],
      m: 2,
    })
    expect(tokenInstruction('transfer'), 'transfer', {
      source: A,
      destination: B,
      authority: C,
      amount: '5',
    })
    expect(tokenInstruction('transferByMultisig'), 'transfer', {
      source: A,
      destination: B,
      multisigAuthority: C,
      signers: [D, E],
      amount: '5',
    })
    expect(tokenInstruction('approve'), 'approve', { source: A, delegate: B, owner: C, amount: '5' })
    expect(tokenInstruction('revoke'), 'revoke', { source: A, owner: B })
    expect(tokenInstruction('setAuthority'), 'setAuthority', {
      mint: A,
      authority: B,
      authorityType: 'mintTokens',
      newAuthority: null,
    })
    expect(tokenInstruction('setAuthorityOfAccount'), 'setAuthority', {
      account: A,
      authority: B,
      authorityType: 'accountOwner',
      newAuthority: C,
    })
    expect(tokenInstruction('mintTo'), 'mintTo', {
      mint: A,
      account: B,
      mintAuthority: C,
      amount: '18446744073709551615',
    })
    expect(tokenInstruction('burn'), 'burn', { account: A, mint: B, authority: C, amount: '1' })
    expect(tokenInstruction('closeAccount'), 'closeAccount', { account: A, destination: B, owner: C })
    expect(tokenInstruction('freezeAccount'), 'freezeAccount', { account: A, mint: B, freezeAuthority: C })
    expect(tokenInstruction('thawAccount'), 'thawAccount', { account: A, mint: B, freezeAuthority: C })
    expect(tokenInstruction('transferChecked'), 'transferChecked', {
      source: A,
      mint: B,
      destination: C,
      authority: D,
      tokenAmount: amountOf('150', '1.5'),
    })
    expect(tokenInstruction('approveChecked'), 'approveChecked', {
      source: A,
      mint: B,
      delegate: C,
      owner: D,
      tokenAmount: amountOf('1', '0.01'),
    })
    expect(tokenInstruction('mintToChecked'), 'mintToChecked', {
      mint: A,
      account: B,
      mintAuthority: C,
      tokenAmount: amountOf('100', '1'),
    })
    expect(tokenInstruction('burnChecked'), 'burnChecked', {
      account: A,
      mint: B,
      authority: C,
      tokenAmount: amountOf('1', '0.01'),
    })
    expect(tokenInstruction('syncNative'), 'syncNative', { account: A })
    expect(tokenInstruction('initializeImmutableOwner'), 'initializeImmutableOwner', { account: A })
    expect(tokenInstruction('amountToUiAmount'), 'amountToUiAmount', { mint: A, amount: '7' })
    expect(tokenInstruction('uiAmountToAmount'), 'uiAmountToAmount', { mint: A, uiAmount: '1.5' })
  })

  it('of Token-2022 are parsed with the same program name', () => {
    expect(tokenInstruction('initializeMintCloseAuthority'), 'initializeMintCloseAuthority', {
      mint: A,
      newAuthority: B,
    })
    expect(tokenInstruction('initializeTransferFeeConfig'), 'initializeTransferFeeConfig', {
      mint: A,
      transferFeeConfigAuthority: B,
      transferFeeBasisPoints: 10,
      maximumFee: 99,
    })
    expect(tokenInstruction('transferCheckedWithFee'), 'transferCheckedWithFee', {
      source: A,
      mint: B,
      destination: C,
      authority: D,
      tokenAmount: amountOf('100', '1'),
      feeAmount: amountOf('1', '0.01'),
    })
    expect(tokenInstruction('withdrawWithheldTokensFromAccounts'), 'withdrawWithheldTokensFromAccounts', {
      mint: A,
      feeRecipient: B,
      withdrawWithheldAuthority: C,
      sourceAccounts: [D, E],
    })
    expect(tokenInstruction('harvestWithheldTokensToMint'), 'harvestWithheldTokensToMint', {
      mint: A,
      sourceAccounts: [B],
    })
    expect(tokenInstruction('initializeDefaultAccountState'), 'initializeDefaultAccountState', {
      mint: A,
      accountState: 'frozen',
    })
    expect(tokenInstruction('updateDefaultAccountState'), 'updateDefaultAccountState', {
      mint: A,
      accountState: 'initialized',
      freezeAuthority: B,
    })
    expect(tokenInstruction('enableRequiredMemoTransfers'), 'enableRequiredMemoTransfers', {
      account: A,
      owner: B,
    })
    expect(tokenInstruction('disableCpiGuard'), 'disableCpiGuard', { account: A, owner: B })
    expect(tokenInstruction('initializeInterestBearingMint'), 'initializeInterestBearingConfig', {
      mint: A,
      rateAuthority: B,
      rate: -7,
    })
    expect(tokenInstruction('initializePermanentDelegate'), 'initializePermanentDelegate', {
      mint: A,
      delegate: B,
    })
    expect(tokenInstruction('initializeTransferHook'), 'initializeTransferHook', {
      mint: A,
      authority: B,
      programId: C,
    })
    expect(tokenInstruction('updateMetadataPointer'), 'updateMetadataPointer', {
      mint: A,
      authority: B,
      metadataAddress: C,
    })
    expect(tokenInstruction('initializeNonTransferableMint'), 'initializeNonTransferableMint', { mint: A })
    expect(tokenInstruction('reallocate'), 'reallocate', {
      account: A,
      payer: B,
      systemProgram: web3.SystemProgram.programId.toBase58(),
      owner: C,
      extensionTypes: ['memoTransfer', 'transferFeeAmount'],
    })
    expect(tokenInstruction('pause'), 'pause', { mint: A, authority: B })
    expect(tokenInstruction('updateMultiplierData'), 'updateMultiplier', {
      mint: A,
      authority: B,
      newMultiplier: '1.5',
      newMultiplierTimestamp: 60,
    })
  })

  it('in a batch are parsed one by one', () => {
    const first = tokenInstruction('transfer')
    const second = tokenInstruction('syncNativeOfOther')
    const data = Buffer.concat([
      Buffer.of(255, 3, first.data.length),
      first.data,
      Buffer.of(1, second.data.length),
      second.data,
    ])
    const batch = new web3.TransactionInstruction({
      programId: first.programId,
      keys: [...first.keys, ...second.keys],
      data,
    })
    expect(batch, 'batch', {
      instructions: [
        { type: 'transfer', info: { source: A, destination: B, authority: C, amount: '5' } },
        { type: 'syncNative', info: { account: D } },
      ],
    })
  })
})
