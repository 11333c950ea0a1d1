import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import {
  account,
  bytes,
  f64,
  KEY_A,
  KEY_B,
  key,
  NONE,
  parsed,
  u16,
  u32,
  u64,
} from '../../../../test/support/solana/account-bytes.ts'
import { decodeBase58, encodeBase58 } from '../../../solana/crypto/base58.ts'
import * as address from '../../chain/addresses.ts'
import { encodeAccount } from '../encode-account.ts'
import { writeJson } from '../json.ts'
import * as id from './program-ids.ts'

const mintData = bytes(u32(1), key(1), u64(1_690_580_887_590_527_729n), 6, 1, u32(0), key(0))
const tokenData = (state: number, tail = bytes(u32(0), u64(0), u64(0), u32(0), key(0))) =>
  bytes(key(2), key(3), u64(9_999_999_779_500_000n), u32(0), key(0), state, tail)

describe('jsonParsed accounts', () => {
  const mint = account(mintData, address.TOKEN_PROGRAM)
  const readAccount = (address: string) => (address === KEY_B ? mint : null)

  it('parses mints, token accounts and multisigs', () => {
    assert.deepEqual(parsed(mintData, address.TOKEN_PROGRAM), {
      type: 'mint',
      info: {
        mintAuthority: KEY_A,
        supply: '1690580887590527729',
        decimals: 6,
        isInitialized: true,
        freezeAuthority: null,
      },
    })
    assert.deepEqual(parsed(tokenData(1), address.TOKEN_PROGRAM, { readAccount }), {
      type: 'account',
      info: {
        mint: KEY_B,
        owner: encodeBase58(key(3)),
        tokenAmount: {
          amount: '9999999779500000',
          decimals: 6,
          uiAmount: 9999999779.5,
          uiAmountString: '9999999779.5',
        },
        state: 'initialized',
        isNative: false,
      },
    })
    const delegated = tokenData(2, bytes(u32(1), u64(7), u64(5), u32(1), key(4)))
      .fill(1, 72, 73)
      .fill(9, 76, 108)
    const { info } = parsed(delegated, address.TOKEN_2022_PROGRAM, { readAccount }) as { info: Record<string, unknown> }
    assert.equal(info['state'], 'frozen')
    assert.equal(info['isNative'], true)
    assert.equal(info['delegate'], encodeBase58(key(9)))
    assert.equal(info['closeAuthority'], encodeBase58(key(4)))
    assert.deepEqual((info['delegatedAmount'] as { amount: string }).amount, '5')
    assert.deepEqual((info['rentExemptReserve'] as { amount: string }).amount, '7')
    const multisig = bytes(2, 2, 1, key(5), key(6), new Uint8Array(9 * 32))
    assert.deepEqual(parsed(multisig, address.TOKEN_PROGRAM), {
      type: 'multisig',
      info: {
        numRequiredSigners: 2,
        numValidSigners: 2,
        isInitialized: true,
        signers: [encodeBase58(key(5)), encodeBase58(key(6))],
      },
    })
  })

  it('falls back to base64 without the mint, uninitialized, or malformed', () => {
    for (const data of [
      tokenData(1),
      tokenData(0),
      tokenData(3),
      mintData.subarray(0, 81),
      Buffer.alloc(82),
      Buffer.alloc(355),
    ]) {
      assert.deepEqual(parsed(data, address.TOKEN_PROGRAM), [data.toString('base64'), 'base64'])
    }
    assert.ok(Array.isArray(parsed(mintData, encodeBase58(key(8)))))
  })

  it('parses Token-2022 extensions and marks unparseable ones', () => {
    const tlv = (type: number, data: Uint8Array) => bytes(u16(type), u16(data.length), data)
    const metadata = bytes(
      key(1),
      key(2),
      u32(2),
      Buffer.from('Na'),
      u32(1),
      Buffer.from('S'),
      u32(0),
      u32(1),
      u32(1),
      Buffer.from('k'),
      u32(1),
      Buffer.from('v'),
    )
    const fee = bytes(u64(457), u64(3906250000000000000n), u16(690))
    const extended = bytes(
      mintData,
      new Uint8Array(83),
      1,
      tlv(1, bytes(key(1), key(0), u64(4), fee, fee)),
      tlv(9, new Uint8Array(0)),
      tlv(10, bytes(key(1), u64(100), u16(-5), u64(200), u16(7))),
      tlv(19, metadata),
      tlv(25, bytes(key(0), f64(1.5), u64(9), f64(2))),
      tlv(3, new Uint8Array(31)),
      tlv(999, new Uint8Array(2)),
    )
    const { info } = parsed(extended, address.TOKEN_2022_PROGRAM) as { info: { extensions: unknown[] } }
    const shownFee = { epoch: 457, maximumFee: 3906250000000000000, transferFeeBasisPoints: 690 }
    assert.deepEqual(info.extensions, [
      {
        extension: 'transferFeeConfig',
        state: {
          transferFeeConfigAuthority: KEY_A,
          withdrawWithheldAuthority: null,
          withheldAmount: 4,
          olderTransferFee: shownFee,
          newerTransferFee: shownFee,
        },
      },
      { extension: 'nonTransferable' },
      {
        extension: 'interestBearingConfig',
        state: {
          rateAuthority: KEY_A,
          initializationTimestamp: 100,
          preUpdateAverageRate: -5,
          lastUpdateTimestamp: 200,
          currentRate: 7,
        },
      },
      {
        extension: 'tokenMetadata',
        state: {
          updateAuthority: KEY_A,
          mint: KEY_B,
          name: 'Na',
          symbol: 'S',
          uri: '',
          additionalMetadata: [['k', 'v']],
        },
      },
      {
        extension: 'scaledUiAmountConfig',
        state: { authority: null, multiplier: '1.5', newMultiplierEffectiveTimestamp: 9, newMultiplier: '2' },
      },
      { extension: 'unparseableExtension' },
      { extension: 'unparseableExtension' },
    ])
    assert.match(
      writeJson(
        encodeAccount(KEY_A, account(extended, address.TOKEN_2022_PROGRAM), { encoding: 'jsonParsed', readAccount }),
      ),
      /"maximumFee":3906250000000000000,/,
    )
  })

  it('parses nonces, lookup tables and programs', () => {
    const nonce = bytes(u32(1), u32(1), key(1), key(2), u64(5000))
    assert.deepEqual(parsed(nonce, address.SYSTEM_PROGRAM), {
      type: 'initialized',
      info: { authority: KEY_A, blockhash: KEY_B, feeCalculator: { lamportsPerSignature: '5000' } },
    })
    assert.ok(Array.isArray(parsed(new Uint8Array(80), address.SYSTEM_PROGRAM)))
    const table = bytes(u32(1), u64(-1), u64(7), 20, 1, key(1), u16(0), key(2), key(3))
    assert.deepEqual(parsed(table, address.LOOKUP_TABLE_PROGRAM), {
      type: 'lookupTable',
      info: {
        deactivationSlot: '18446744073709551615',
        lastExtendedSlot: '7',
        lastExtendedSlotStartIndex: 20,
        authority: KEY_A,
        addresses: [KEY_B, encodeBase58(key(3))],
      },
    })
    assert.deepEqual(parsed(new Uint8Array(56), address.LOOKUP_TABLE_PROGRAM), { type: 'uninitialized' })
    assert.deepEqual(parsed(bytes(u32(2), key(1)), address.UPGRADEABLE_LOADER), {
      type: 'program',
      info: { programData: KEY_A },
    })
    assert.deepEqual(parsed(bytes(u32(3), u64(4), 1, key(1), 9, 9), address.UPGRADEABLE_LOADER), {
      type: 'programData',
      info: { slot: 4, authority: KEY_A, data: ['CQk=', 'base64'] },
    })
    assert.deepEqual(parsed(bytes(u32(1), 0, 7), address.UPGRADEABLE_LOADER), {
      type: 'buffer',
      info: { authority: null, data: ['Bw==', 'base64'] },
    })
  })

  it('parses stakes and votes', () => {
    const meta = bytes(u64(2_282_880), key(1), key(2), u64(3), u64(4), key(0))
    const stake = bytes(u32(2), meta, key(5), u64(8_007_935), u64(386), u64(471), f64(0.25), u64(169_965_713), 0)
    const shownMeta = {
      rentExemptReserve: '2282880',
      authorized: { staker: KEY_A, withdrawer: KEY_B },
      lockup: { unixTimestamp: 3, epoch: 4, custodian: NONE },
    }
    assert.deepEqual(parsed(stake, address.STAKE_PROGRAM), {
      type: 'delegated',
      info: {
        meta: shownMeta,
        stake: {
          delegation: {
            voter: encodeBase58(key(5)),
            stake: '8007935',
            activationEpoch: '386',
            deactivationEpoch: '471',
          },
          creditsObserved: 169_965_713,
        },
      },
    })
    assert.deepEqual(parsed(bytes(u32(1), meta), address.STAKE_PROGRAM), {
      type: 'initialized',
      info: { meta: shownMeta, stake: null },
    })
    assert.deepEqual(parsed(u32(0), address.STAKE_PROGRAM), { type: 'uninitialized' })

    const votes = bytes(u64(1), 3, u64(283), u32(31))
    const tail = bytes(
      u64(1),
      u64(656),
      key(4),
      new Uint8Array(32 * 48),
      u64(31),
      1,
      u64(1),
      u64(5),
      u64(11),
      u64(9),
      u64(283),
      u64(1_709_828_565),
    )
    const vote = parsed(
      bytes(u32(2), key(1), key(2), 50, votes, 1, u64(252), tail, new Uint8Array(100)),
      address.VOTE_PROGRAM,
      {},
      KEY_B,
    )
    assert.deepEqual(vote, {
      type: 'vote',
      info: {
        nodePubkey: KEY_A,
        authorizedWithdrawer: KEY_B,
        inflationRewardsCollector: KEY_B,
        blockRevenueCollector: KEY_A,
        inflationRewardsCommissionBps: 5000,
        blockRevenueCommissionBps: 10_000,
        pendingDelegatorRewards: '0',
        blsPubkeyCompressed: null,
        votes: [{ latency: 3, slot: 283, confirmationCount: 31 }],
        rootSlot: 252,
        authorizedVoters: [{ epoch: 656, authorizedVoter: encodeBase58(key(4)) }],
        epochCredits: [{ epoch: 5, credits: '11', previousCredits: '9' }],
        lastTimestamp: { slot: 283, timestamp: 1_709_828_565 },
        commission: 50,
        priorVoters: [],
      },
    })
    const v4 = bytes(
      u32(3),
      key(1),
      key(2),
      key(3),
      key(4),
      u16(250),
      u16(1000),
      u64(7),
      0,
      u64(0),
      0,
      u64(0),
      u64(0),
      u64(0),
      u64(0),
    )
    const { info } = parsed(v4, address.VOTE_PROGRAM) as { info: Record<string, unknown> }
    assert.equal(info['commission'], 2)
    assert.equal(info['inflationRewardsCommissionBps'], 250)
    assert.equal(info['pendingDelegatorRewards'], '7')
    assert.ok(Array.isArray(parsed(bytes(u32(0), new Uint8Array(3000)), address.VOTE_PROGRAM)))
  })

  it('parses sysvars and config accounts', () => {
    const sysvar = (data: Uint8Array, at: string) => parsed(data, address.SYSVAR_OWNER, {}, at)
    assert.deepEqual(sysvar(bytes(u64(1), u64(2), u64(3), u64(4), u64(5)), id.SYSVAR.clock), {
      type: 'clock',
      info: { slot: 1, epochStartTimestamp: 2, epoch: 3, leaderScheduleEpoch: 4, unixTimestamp: 5 },
    })
    assert.deepEqual(sysvar(bytes(u64(3480), f64(2), 50), id.SYSVAR.rent), {
      type: 'rent',
      info: { lamportsPerByte: '6960' },
    })
    assert.ok(Array.isArray(sysvar(bytes(u64(3480), f64(Number.NaN), 50), id.SYSVAR.rent)))
    assert.deepEqual(sysvar(bytes(u64(1), u64(9), key(1)), id.SYSVAR.slotHashes), {
      type: 'slotHashes',
      info: [{ slot: 9, hash: KEY_A }],
    })
    assert.deepEqual(sysvar(bytes(u64(1), key(1), u64(5000)), id.SYSVAR.recentBlockhashes), {
      type: 'recentBlockhashes',
      info: [{ blockhash: KEY_A, feeCalculator: { lamportsPerSignature: '5000' } }],
    })
    assert.deepEqual(sysvar(bytes(1, u64(1), u64(0b101), u64(64), u64(3)), id.SYSVAR.slotHistory), {
      type: 'slotHistory',
      info: { bits: `101${'0'.repeat(61)}`, nextSlot: 3 },
    })
    assert.deepEqual(sysvar(bytes(u64(8), u64(8), 0, u64(0), u64(0)), id.SYSVAR.epochSchedule), {
      type: 'epochSchedule',
      info: { slotsPerEpoch: 8, leaderScheduleSlotOffset: 8, warmup: false, firstNormalEpoch: 0, firstNormalSlot: 0 },
    })
    assert.deepEqual(sysvar(bytes(u64(1), u64(2), key(1), u64(3), u64(0), u64(4), u64(5), 1), id.SYSVAR.epochRewards), {
      type: 'epochRewards',
      info: {
        distributionStartingBlockHeight: 1,
        numPartitions: 2,
        parentBlockhash: KEY_A,
        totalPoints: '3',
        totalRewards: '4',
        distributedRewards: '5',
        active: true,
      },
    })
    // A list length larger than the data.
    assert.ok(Array.isArray(sysvar(bytes(u64(-1), key(1)), id.SYSVAR.slotHashes)))

    const info = Buffer.from('{"name":"HoldTheNode"}')
    const validator = bytes(
      2,
      decodeBase58(id.VALIDATOR_INFO),
      0,
      key(1),
      1,
      u64(info.length),
      info,
      new Uint8Array(20),
    )
    assert.deepEqual(parsed(validator, address.CONFIG_PROGRAM), {
      type: 'validatorInfo',
      info: {
        keys: [
          { pubkey: id.VALIDATOR_INFO, signer: false },
          { pubkey: KEY_A, signer: true },
        ],
        configData: { name: 'HoldTheNode' },
      },
    })
    // Not parsed by Agave any more.
    assert.deepEqual(parsed(bytes(0, f64(0.25), 12), address.CONFIG_PROGRAM, {}, id.STAKE_CONFIG), [
      'AAAAAAAAANA/DA==',
      'base64',
    ])
  })
})
