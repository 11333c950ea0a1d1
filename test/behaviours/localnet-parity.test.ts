import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { after, before, describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../../src/localnet/chain/addresses.ts'
import { parseAccountFile } from '../../src/localnet/genesis/fixtures.ts'
import { startTestServer, type TestServer } from '../support/solana/rpc-server.ts'
import { base64, type Context, key, openRpcWallet, type RpcWallet } from '../support/solana/rpc-wallet.ts'

type AccountInfo = { lamports: number; owner: string; space: number; rentEpoch: bigint | number; data: unknown }
type VoteInfo = {
  parsed: {
    info: {
      nodePubkey: string
      authorizedWithdrawer: string
      commission: number
      authorizedVoters: { authorizedVoter: string }[]
    }
  }
}

const FIXTURE = key(77).toBase58()
const NATIVE_MINT = 'So11111111111111111111111111111111111111112'
const TOKEN_2022 = new web3.PublicKey(TOKEN_2022_PROGRAM)
/** Derived as the Token-2022 program derives it. */
const [TOKEN_2022_NATIVE_MINT] = web3.PublicKey.findProgramAddressSync([Buffer.from('native-mint')], TOKEN_2022)
const CREATE_NATIVE_MINT = 31
/** Sizes that a validator reports; all hold the rent-exempt minimum of their size. */
const SYSVARS = {
  SysvarC1ock11111111111111111111111111111111: 40,
  SysvarEpochSchedu1e111111111111111111111111: 33,
  SysvarRecentB1ockHashes11111111111111111111: 6008,
  SysvarRent111111111111111111111111111111111: 17,
  SysvarS1otHashes111111111111111111111111111: 20_488,
  SysvarS1otHistory11111111111111111111111111: 131_097,
  SysvarStakeHistory1111111111111111111111111: 16_392,
}

/** What public client suites expect of the validator they are written against. */
describe('localnet as a test validator', () => {
  let server: TestServer
  let wallet: RpcWallet
  before(async () => {
    const file = `{"pubkey":"${FIXTURE}","account":{"lamports":5000000,"data":["dGVzdCBkYXRh","base64"],"owner":"${web3.SystemProgram.programId.toBase58()}","executable":false,"rentEpoch":361}}`
    server = await startTestServer(
      { commitment: { confirmedSlots: 1, finalizedSlots: 3 } },
      { fixtures: [parseAccountFile(file, 'fixture.json')] },
    )
    wallet = await openRpcWallet(server)
  })
  after(() => server[Symbol.asyncDispose]())

  const account = async (address: string, encoding = 'base64') =>
    (await server.call<Context<AccountInfo | null>>('getAccountInfo', address, { encoding })).value

  it('keeps rentEpoch of an account file', async () => {
    assert.equal((await account(FIXTURE))?.rentEpoch, 361)
  })

  it('has sysvars of full size with the rent-exempt minimum', async () => {
    for (const [address, bytes] of Object.entries(SYSVARS)) {
      const found = await account(address)
      const least = await server.call<number>('getMinimumBalanceForRentExemption', bytes)
      assert.deepEqual([found?.space, found?.lamports], [bytes, least], address)
    }
    const history = (await account('SysvarStakeHistory1111111111111111111111111', 'jsonParsed'))?.data
    assert.equal((history as { parsed?: { type: string } }).parsed?.type, 'stakeHistory')
  })

  it('has a native mint of 1 SOL', async () => {
    const mint = await account(NATIVE_MINT, 'jsonParsed')
    assert.ok(mint)
    assert.deepEqual([mint.lamports, mint.owner, mint.space], [1_000_000_000, TOKEN_PROGRAM, 82])
    assert.deepEqual((mint.data as { parsed: unknown }).parsed, {
      type: 'mint',
      info: { decimals: 9, freezeAuthority: null, isInitialized: true, mintAuthority: null, supply: '0' },
    })
  })

  it('has no account of Token-2022, so that a client can create its native mint', async () => {
    const mint = TOKEN_2022_NATIVE_MINT.toBase58()
    assert.deepEqual(await server.call('getProgramAccounts', TOKEN_2022_PROGRAM), [])
    assert.equal(await account(mint), null)
    const create = new web3.TransactionInstruction({
      programId: TOKEN_2022,
      keys: [
        { pubkey: wallet.payer.publicKey, isSigner: true, isWritable: true },
        { pubkey: TOKEN_2022_NATIVE_MINT, isSigner: false, isWritable: true },
        { pubkey: web3.SystemProgram.programId, isSigner: false, isWritable: false },
      ],
      data: Buffer.of(CREATE_NATIVE_MINT),
    })
    await wallet.send(wallet.sign([create]), { preflightCommitment: 'processed' })
    await server.pass(4)
    const created = await account(mint)
    assert.deepEqual([created?.owner, created?.space], [TOKEN_2022_PROGRAM, 82])
  })

  it('has a vote account with its own key as voter and withdrawer', async () => {
    const { voteAccount, identity } = server.chain
    const found = await account(voteAccount, 'jsonParsed')
    assert.ok(found)
    const { info } = (found.data as VoteInfo).parsed
    assert.equal(found.lamports, 1_000_000 * web3.LAMPORTS_PER_SOL)
    assert.deepEqual(
      [info.nodePubkey, info.authorizedWithdrawer, info.authorizedVoters[0]?.authorizedVoter, info.commission],
      [identity, voteAccount, voteAccount, 0],
    )
  })

  it('requires the member commitment where the config has no other', async () => {
    const missing = [-32602, 'Invalid params: missing field `commitment`.']
    for (const [method, ...params] of [
      ['getTokenAccountBalance', FIXTURE],
      ['getTokenSupply', FIXTURE],
      ['getTokenLargestAccounts', FIXTURE],
      ['getMinimumBalanceForRentExemption', 10],
      ['getInflationGovernor'],
    ] as const) {
      assert.deepEqual(await server.refusal(method, ...params, {}), missing, method)
    }
    assert.equal(await server.call('getBlockHeight', {}), server.chain.slot('finalized'))
  })

  it('reports inflation as a test validator does', async () => {
    const connection = new web3.Connection(server.url)
    assert.deepEqual(await connection.getInflationGovernor('confirmed'), {
      initial: 0.08,
      terminal: 0.015,
      taper: 0.15,
      foundation: 0.05,
      foundationTerm: 7,
    })
    const { total, foundation, validator, epoch } = await connection.getInflationRate()
    assert.deepEqual([total, foundation, epoch], [0.08, 0.004, 0])
    assert.ok(Math.abs(validator - 0.076) < 1e-12)
  })

  it('reports no fee and no loaded data when the fee payer cannot pay, with sorted members in the error data', async () => {
    const payers = [
      { signer: web3.Keypair.fromSeed(new Uint8Array(32).fill(201)), lamports: 0, err: 'AccountNotFound' },
      {
        signer: web3.Keypair.fromSeed(new Uint8Array(32).fill(202)),
        lamports: 900_000,
        err: 'InsufficientFundsForFee',
      },
    ]
    for (const { signer, lamports, err } of payers) {
      if (lamports > 0) await server.call('requestAirdrop', signer.publicKey.toBase58(), lamports)
      await server.pass(1)
      // Without an account, or with one that holds less than the fee of many signatures asked for by price.
      const expensive = [
        web3.ComputeBudgetProgram.setComputeUnitLimit({ units: 1_000_000 }),
        web3.ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 1_000_000 }),
        wallet.memo('poor'),
      ]
      const { error } = await server.ask('sendTransaction', base64(wallet.sign(expensive, signer)), {
        encoding: 'base64',
        preflightCommitment: 'processed',
      })
      const data = error?.data as Record<string, unknown>
      assert.deepEqual([data['err'], data['fee'], data['loadedAccountsDataSize']], [err, null, 0])
      assert.deepEqual(Object.keys(data), Object.keys(data).toSorted())
      const simulated = await server.call<Context<Record<string, unknown>>>(
        'simulateTransaction',
        base64(wallet.sign(expensive, signer)),
        { encoding: 'base64', commitment: 'processed' },
      )
      assert.deepEqual([simulated.value['err'], simulated.value['fee']], [err, null])
      assert.deepEqual([simulated.value['loadedAccountsDataSize'], simulated.value['unitsConsumed']], [0, 0])
    }
  })
})
