import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { after, before, describe, it } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import { startTestServer, type TestServer } from '../../../../test/support/solana/rpc-server.ts'
import { decodeBase58, encodeBase58 } from '../../../solana/crypto/base58.ts'
import { STAKE_PROGRAM, SYSTEM_PROGRAM, TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../../chain/addresses.ts'
import type { Account } from '../../chain/model.ts'
import { SYSVAR } from '../parsed/program-ids.ts'

type Context<T> = { context: { apiVersion: string; slot: number }; value: T }
type Shown = { data: unknown; lamports: number; owner: string; rentEpoch: bigint; space: number; executable: boolean }
type Keyed = { pubkey: string; account: Shown }

const key = (fill: number) => encodeBase58(new Uint8Array(32).fill(fill))
const u64 = (value: bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}
const keyBytes = (fill: number) => Buffer.alloc(32, fill)
const account = (owner: string, data: Uint8Array, lamports = 5_000_000n): Account => ({
  lamports,
  owner,
  data,
  executable: false,
  rentEpoch: 18446744073709551615n,
})

const [WALLET, MINT, TOKEN_A, TOKEN_B, TEXT, PROGRAM, OWNED_A, OWNED_B, LOCKED] = [
  10, 20, 31, 30, 40, 50, 61, 60, 70,
].map(key) as [string, string, string, string, string, string, string, string, string]
const UNKNOWN = key(99)
/** A token account whose mint does not exist cannot be parsed. */
const ORPHAN = key(33)
const mint = Buffer.concat([Buffer.of(1, 0, 0, 0), keyBytes(10), u64(1_000_000n), Buffer.of(6, 1), Buffer.alloc(36)])
const tokenAccount = (amount: bigint, delegate?: number, mintFill = 20) => {
  const data = Buffer.alloc(165)
  keyBytes(mintFill).copy(data, 0)
  keyBytes(10).copy(data, 32)
  u64(amount).copy(data, 64)
  if (delegate !== undefined) {
    data[72] = 1
    keyBytes(delegate).copy(data, 76)
  }
  data[108] = 1
  return data
}
const lockedStake = Buffer.concat([
  Buffer.of(1, 0, 0, 0),
  u64(1n),
  keyBytes(1),
  keyBytes(2),
  u64(1n << 40n),
  u64(0n),
  keyBytes(3),
])

const FIXTURES: [string, Account][] = [
  [TEXT, account(SYSTEM_PROGRAM, Buffer.from('test data'))],
  [MINT, account(TOKEN_PROGRAM, mint)],
  [TOKEN_A, account(TOKEN_PROGRAM, tokenAccount(300_000n, 11))],
  [TOKEN_B, account(TOKEN_PROGRAM, tokenAccount(700_000n))],
  [ORPHAN, account(TOKEN_PROGRAM, tokenAccount(5n, 12, 98))],
  [key(21), account(TOKEN_2022_PROGRAM, mint)],
  ...[81, 83, 82].map((fill): [string, Account] => [
    key(fill),
    account(TOKEN_2022_PROGRAM, tokenAccount(500n, undefined, 21).fill(13, 32, 64)),
  ]),
  [OWNED_A, account(PROGRAM, Buffer.from('gpa one'))],
  [OWNED_B, account(PROGRAM, Buffer.from('gpa two!'))],
  [LOCKED, account(STAKE_PROGRAM, lockedStake, 77n)],
]

describe('account methods', () => {
  let server: TestServer
  before(async () => {
    server = await startTestServer({ commitment: { confirmedSlots: 1, finalizedSlots: 2 } }, { fixtures: FIXTURES })
    await server.pass(3)
  })
  after(() => server[Symbol.asyncDispose]())

  const BAD_KEY = [-32602, 'Invalid param: WrongSize'] as const
  const NOT_BASE58 = [-32602, 'Invalid param: Invalid'] as const
  const LATE = { minContextSlot: 9223372036854775807n }

  it('getAccountInfo', async () => {
    const { context, value } = await server.call<Context<Shown>>('getAccountInfo', TEXT)
    assert.deepEqual(context, { apiVersion: '4.2.1', slot: 1 })
    assert.deepEqual(value, {
      data: '2Uw1bpnsXxu3e',
      executable: false,
      lamports: 5_000_000,
      owner: SYSTEM_PROGRAM,
      rentEpoch: 18446744073709551615n,
      space: 9,
    })
    assert.equal((await server.call<Context<null>>('getAccountInfo', UNKNOWN)).value, null)
    const sliced = await server.call<Context<Shown>>('getAccountInfo', TEXT, {
      encoding: 'base64',
      dataSlice: { offset: 0, length: 5 },
    })
    assert.deepEqual(sliced.value.data, ['dGVzdCA=', 'base64'])
    const [frame] = (await server.call<Context<Shown>>('getAccountInfo', MINT, { encoding: 'base64+zstd' })).value
      .data as [string]
    assert.deepEqual(zstdDecompressSync(Buffer.from(frame, 'base64')), mint)
    const parsed = await server.call<Context<{ data: { program: string; parsed: { type: string } } }>>(
      'getAccountInfo',
      TOKEN_A,
      {
        encoding: 'jsonParsed',
      },
    )
    assert.deepEqual([parsed.value.data.program, parsed.value.data.parsed.type], ['spl-token', 'account'])

    assert.deepEqual(await server.refusal('getAccountInfo', 'short'), BAD_KEY)
    assert.deepEqual(await server.refusal('getAccountInfo', '0'.repeat(44)), NOT_BASE58)
    assert.deepEqual(await server.refusal('getAccountInfo', MINT.repeat(2)), BAD_KEY)
    assert.deepEqual(await server.refusal('getAccountInfo', TOKEN_A), [
      -32600,
      'Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.',
    ])
    const late = await server.ask('getAccountInfo', TEXT, LATE)
    assert.deepEqual(late.error, {
      code: -32016,
      message: 'Minimum context slot has not been reached',
      data: { contextSlot: 1 },
    })
    assert.deepEqual(await server.refusal('getAccountInfo', TEXT, { encoding: 'hex' }), [
      -32602,
      'Invalid params: unknown variant `hex`, expected one of `binary`, `base58`, `base64`, `jsonParsed`, `base64+zstd`.',
    ])
  })

  it('reads every commitment at its slot', async () => {
    const wallet = key(12)
    await server.call('requestAirdrop', wallet, 1_000_000_000)
    const balances = async () =>
      Promise.all(
        ['processed', 'confirmed', 'finalized'].map(
          async (commitment) => (await server.call<Context<number>>('getBalance', wallet, { commitment })).value,
        ),
      )
    assert.deepEqual(await balances(), [0, 0, 0])
    await server.pass(1)
    assert.deepEqual(await balances(), [1_000_000_000, 0, 0])
    await server.pass(1)
    assert.deepEqual(await balances(), [1_000_000_000, 1_000_000_000, 0])
    await server.pass(1)
    assert.deepEqual(await balances(), [1_000_000_000, 1_000_000_000, 1_000_000_000])
  })

  it('getMultipleAccounts', async () => {
    const { value } = await server.call<Context<(Shown | null)[]>>('getMultipleAccounts', [TEXT, UNKNOWN])
    assert.deepEqual(
      value.map((each) => each?.data ?? null),
      [['dGVzdCBkYXRh', 'base64'], null],
    )
    assert.deepEqual((await server.call<Context<[]>>('getMultipleAccounts', [])).value, [])
    const full = Array.from({ length: 100 }, () => TEXT)
    assert.equal((await server.call<Context<Shown[]>>('getMultipleAccounts', full)).value.length, 100)
    assert.deepEqual(await server.refusal('getMultipleAccounts', [...full, TEXT]), [
      -32602,
      'Too many inputs provided; max 100',
    ])
    assert.deepEqual(await server.refusal('getMultipleAccounts', ['x']), BAD_KEY)
  })

  it('getProgramAccounts', async () => {
    const all = await server.call<Keyed[]>('getProgramAccounts', PROGRAM, { encoding: 'base64' })
    assert.deepEqual(
      all.map(({ pubkey }) => pubkey),
      [OWNED_B, OWNED_A],
    )
    const filters = [
      { dataSize: 7 },
      { memcmp: { offset: 4, bytes: Buffer.from('one').toString('base64'), encoding: 'base64' } },
    ]
    const matched = await server.call<Context<Keyed[]>>('getProgramAccounts', PROGRAM, {
      filters,
      withContext: true,
      dataSlice: { offset: 4, length: 3 },
    })
    assert.deepEqual(
      matched.value.map(({ pubkey }) => pubkey),
      [OWNED_A],
    )
    assert.equal(matched.value[0]?.account.data, encodeBase58(Buffer.from('one')))
    assert.equal(matched.context.slot, 1 + 3)
    assert.deepEqual(await server.call('getProgramAccounts', UNKNOWN), [])
    const five = Array.from({ length: 5 }, () => ({ dataSize: 1 }))
    assert.deepEqual(await server.refusal('getProgramAccounts', PROGRAM, { filters: five }), [
      -32602,
      'Too many filters provided; max 4',
    ])
    const parsed = await server.call<Keyed[]>('getProgramAccounts', TOKEN_PROGRAM, {
      encoding: 'jsonParsed',
      filters: ['tokenAccountState'],
    })
    assert.deepEqual(
      parsed.map(({ pubkey }) => pubkey),
      [TOKEN_B, TOKEN_A],
    )
  })

  it('getBalance', async () => {
    assert.equal((await server.call<Context<number>>('getBalance', TEXT)).value, 5_000_000)
    assert.equal((await server.call<Context<number>>('getBalance', UNKNOWN)).value, 0)
    assert.deepEqual(await server.refusal('getBalance', 5), [
      -32602,
      'Invalid params: invalid type: integer `5`, expected a string.',
    ])
    assert.equal((await server.refusal('getBalance', TEXT, LATE))[0], -32016)
  })

  it('getLargestAccounts and getSupply', async () => {
    type Balance = { address: string; lamports: number | bigint }
    const largest = (await server.call<Context<Balance[]>>('getLargestAccounts')).value
    assert.equal(largest.length, 20)
    assert.deepEqual(
      largest,
      [...largest].sort(
        (a, b) =>
          Number(BigInt(b.lamports) - BigInt(a.lamports)) ||
          Buffer.compare(decodeBase58(b.address), decodeBase58(a.address)),
      ),
    )
    assert.equal(largest[0]?.address, server.chain.faucet)
    const held = (await server.call<Context<Balance[]>>('getLargestAccounts', { filter: 'nonCirculating' })).value
    assert.equal(held.length, 2)
    assert.equal(held[1]?.address, LOCKED)
    const genesisStake = held[0]?.address as string
    const free = (await server.call<Context<Balance[]>>('getLargestAccounts', { filter: 'circulating' })).value
    assert.equal(free[0]?.address, server.chain.faucet)
    assert.ok(!free.some(({ address }) => address === genesisStake))
    assert.equal((await server.refusal('getLargestAccounts', { filter: 'all' }))[0], -32602)

    type Supply = { total: bigint; circulating: number; nonCirculating: bigint; nonCirculatingAccounts: string[] }
    const { value } = await server.call<Context<Supply>>('getSupply')
    assert.equal(BigInt(value.total), BigInt(value.circulating) + BigInt(value.nonCirculating))
    assert.deepEqual(value.nonCirculatingAccounts.sort(), [genesisStake, LOCKED].sort())
    const short = await server.call<Context<Supply>>('getSupply', { excludeNonCirculatingAccountsList: true })
    assert.deepEqual(short.value.nonCirculatingAccounts, [])
    assert.equal((await server.refusal('getSupply', { excludeNonCirculatingAccountsList: 1 }))[0], -32602)
  })

  it('getMinimumBalanceForRentExemption', async () => {
    assert.equal(await server.call('getMinimumBalanceForRentExemption', 0), 890_880)
    assert.equal(await server.call('getMinimumBalanceForRentExemption', 165, { commitment: 'processed' }), 2_039_280)
    assert.deepEqual(await server.refusal('getMinimumBalanceForRentExemption', 10 * 1024 * 1024 + 1), [
      -32600,
      'Invalid request',
    ])
    assert.deepEqual(await server.refusal('getMinimumBalanceForRentExemption', -1), [
      -32602,
      'Invalid params: invalid value: integer `-1`, expected usize.',
    ])
  })

  it('getTokenAccountBalance and getTokenSupply', async () => {
    const amount = (text: string, ui: number) => ({
      amount: text,
      decimals: 6,
      uiAmount: ui,
      uiAmountString: String(ui),
    })
    const plain = (value: unknown) =>
      JSON.parse(JSON.stringify(value, (_key, each) => (each?.constructor?.name === 'JsonFloat' ? each.value : each)))
    assert.deepEqual(
      plain((await server.call<Context<object>>('getTokenAccountBalance', TOKEN_A)).value),
      amount('300000', 0.3),
    )
    assert.deepEqual(plain((await server.call<Context<object>>('getTokenSupply', MINT)).value), amount('1000000', 1))
    assert.deepEqual(await server.refusal('getTokenAccountBalance', UNKNOWN), [
      -32602,
      'Invalid param: could not find account',
    ])
    assert.deepEqual(await server.refusal('getTokenAccountBalance', TEXT), [
      -32602,
      'Invalid param: not a Token account',
    ])
    assert.deepEqual(await server.refusal('getTokenAccountBalance', MINT), [
      -32602,
      'Invalid param: not a Token account',
    ])
    assert.deepEqual(await server.refusal('getTokenSupply', UNKNOWN), [-32602, 'Invalid param: could not find account'])
    assert.deepEqual(await server.refusal('getTokenSupply', TEXT), [-32602, 'Invalid param: not a Token mint'])
    assert.deepEqual(await server.refusal('getTokenSupply', TOKEN_A), [
      -32602,
      'Invalid param: mint could not be unpacked',
    ])
  })

  it('getTokenLargestAccounts', async () => {
    const { value } = await server.call<Context<{ address: string; amount: string }[]>>('getTokenLargestAccounts', MINT)
    assert.deepEqual(
      value.map(({ address, amount }) => [address, amount]),
      [
        [TOKEN_B, '700000'],
        [TOKEN_A, '300000'],
      ],
    )
    const equal = await server.call<Context<{ address: string }[]>>('getTokenLargestAccounts', key(21))
    assert.deepEqual(
      equal.value.map(({ address }) => address),
      [key(83), key(82), key(81)],
    )
    assert.deepEqual(await server.refusal('getTokenLargestAccounts', UNKNOWN), [
      -32602,
      'Invalid param: could not find mint',
    ])
    assert.deepEqual(await server.refusal('getTokenLargestAccounts', TEXT), [
      -32602,
      'Invalid param: Token mint could not be unpacked',
    ])
  })

  it('getTokenAccountsByOwner and getTokenAccountsByDelegate', async () => {
    const list = async (method: string, owner: string, filter: object) =>
      (await server.call<Context<Keyed[]>>(method, owner, filter, { encoding: 'jsonParsed' })).value.map(
        ({ pubkey }) => pubkey,
      )
    assert.deepEqual(await list('getTokenAccountsByOwner', WALLET, { mint: MINT }), [TOKEN_B, TOKEN_A])
    assert.deepEqual(await list('getTokenAccountsByOwner', WALLET, { programId: TOKEN_PROGRAM }), [TOKEN_B, TOKEN_A])
    assert.deepEqual(await list('getTokenAccountsByOwner', WALLET, { programId: TOKEN_2022_PROGRAM }), [])
    assert.deepEqual(await list('getTokenAccountsByOwner', UNKNOWN, { mint: MINT }), [])
    assert.deepEqual(await list('getTokenAccountsByDelegate', key(11), { mint: MINT }), [TOKEN_A])
    assert.deepEqual(await list('getTokenAccountsByDelegate', key(11), { programId: TOKEN_PROGRAM }), [TOKEN_A])
    assert.deepEqual(await list('getTokenAccountsByDelegate', WALLET, { programId: TOKEN_PROGRAM }), [])
    for (const method of ['getTokenAccountsByOwner', 'getTokenAccountsByDelegate']) {
      assert.deepEqual(await server.refusal(method, WALLET, { mint: UNKNOWN }), [
        -32602,
        'Invalid param: could not find mint',
      ])
      assert.deepEqual(await server.refusal(method, WALLET, { programId: PROGRAM }), [
        -32602,
        'Invalid param: unrecognized Token program id',
      ])
      assert.deepEqual(await server.refusal(method, WALLET), [-32602, '`params` should have at least 2 argument(s)'])
      assert.equal((await server.refusal(method, WALLET, { mint: MINT, programId: TOKEN_PROGRAM }))[0], -32602)
    }
    assert.equal((await server.refusal('getTokenAccountsByOwner', WALLET, { mint: MINT }))[0], -32600)
  })

  it('lists of parsed accounts lack the token accounts that cannot be parsed', async () => {
    const keysOf = (list: Keyed[]) => list.map(({ pubkey }) => pubkey)
    const program = async (encoding: string) =>
      keysOf(
        await server.call<Keyed[]>('getProgramAccounts', TOKEN_PROGRAM, { encoding, filters: ['tokenAccountState'] }),
      )
    const listed = async (method: string, owner: string, encoding: string) =>
      keysOf((await server.call<Context<Keyed[]>>(method, owner, { programId: TOKEN_PROGRAM }, { encoding })).value)
    assert.deepEqual(await program('base64'), [TOKEN_B, TOKEN_A, ORPHAN])
    assert.deepEqual(await program('jsonParsed'), [TOKEN_B, TOKEN_A])
    assert.deepEqual(await listed('getTokenAccountsByOwner', WALLET, 'base64'), [TOKEN_B, TOKEN_A, ORPHAN])
    assert.deepEqual(await listed('getTokenAccountsByOwner', WALLET, 'jsonParsed'), [TOKEN_B, TOKEN_A])
    assert.deepEqual(await listed('getTokenAccountsByDelegate', key(12), 'base64'), [ORPHAN])
    assert.deepEqual(await listed('getTokenAccountsByDelegate', key(12), 'jsonParsed'), [])
    // Accounts of other programs and single accounts are returned as base64.
    const owned = await server.call<Keyed[]>('getProgramAccounts', PROGRAM, { encoding: 'jsonParsed' })
    assert.deepEqual(keysOf(owned), [OWNED_B, OWNED_A])
    const single = await server.call<Context<Shown>>('getAccountInfo', ORPHAN, { encoding: 'jsonParsed' })
    assert.equal((single.value.data as string[])[1], 'base64')
  })

  it('returns sysvars of the chain', async () => {
    const clock = await server.call<Context<{ data: { parsed: { type: string; info: { slot: number } } } }>>(
      'getAccountInfo',
      SYSVAR.clock,
      {
        encoding: 'jsonParsed',
        commitment: 'processed',
      },
    )
    assert.equal(clock.value.data.parsed.type, 'clock')
    assert.equal(clock.value.data.parsed.info.slot, clock.context.slot)
  })
})
