import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import * as token from '@solana/spl-token'
import * as web3 from '@solana/web3.js'
import { encodeBase58 } from '../../solana/base58.ts'
import { writeJson } from './json.ts'
import { encodeParsedInstruction } from './parsed-instructions.ts'
import { MEMO_V1, MEMO_V3, MEMO_V4 } from './program-ids.ts'

const key = (fill: number) => new web3.PublicKey(new Uint8Array(32).fill(fill))
const name = (fill: number) => key(fill).toBase58()
const [a, b, c, d, e] = [1, 2, 3, 4, 5].map(key) as [
  web3.PublicKey,
  web3.PublicKey,
  web3.PublicKey,
  web3.PublicKey,
  web3.PublicKey,
]
const [A, B, C, D, E] = [1, 2, 3, 4, 5].map(name) as [string, string, string, string, string]
const RENT = web3.SYSVAR_RENT_PUBKEY.toBase58()
const CLOCK = web3.SYSVAR_CLOCK_PUBKEY.toBase58()
const HASHES = web3.SYSVAR_RECENT_BLOCKHASHES_PUBKEY.toBase58()

type Shown = { program?: string; parsed?: { type: string; info: Record<string, unknown> } | string; data?: string }

/** The instruction as a library builds it, through the parser. */
function show(instruction: web3.TransactionInstruction): Shown {
  const keys = [...instruction.keys.map(({ pubkey }) => pubkey.toBase58()), instruction.programId.toBase58()]
  const compiled = {
    programIdIndex: keys.length - 1,
    accounts: Uint8Array.from(instruction.keys, (_key, index) => index),
    data: instruction.data,
  }
  return JSON.parse(writeJson(encodeParsedInstruction(compiled, keys, 1))) as Shown
}

function expectParsed(
  instruction: web3.TransactionInstruction,
  program: string,
  type: string,
  info: Record<string, unknown>,
): void {
  const shown = show(instruction)
  assert.equal(shown.program, program, type)
  assert.deepEqual(shown.parsed, { type, info }, type)
}

const SYSTEM = web3.SystemProgram

describe('System instructions', () => {
  it('are parsed as the library builds them', () => {
    const expect = (instruction: web3.TransactionInstruction, type: string, info: Record<string, unknown>) =>
      expectParsed(instruction, 'system', type, info)
    expect(SYSTEM.transfer({ fromPubkey: a, toPubkey: b, lamports: 9n }), 'transfer', {
      source: A,
      destination: B,
      lamports: 9,
    })
    expect(
      SYSTEM.createAccount({ fromPubkey: a, newAccountPubkey: b, lamports: 1, space: 2, programId: c }),
      'createAccount',
      { source: A, newAccount: B, lamports: 1, space: 2, owner: C },
    )
    expect(SYSTEM.assign({ accountPubkey: a, programId: c }), 'assign', { account: A, owner: C })
    expect(SYSTEM.allocate({ accountPubkey: a, space: 7 }), 'allocate', { account: A, space: 7 })
    expect(
      SYSTEM.createAccountWithSeed({
        fromPubkey: a,
        newAccountPubkey: b,
        basePubkey: c,
        seed: 'sä',
        lamports: 1,
        space: 2,
        programId: d,
      }),
      'createAccountWithSeed',
      { source: A, newAccount: B, base: C, seed: 'sä', lamports: 1, space: 2, owner: D },
    )
    expect(
      SYSTEM.allocate({ accountPubkey: a, basePubkey: b, seed: 's', space: 3, programId: c }),
      'allocateWithSeed',
      {
        account: A,
        base: B,
        seed: 's',
        space: 3,
        owner: C,
      },
    )
    expect(SYSTEM.assign({ accountPubkey: a, basePubkey: b, seed: 's', programId: c }), 'assignWithSeed', {
      account: A,
      base: B,
      seed: 's',
      owner: C,
    })
    expect(
      SYSTEM.transfer({ fromPubkey: a, basePubkey: b, toPubkey: c, lamports: 4, seed: 's', programId: d }),
      'transferWithSeed',
      {
        source: A,
        sourceBase: B,
        destination: C,
        lamports: 4,
        sourceSeed: 's',
        sourceOwner: D,
      },
    )
    expect(SYSTEM.nonceAdvance({ noncePubkey: a, authorizedPubkey: b }), 'advanceNonce', {
      nonceAccount: A,
      recentBlockhashesSysvar: HASHES,
      nonceAuthority: B,
    })
    expect(SYSTEM.nonceInitialize({ noncePubkey: a, authorizedPubkey: b }), 'initializeNonce', {
      nonceAccount: A,
      recentBlockhashesSysvar: HASHES,
      rentSysvar: RENT,
      nonceAuthority: B,
    })
    expect(SYSTEM.nonceAuthorize({ noncePubkey: a, authorizedPubkey: b, newAuthorizedPubkey: c }), 'authorizeNonce', {
      nonceAccount: A,
      nonceAuthority: B,
      newAuthorized: C,
    })
    expect(
      SYSTEM.nonceWithdraw({ noncePubkey: a, authorizedPubkey: b, toPubkey: c, lamports: 5 }),
      'withdrawFromNonce',
      {
        nonceAccount: A,
        destination: C,
        recentBlockhashesSysvar: HASHES,
        rentSysvar: RENT,
        nonceAuthority: B,
        lamports: 5,
      },
    )
  })

  it('print u64 exactly', () => {
    const instruction = SYSTEM.transfer({ fromPubkey: a, toPubkey: b, lamports: 18446744073709551615n })
    const compiled = { programIdIndex: 2, accounts: Uint8Array.of(0, 1), data: instruction.data }
    assert.match(
      writeJson(encodeParsedInstruction(compiled, [A, B, SYSTEM.programId.toBase58()], 1)),
      /"lamports":18446744073709551615\}/,
    )
  })

  it('stay unparsed when accounts are missing or data are cut', () => {
    const instruction = SYSTEM.transfer({ fromPubkey: a, toPubkey: b, lamports: 9 })
    const cut = new web3.TransactionInstruction({ ...instruction, data: instruction.data.subarray(0, 11) })
    assert.deepEqual(show(cut), {
      programId: SYSTEM.programId.toBase58(),
      accounts: [A, B],
      data: encodeBase58(cut.data),
      stackHeight: 1,
    })
    const alone = new web3.TransactionInstruction({ ...instruction, keys: instruction.keys.slice(0, 1) })
    assert.equal(show(alone).parsed, undefined)
    assert.equal(
      show(new web3.TransactionInstruction({ programId: SYSTEM.programId, keys: [], data: Buffer.alloc(4) })).parsed,
      undefined,
    )
  })
})

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
        systemProgram: SYSTEM.programId.toBase58(),
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

