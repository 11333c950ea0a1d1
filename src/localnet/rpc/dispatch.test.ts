import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestServer, type TestServer } from '../../../test/support/solana/rpc-server.ts'
import { base64, openRpcWallet, type RpcWallet } from '../../../test/support/solana/rpc-wallet.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { TOKEN_PROGRAM } from '../chain/addresses.ts'
import type { Account, Chain } from '../chain/model.ts'
import { createRpcContext, type RpcContext } from './context.ts'
import { responseBody } from './dispatch.ts'

describe('responseBody with a failing chain', () => {
  let server: TestServer
  let wallet: RpcWallet
  before(async () => {
    server = await startTestServer({ commitment: { confirmedSlots: 0, finalizedSlots: 0 } })
    wallet = await openRpcWallet(server)
  })
  after(() => server[Symbol.asyncDispose]())

  /** The real chain with some members replaced. */
  function contextWith(members: Partial<Chain>, onError: () => void = () => {}): RpcContext {
    const chain = new Proxy<Chain>(server.chain, {
      get(target, name) {
        const value: unknown = Reflect.get(name in members ? members : target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const log = { ...silentLogger, error: onError }
    return createRpcContext({ chain, clock: server.clock, log })
  }

  async function errorOf(context: RpcContext, method: string, ...params: unknown[]): Promise<unknown> {
    const response = await responseBody(context, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
    return (JSON.parse(response ?? '{}') as { error?: unknown }).error
  }

  const UNHEALTHY = { code: -32005, message: 'Node is unhealthy', data: { numSlotsBehind: null } }

  it('responds with -32005 while the engine is down or its queue is full', async () => {
    const text = base64(wallet.sign([wallet.transfer(1)]))
    const down = contextWith({
      simulate: () => Promise.resolve('engine-down'),
      submit: () => Promise.resolve({ ok: false, reason: 'queue-full' }),
      airdrop: () => Promise.resolve({ ok: false, reason: 'engine-down' }),
    })
    assert.deepEqual(await errorOf(down, 'sendTransaction', text, { encoding: 'base64' }), UNHEALTHY)
    assert.deepEqual(
      await errorOf(down, 'sendTransaction', text, { encoding: 'base64', skipPreflight: true }),
      UNHEALTHY,
    )
    assert.deepEqual(await errorOf(down, 'simulateTransaction', text, { encoding: 'base64' }), UNHEALTHY)
    assert.deepEqual(await errorOf(down, 'requestAirdrop', wallet.payer.publicKey.toBase58(), 1), UNHEALTHY)
    const refusing = contextWith({
      airdrop: () => Promise.resolve({ ok: false, reason: 'rejected', err: 'AccountNotFound' }),
    })
    assert.deepEqual(await errorOf(refusing, 'requestAirdrop', wallet.payer.publicKey.toBase58(), 1), {
      code: -32603,
      message: 'Internal error',
    })
  })

  it('responds with -32007 for a slot without a block', async () => {
    const gap = contextWith({
      block: (slot) => (slot === 2 ? undefined : server.chain.block(slot)),
      hasBlock: (slot) => slot !== 2 && server.chain.hasBlock(slot),
    })
    const skipped = { code: -32007, message: 'Slot 2 was skipped, or missing due to ledger jump to recent snapshot' }
    assert.deepEqual(await errorOf(gap, 'getBlock', 2), skipped)
    assert.deepEqual(await errorOf(gap, 'getBlockTime', 2), skipped)
    const response = await responseBody(gap, '{"jsonrpc":"2.0","id":1,"method":"getBlocks","params":[1,3]}')
    assert.equal(response, '{"jsonrpc":"2.0","result":[1,3],"id":1}')
  })

  it('responds with an internal error to an exception, logs it, and continues', async () => {
    let logged = 0
    const broken = contextWith(
      {
        slot: () => {
          throw new TypeError('broken')
        },
      },
      () => logged++,
    )
    assert.deepEqual(await errorOf(broken, 'getSlot'), { code: -32603, message: 'Internal error' })
    assert.equal(logged, 1)
    assert.equal(await errorOf(broken, 'getHealth'), undefined)
  })

  it('refuses the items of a batch beyond the maximum response size', async () => {
    const call = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"getHealth"}`
    const ok = (id: number) => `{"jsonrpc":"2.0","result":"ok","id":${id}}`
    const over = (id: number) =>
      `{"jsonrpc":"2.0","error":{"code":-32603,"message":"Batch response too large"},"id":${id}}`
    const notification = '{"jsonrpc":"2.0","method":"getHealth"}'
    const batch = `[${call(1)},${call(2)},${notification},${call(3)}]`
    assert.equal(await responseBody(contextWith({}), batch, ok(1).length + 1), `[${ok(1)},${ok(2)},${over(3)}]`)
  })

  /** With slices that are spent at every look, and a count of the turns. */
  function slicedContext(members: Partial<Chain>): { context: RpcContext; turns: () => number } {
    let turns = 0
    const slices = { isSpent: () => true, yield: () => Promise.resolve(void (turns += 1)) }
    return { context: { ...contextWith(members), createSlices: () => slices }, turns: () => turns }
  }

  it('serves other connections between the items of a batch', async () => {
    const { context, turns } = slicedContext({})
    const call = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"getHealth"}`
    await responseBody(context, `[${Array.from({ length: 20 }, (_, id) => call(id)).join()}]`)
    assert.ok(turns() >= 19, `${turns()} turns`)
  })

  it('makes the leader schedule of an epoch once, with turns of the event loop between its parts', async () => {
    let calls = 0
    const [slotsPerEpoch, leaders] = [10_000, ['A', 'B']] as const
    const leaderOf = (slot: number) => {
      calls += 1
      return leaders[Math.floor(slot / 4) % 2] as string
    }
    const { context, turns } = slicedContext({ slotsPerEpoch, leaderOf })
    const schedule = async (...params: unknown[]) => {
      const request = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getLeaderSchedule', params })
      return (JSON.parse((await responseBody(context, request)) ?? '') as { result: Record<string, number[]> }).result
    }
    const expected = (leader: string) =>
      Array.from({ length: slotsPerEpoch }, (_, index) => index).filter(
        (index) => leaders[Math.floor(index / 4) % 2] === leader,
      )
    assert.deepEqual(await schedule(), { A: expected('A'), B: expected('B') })
    assert.ok(turns() >= 2, `${turns()} turns`)
    await schedule()
    assert.deepEqual(await schedule({ identity: wallet.payer.publicKey.toBase58() }), {})
    assert.equal(calls, slotsPerEpoch)
    await schedule(slotsPerEpoch)
    assert.equal(calls, 2 * slotsPerEpoch)
    assert.equal(await schedule(2 * slotsPerEpoch), null)
  })

  it('counts the blocks of an epoch with turns of the event loop between them', async () => {
    const { context, turns } = slicedContext({})
    await responseBody(context, '{"jsonrpc":"2.0","id":1,"method":"getBlockProduction"}')
    assert.ok(turns() > server.chain.slot('finalized') / 2, `${turns()} turns`)
  })

  it('lists and counts blocks without reading them, with turns of the event loop between the parts of a list', async () => {
    const last = 20_000
    const { context, turns } = slicedContext({
      slot: () => last,
      firstAvailableSlot: () => 10,
      hasBlock: (slot) => slot % 3 > 0,
      block: () => assert.fail('a block was read'),
    })
    const result = async (method: string, ...params: unknown[]) => {
      const request = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
      return (JSON.parse((await responseBody(context, request)) ?? '') as { result: unknown }).result
    }
    const slots = Array.from({ length: last + 1 }, (_, slot) => slot).filter((slot) => slot >= 10 && slot % 3 > 0)
    assert.deepEqual(await result('getBlocks', 0), slots)
    assert.ok(turns() >= 4, `${turns()} turns`)
    assert.deepEqual(await result('getBlocks', 9, 9), [])
    assert.deepEqual(await result('getBlocksWithLimit', 12, 5000), slots.slice(2, 5002))
    assert.deepEqual(await result('getBlocksWithLimit', 12, 0), [])
    const identity = server.chain.identity
    assert.partialDeepStrictEqual(await result('getBlockProduction', { range: { firstSlot: 8, lastSlot: 14 } }), {
      value: { byIdentity: { [identity]: [7, 6] } },
    })
  })

  it('encodes each of several accounts once, at one slot, with turns of the event loop between them', async () => {
    const mint = encodeBase58(new Uint8Array(32).fill(2))
    const [token, other] = [1, 3].map((fill) => encodeBase58(new Uint8Array(32).fill(fill))) as [string, string]
    const tokenData = new Uint8Array(165).fill(2, 0, 32).fill(5, 64, 65).fill(1, 108, 109)
    const base = { lamports: 1n, owner: TOKEN_PROGRAM, executable: false, rentEpoch: 0n }
    let reads = 0
    const accounts: Record<string, () => Account> = {
      [token]: () => ({ ...base, data: tokenData }),
      // Another one after each turn.
      [mint]: () => ({ ...base, data: new Uint8Array(82).fill(3 + turns(), 44, 45).fill(1, 45, 46) }),
      [other]: () => ({
        ...base,
        get data() {
          reads += 1
          return new Uint8Array(1)
        },
      }),
    }
    const { context, turns } = slicedContext({ account: (address) => accounts[address]?.() ?? null })
    const result = async (addresses: string[]) => {
      const params = [addresses, { encoding: 'jsonParsed' }]
      const request = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getMultipleAccounts', params })
      return (JSON.parse((await responseBody(context, request)) ?? '') as { result: { value: unknown[] } }).result.value
    }
    await result([other])
    const readsOnce = reads
    const [missing, repeated] = [encodeBase58(new Uint8Array(32)), Array.from({ length: 90 }, () => other)]
    const before = turns()
    const value = await result([other, missing, token, ...repeated])
    assert.ok(turns() - before >= 2, `${turns()} turns`)
    assert.equal(reads, 2 * readsOnce)
    assert.deepEqual(
      value.slice(3),
      Array.from({ length: 90 }, () => value[0]),
    )
    assert.equal(value[1], null)
    assert.partialDeepStrictEqual(value[2], {
      data: { parsed: { info: { tokenAmount: { amount: '5', decimals: 3 + before } } } },
    })
  })

  it('reads the page of an address from its first signature on, with turns of the event loop between them', async () => {
    const [first] = server.chain.signaturesOf(wallet.payer.publicKey.toBase58())
    assert.ok(first !== undefined)
    const records = Array.from({ length: 1000 }, (_, at) => ({ ...first, slot: first.slot - 1, index: 1000 - at }))
    const from: (object | undefined)[] = []
    const { context, turns } = slicedContext({
      signaturesOf(_address, before) {
        from.push(before)
        return records
      },
    })
    const params = [wallet.payer.publicKey.toBase58(), { before: first.signature }]
    const request = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getSignaturesForAddress', params })
    const { result } = JSON.parse((await responseBody(context, request)) ?? '') as { result: unknown[] }
    assert.equal(result.length, 1000)
    assert.ok(turns() >= 999, `${turns()} turns`)
    assert.partialDeepStrictEqual(from, [{ slot: first.slot, index: first.index }])
  })
})
