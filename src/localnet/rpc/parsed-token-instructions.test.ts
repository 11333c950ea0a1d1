import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import * as token from '@solana/spl-token'
import * as web3 from '@solana/web3.js'
import { A, a, B, b, C, c, D, d, E, e, expectParsed, RENT } from '../../../test/support/parsed-instruction.ts'

describe('Token instructions', () => {
  const expect = (instruction: web3.TransactionInstruction, type: string, info: Record<string, unknown>) =>
    expectParsed(instruction, 'spl-token', type, info)
  const amountOf = (amount: string, uiAmountString: string) => ({
    amount,
    decimals: 2,
    uiAmount: Number(uiAmountString),
    uiAmountString,
  })

  it('are parsed as the library builds them', () => {
    expect(token.createInitializeMintInstruction(a, 6, b, c), 'initializeMint', {
      mint: A,
      rentSysvar: RENT,
      decimals: 6,
      mintAuthority: B,
      freezeAuthority: C,
    })
    expect(token.createInitializeMint2Instruction(a, 6, b, null), 'initializeMint2', {
      mint: A,
      decimals: 6,
      mintAuthority: B,
    })
    expect(token.createInitializeAccountInstruction(a, b, c), 'initializeAccount', {
      account: A,
      mint: B,
      owner: C,
      rentSysvar: RENT,
    })
    expect(token.createInitializeAccount2Instruction(a, b, c), 'initializeAccount2', {
      account: A,
      mint: B,
      owner: C,
      rentSysvar: RENT,
    })
    expect(token.createInitializeAccount3Instruction(a, b, c), 'initializeAccount3', { account: A, mint: B, owner: C })
    expect(token.createInitializeMultisigInstruction(a, [b, c], 2), 'initializeMultisig', {
      multisig: A,
      rentSysvar: RENT,
      signers: [B, C],
      m: 2,
    })
    expect(token.createTransferInstruction(a, b, c, 5), 'transfer', {
      source: A,
      destination: B,
      authority: C,
      amount: '5',
    })
    expect(token.createTransferInstruction(a, b, c, 5, [d, e]), 'transfer', {
      source: A,
      destination: B,
      multisigAuthority: C,
      signers: [D, E],
      amount: '5',
    })
    expect(token.createApproveInstruction(a, b, c, 5), 'approve', { source: A, delegate: B, owner: C, amount: '5' })
    expect(token.createRevokeInstruction(a, b), 'revoke', { source: A, owner: B })
    expect(token.createSetAuthorityInstruction(a, b, token.AuthorityType.MintTokens, null), 'setAuthority', {
      mint: A,
      authority: B,
      authorityType: 'mintTokens',
      newAuthority: null,
    })
    expect(token.createSetAuthorityInstruction(a, b, token.AuthorityType.AccountOwner, c), 'setAuthority', {
      account: A,
      authority: B,
      authorityType: 'accountOwner',
      newAuthority: C,
    })
    expect(token.createMintToInstruction(a, b, c, 18446744073709551615n), 'mintTo', {
      mint: A,
      account: B,
      mintAuthority: C,
      amount: '18446744073709551615',
    })
    expect(token.createBurnInstruction(a, b, c, 1), 'burn', { account: A, mint: B, authority: C, amount: '1' })
    expect(token.createCloseAccountInstruction(a, b, c), 'closeAccount', { account: A, destination: B, owner: C })
    expect(token.createFreezeAccountInstruction(a, b, c), 'freezeAccount', { account: A, mint: B, freezeAuthority: C })
    expect(token.createThawAccountInstruction(a, b, c), 'thawAccount', { account: A, mint: B, freezeAuthority: C })
    expect(token.createTransferCheckedInstruction(a, b, c, d, 150, 2), 'transferChecked', {
      source: A,
      mint: B,
      destination: C,
      authority: D,
      tokenAmount: amountOf('150', '1.5'),
    })
    expect(token.createApproveCheckedInstruction(a, b, c, d, 1, 2), 'approveChecked', {
      source: A,
      mint: B,
      delegate: C,
      owner: D,
      tokenAmount: amountOf('1', '0.01'),
    })
    expect(token.createMintToCheckedInstruction(a, b, c, 100, 2), 'mintToChecked', {
      mint: A,
      account: B,
      mintAuthority: C,
      tokenAmount: amountOf('100', '1'),
    })
    expect(token.createBurnCheckedInstruction(a, b, c, 1, 2), 'burnChecked', {
      account: A,
      mint: B,
      authority: C,
      tokenAmount: amountOf('1', '0.01'),
    })
    expect(token.createSyncNativeInstruction(a), 'syncNative', { account: A })
    expect(
      token.createInitializeImmutableOwnerInstruction(a, token.TOKEN_2022_PROGRAM_ID),
      'initializeImmutableOwner',
      { account: A },
    )
    expect(token.createAmountToUiAmountInstruction(a, 7), 'amountToUiAmount', { mint: A, amount: '7' })
    expect(token.createUiAmountToAmountInstruction(a, '1.5'), 'uiAmountToAmount', { mint: A, uiAmount: '1.5' })
  })

  it('of Token-2022 are shown under the same program', () => {
    const T22 = token.TOKEN_2022_PROGRAM_ID
    expect(token.createInitializeMintCloseAuthorityInstruction(a, b, T22), 'initializeMintCloseAuthority', {
      mint: A,
      newAuthority: B,
    })
    expect(token.createInitializeTransferFeeConfigInstruction(a, b, null, 10, 99n), 'initializeTransferFeeConfig', {
      mint: A,
      transferFeeConfigAuthority: B,
      transferFeeBasisPoints: 10,
      maximumFee: 99,
    })
    expect(token.createTransferCheckedWithFeeInstruction(a, b, c, d, 100n, 2, 1n), 'transferCheckedWithFee', {
      source: A,
      mint: B,
      destination: C,
      authority: D,
      tokenAmount: amountOf('100', '1'),
      feeAmount: amountOf('1', '0.01'),
    })
    expect(
      token.createWithdrawWithheldTokensFromAccountsInstruction(a, b, c, [], [d, e]),
      'withdrawWithheldTokensFromAccounts',
      {
        mint: A,
        feeRecipient: B,
        withdrawWithheldAuthority: C,
        sourceAccounts: [D, E],
      },
    )
    expect(token.createHarvestWithheldTokensToMintInstruction(a, [b]), 'harvestWithheldTokensToMint', {
      mint: A,
      sourceAccounts: [B],
    })
    expect(
      token.createInitializeDefaultAccountStateInstruction(a, token.AccountState.Frozen, T22),
      'initializeDefaultAccountState',
      {
        mint: A,
        accountState: 'frozen',
      },
    )
    expect(
      token.createUpdateDefaultAccountStateInstruction(a, token.AccountState.Initialized, b),
      'updateDefaultAccountState',
      {
        mint: A,
        accountState: 'initialized',
        freezeAuthority: B,
      },
    )
    expect(token.createEnableRequiredMemoTransfersInstruction(a, b), 'enableRequiredMemoTransfers', {
      account: A,
      owner: B,
    })
    expect(token.createDisableCpiGuardInstruction(a, b), 'disableCpiGuard', { account: A, owner: B })
    expect(token.createInitializeInterestBearingMintInstruction(a, b, -7, T22), 'initializeInterestBearingConfig', {
      mint: A,
      rateAuthority: B,
      rate: -7,
    })
    expect(token.createInitializePermanentDelegateInstruction(a, b, T22), 'initializePermanentDelegate', {
      mint: A,
      delegate: B,
    })
    expect(token.createInitializeTransferHookInstruction(a, b, c, T22), 'initializeTransferHook', {
      mint: A,
      authority: B,
      programId: C,
    })
    expect(token.createUpdateMetadataPointerInstruction(a, b, c), 'updateMetadataPointer', {
      mint: A,
      authority: B,
      metadataAddress: C,
    })
    expect(token.createInitializeNonTransferableMintInstruction(a, T22), 'initializeNonTransferableMint', { mint: A })
    expect(
      token.createReallocateInstruction(
        a,
        b,
        [token.ExtensionType.MemoTransfer, token.ExtensionType.TransferFeeAmount],
        c,
      ),
      'reallocate',
      {
        account: A,
        payer: B,
        systemProgram: web3.SystemProgram.programId.toBase58(),
        owner: C,
        extensionTypes: ['memoTransfer', 'transferFeeAmount'],
      },
    )
    expect(token.createPauseInstruction(a, b), 'pause', { mint: A, authority: B })
    expect(token.createUpdateMultiplierDataInstruction(a, b, 1.5, 60n), 'updateMultiplier', {
      mint: A,
      authority: B,
      newMultiplier: '1.5',
      newMultiplierTimestamp: 60,
    })
  })

  it('in a batch are shown one by one', () => {
    const first = token.createTransferInstruction(a, b, c, 5)
    const second = token.createSyncNativeInstruction(d)
    const data = Buffer.concat([
      Buffer.of(255, 3, first.data.length),
      first.data,
      Buffer.of(1, second.data.length),
      second.data,
    ])
    const batch = new web3.TransactionInstruction({
      programId: token.TOKEN_PROGRAM_ID,
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