describe('other programs', () => {
  it('are parsed: associated tokens, memos, lookup tables', () => {
    const info = {
      source: A,
      account: B,
      wallet: C,
      mint: D,
      systemProgram: SYSTEM.programId.toBase58(),
      tokenProgram: token.TOKEN_PROGRAM_ID.toBase58(),
    }
    expectParsed(
      token.createAssociatedTokenAccountInstruction(a, b, c, d),
      'spl-associated-token-account',
      'create',
      info,
    )
    expectParsed(
      token.createAssociatedTokenAccountIdempotentInstruction(a, b, c, d),
      'spl-associated-token-account',
      'createIdempotent',
      info,
    )
    for (const program of [MEMO_V1, MEMO_V3, MEMO_V4]) {
      const memo = (data: Buffer) =>
        new web3.TransactionInstruction({ programId: new web3.PublicKey(program), keys: [], data })
      assert.deepEqual(show(memo(Buffer.from('🦖'))), {
        program: 'spl-memo',
        programId: program,
        parsed: '🦖',
        stackHeight: 1,
      })
      assert.equal(show(memo(Buffer.of(0x80))).data, encodeBase58(Uint8Array.of(0x80)))
    }
    const [create] = web3.AddressLookupTableProgram.createLookupTable({ authority: b, payer: c, recentSlot: 9 })
    const table = create.keys[0]?.pubkey.toBase58()
    const shown = show(create).parsed as { type: string; info: Record<string, unknown> }
    assert.equal(shown.type, 'createLookupTable')
    assert.equal(shown.info['lookupTableAccount'], table)
    assert.equal(shown.info['recentSlot'], 9)
    expectParsed(
      web3.AddressLookupTableProgram.extendLookupTable({ lookupTable: a, authority: b, payer: c, addresses: [d, e] }),
      'address-lookup-table',
      'extendLookupTable',
      {
        lookupTableAccount: A,
        lookupTableAuthority: B,
        payerAccount: C,
        systemProgram: SYSTEM.programId.toBase58(),
        newAddresses: [D, E],
      },
    )
    expectParsed(
      web3.AddressLookupTableProgram.closeLookupTable({ lookupTable: a, authority: b, recipient: c }),
      'address-lookup-table',
      'closeLookupTable',
      { lookupTableAccount: A, lookupTableAuthority: B, recipient: C },
    )
  })

  it('are parsed: stakes and votes', () => {
    const stake = (transaction: web3.Transaction | web3.TransactionInstruction) =>
      'instructions' in transaction ? (transaction.instructions.at(-1) as web3.TransactionInstruction) : transaction
    const lockup = new web3.Lockup(3, 4, e)
    expectParsed(
      stake(web3.StakeProgram.initialize({ stakePubkey: a, authorized: new web3.Authorized(b, c), lockup })),
      'stake',
      'initialize',
      {
        stakeAccount: A,
        rentSysvar: RENT,
        authorized: { staker: B, withdrawer: C },
        lockup: { unixTimestamp: 3, epoch: 4, custodian: E },
      },
    )
    expectParsed(
      stake(
        web3.StakeProgram.authorize({
          stakePubkey: a,
          authorizedPubkey: b,
          newAuthorizedPubkey: c,
          stakeAuthorizationType: web3.StakeAuthorizationLayout.Withdrawer,
          custodianPubkey: d,
        }),
      ),
      'stake',
      'authorize',
      { stakeAccount: A, clockSysvar: CLOCK, authority: B, custodian: D, newAuthority: C, authorityType: 'Withdrawer' },
    )
    expectParsed(
      stake(web3.StakeProgram.delegate({ stakePubkey: a, authorizedPubkey: b, votePubkey: c })),
      'stake',
      'delegate',
      {
        stakeAccount: A,
        voteAccount: C,
        clockSysvar: CLOCK,
        stakeHistorySysvar: web3.SYSVAR_STAKE_HISTORY_PUBKEY.toBase58(),
        stakeConfigAccount: web3.STAKE_CONFIG_ID.toBase58(),
        stakeAuthority: B,
      },
    )
    expectParsed(stake(web3.StakeProgram.deactivate({ stakePubkey: a, authorizedPubkey: b })), 'stake', 'deactivate', {
      stakeAccount: A,
      clockSysvar: CLOCK,
      stakeAuthority: B,
    })
    expectParsed(
      stake(web3.StakeProgram.withdraw({ stakePubkey: a, authorizedPubkey: b, toPubkey: c, lamports: 6 })),
      'stake',
      'withdraw',
      {
        stakeAccount: A,
        destination: C,
        clockSysvar: CLOCK,
        stakeHistorySysvar: web3.SYSVAR_STAKE_HISTORY_PUBKEY.toBase58(),
        withdrawAuthority: B,
        lamports: 6,
      },
    )
    const voteInit = new web3.VoteInit(a, b, c, 7)
    expectParsed(web3.VoteProgram.initializeAccount({ votePubkey: d, nodePubkey: a, voteInit }), 'vote', 'initialize', {
      voteAccount: D,
      rentSysvar: RENT,
      clockSysvar: CLOCK,
      node: A,
      authorizedVoter: B,
      authorizedWithdrawer: C,
      commission: 7,
    })
    expectParsed(
      stake(web3.VoteProgram.withdraw({ votePubkey: a, authorizedWithdrawerPubkey: b, lamports: 3, toPubkey: c })),
      'vote',
      'withdraw',
      { voteAccount: A, destination: C, withdrawAuthority: B, lamports: 3 },
    )
  })

  it('of a validator vote by tower sync', () => {
    const hash = Buffer.alloc(32, 9)
    const data = Buffer.concat([
      Buffer.of(14, 0, 0, 0),
      Buffer.of(100, 0, 0, 0, 0, 0, 0, 0),
      Buffer.of(2, 1, 31, 0x81, 0x01, 1),
      hash,
      Buffer.of(1, 5, 0, 0, 0, 0, 0, 0, 0),
      hash,
    ])
    const keys = [a, b].map((pubkey) => ({ pubkey, isSigner: false, isWritable: false }))
    expectParsed(
      new web3.TransactionInstruction({ programId: web3.VOTE_PROGRAM_ID, keys, data }),
      'vote',
      'towersync',
      {
        voteAccount: A,
        voteAuthority: B,
        towerSync: {
          lockouts: [
            { slot: 101, confirmation_count: 31 },
            { slot: 230, confirmation_count: 1 },
          ],
          root: 100,
          hash: encodeBase58(hash),
          timestamp: 5,
          blockId: encodeBase58(hash),
        },
      },
    )
  })
})
