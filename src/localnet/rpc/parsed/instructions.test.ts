import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import {
  A,
  a,
  B,
  b,
  C,
  CLOCK,
  c,
  D,
  d,
  E,
  e,
  expectParsed,
  HASHES,
  RENT,
  show,
} from '../../../../test/support/solana/parsed-instruction.ts'
import { tokenInstruction } from '../../../../test/support/solana/token-instructions.ts'
import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { MEMO_PROGRAM, MEMO_PROGRAM_V4, TOKEN_PROGRAM } from '../../chain/addresses.ts'
import { writeJson } from '../json.ts'
import { encodeParsedInstruction } from './instructions.ts'
import { MEMO_PROGRAM_V1 } from './program-ids.ts'

const SYSTEM = web3.SystemProgram

describe('System instructions', () => {
  it('are parsed as built by the client library', () => {
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

  it('stay unparsed when accounts are missing or data is truncated', () => {
    const instruction = SYSTEM.transfer({ fromPubkey: a, toPubkey: b, lamports: 9 })
    const cut = new web3.TransactionInstruction({
      programId: SYSTEM.programId,
      keys: instruction.keys,
      data: instruction.data.subarray(0, 11),
    })
    assert.deepEqual(show(cut), {
      programId: SYSTEM.programId.toBase58(),
      accounts: [A, B],
      data: encodeBase58(cut.data),
      stackHeight: 1,
    })
    const alone = new web3.TransactionInstruction({
      programId: SYSTEM.programId,
      keys: instruction.keys.slice(0, 1),
      data: instruction.data,
    })
    assert.equal(show(alone).parsed, undefined)
    assert.equal(
      show(new web3.TransactionInstruction({ programId: SYSTEM.programId, keys: [], data: Buffer.alloc(4) })).parsed,
      undefined,
    )
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
      tokenProgram: TOKEN_PROGRAM,
    }
    expectParsed(tokenInstruction('associatedTokenAccount'), 'spl-associated-token-account', 'create', info)
    expectParsed(
      tokenInstruction('associatedTokenAccountIdempotent'),
      'spl-associated-token-account',
      'createIdempotent',
      info,
    )
    for (const program of [MEMO_PROGRAM_V1, MEMO_PROGRAM, MEMO_PROGRAM_V4]) {
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

  it('are parsed: vote accounts of version 4', () => {
    const u16 = (value: number) => Buffer.of(value & 0xff, value >> 8)
    const [bls, proof] = [Buffer.alloc(48, 7), Buffer.alloc(96, 8)]
    const expectVote = (accounts: web3.PublicKey[], data: Buffer[], type: string, info: Record<string, unknown>) => {
      const keys = accounts.map((pubkey) => ({ pubkey, isSigner: false, isWritable: false }))
      const instruction = { programId: web3.VOTE_PROGRAM_ID, keys, data: Buffer.concat(data) }
      expectParsed(new web3.TransactionInstruction(instruction), 'vote', type, info)
    }
    const head = [Buffer.of(16, 0, 0, 0), b.toBuffer(), c.toBuffer(), bls, proof, d.toBuffer()]
    const initialized = {
      voteAccount: A,
      node: B,
      authorizedVoter: C,
      authorizedWithdrawer: D,
      inflationRewardsCommissionBps: 1234,
      inflationRewardsCollector: E,
      blockRevenueCommissionBps: 5678,
      blockRevenueCollector: A,
    }
    expectVote([a, b], [...head, u16(1234), e.toBuffer(), u16(5678), a.toBuffer()], 'initializeV2', initialized)
    expectVote([a, b, e, a], [...head, u16(1234), u16(5678)], 'initializeV2', initialized)
    expectVote([a, b, c], [Buffer.of(17, 0, 0, 0, 1, 0, 0, 0)], 'updateCommissionCollector', {
      voteAccount: A,
      newCollector: B,
      withdrawAuthority: C,
      commissionKind: 'BlockRevenue',
    })
    expectVote([a, b], [Buffer.of(18, 0, 0, 0), u16(300), Buffer.alloc(4)], 'updateCommissionBps', {
      voteAccount: A,
      withdrawAuthority: B,
      commissionBps: 300,
      commissionKind: 'InflationRewards',
    })
    expectVote([a, b], [Buffer.of(19, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0)], 'depositDelegatorRewards', {
      voteAccount: A,
      source: B,
      deposit: 9,
    })
    expectVote([a, b, c], [Buffer.of(1, 0, 0, 0), d.toBuffer(), Buffer.of(2, 0, 0, 0), bls, proof], 'authorize', {
      voteAccount: A,
      clockSysvar: B,
      authority: C,
      newAuthority: D,
      authorityType: { VoterWithBLS: { bls_pubkey: [...bls], bls_proof_of_possession: [...proof] } },
    })
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
