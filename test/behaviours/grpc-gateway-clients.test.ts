import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import type { Localnet } from '../../src/localnet/service.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { type GrpcGateway, startGrpcGateway } from '../support/gateway/grpc.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

const require = createRequire(import.meta.url)
const { default: Yellowstone } = require('@triton-one/yellowstone-grpc')
const laserstream = require('helius-laserstream')

type Update = Record<string, { slot?: string | number; signature?: Uint8Array } | undefined>

const RECIPIENT = 'Sysvar1111111111111111111111111111111111112'
const NO_KEYS = { accountInclude: [], accountExclude: [], accountRequired: [] }
const NOTHING = {
  accounts: {},
  slots: {},
  transactions: {},
  transactionsStatus: {},
  blocks: {},
  blocksMeta: {},
  entry: {},
  accountsDataSlice: [],
}

/** Unmodified npm clients, through the gateway, over a running chain. */
describe('geyser clients through the gateway', () => {
  let node: Localnet
  let on: GrpcGateway
  let token: string
  let endpoint: string
  before(async () => {
    node = await startQuickLocalnet()
    on = await startGrpcGateway([{ name: 'localnet', grpc: `http://127.0.0.1:${node.grpc.port}` }])
    token = (await on.gateway.subscribe({ overrides: { grpcAccountsPerStream: 3 } })).token
    endpoint = `http://127.0.0.1:${on.port}`
  })
  after(async () => {
    laserstream.shutdownAllStreams()
    await on[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  /** Waits until the stream is live, sends a transaction, and waits for its update. */
  function createWatcher() {
    const flowing = Promise.withResolvers<void>()
    const seen = new Set<string>()
    const failed = Promise.withResolvers<never>()
    failed.promise.catch(() => {})
    let look = () => {}
    return {
      failed: failed.promise,
      fail: (error: Error) => failed.reject(error),
      see(update: Update) {
        if (update['slot']) flowing.resolve()
        const signature = update['transactionStatus']?.signature
        if (signature) seen.add(encodeBase58(new Uint8Array(signature)))
        look()
      },
      async landed(): Promise<void> {
        await Promise.race([flowing.promise, failed.promise])
        const outcome = await node.chain.airdrop(RECIPIENT, 1_000_000_000n)
        assert.ok(outcome.ok)
        const reported = new Promise<void>((resolve) => {
          look = () => {
            if (seen.has(outcome.signature)) resolve()
          }
          look()
        })
        await Promise.race([reported, failed.promise])
      },
    }
  }

  it('@triton-one/yellowstone-grpc: a stream, a change of its filters, a ping', async () => {
    const client = new Yellowstone(endpoint, token, undefined)
    const stream = await client.subscribe()
    const watcher = createWatcher()
    const pong = Promise.withResolvers<number>()
    stream.on('data', (update: Update & { pong?: { id: number } }) => {
      if (update.pong) pong.resolve(update.pong.id)
      watcher.see(update)
    })
    stream.on('error', watcher.fail)
    stream.write({ ...NOTHING, slots: { s: {} } })
    stream.write({ ...NOTHING, slots: { s: {} }, transactionsStatus: { t: NO_KEYS } })
    await watcher.landed()
    stream.write({ ...NOTHING, ping: { id: 9 } })
    assert.equal(await pong.promise, 9)
    stream.cancel()
  })

  it('@triton-one/yellowstone-grpc: the unary methods', async () => {
    const client = new Yellowstone(endpoint, token, undefined)
    const { slot, blockhash } = await client.getLatestBlockhash(1)
    assert.equal((await client.isBlockhashValid(blockhash)).valid, true)
    assert.equal(await client.ping(7), 7)
    assert.ok(Number(await client.getSlot()) >= Number(slot))
    assert.equal(JSON.parse(await client.getVersion()).version.proto, '13.0.0')
  })

  it('@triton-one/yellowstone-grpc: refusals arrive with code and message', async () => {
    const stranger = new Yellowstone(endpoint, 'slc_wrong', undefined)
    await assert.rejects(stranger.getSlot(), {
      code: 7,
      details: /^missing or invalid token; reason: malformed; fix: /,
    })
    const client = new Yellowstone(endpoint, token, undefined)
    const stream = await client.subscribe()
    const failed = new Promise<{ code: number; details: string }>((resolve) => stream.on('error', resolve))
    stream.write({ ...NOTHING, transactions: { many: { ...NO_KEYS, accountInclude: Array(4).fill(RECIPIENT) } } })
    const { code, details } = await failed
    assert.equal(code, 3)
    assert.match(details, /transactions "many".*grpcAccountsPerStream allows 3/)
  })

  it('helius-laserstream, a Rust client: empty filters and replay work', async () => {
    const fromSlot = node.chain.slot('processed')
    const watcher = createWatcher()
    const metas: string[] = []
    const handle = await laserstream.subscribe(
      { apiKey: token, endpoint, replay: true, maxReconnectAttempts: 1 },
      { slots: { s: {} }, transactionsStatus: { t: {} }, blocksMeta: { m: {} }, commitment: 0, fromSlot },
      (update: Update) => {
        if (update['blockMeta']) metas.push(String(update['blockMeta'].slot))
        watcher.see(update)
      },
      watcher.fail,
    )
    await watcher.landed()
    assert.equal(metas[0], String(fromSlot))
    handle.cancel()
  })

  it('both clients stream slots on a plan that allows nothing else', async () => {
    const { token: slotsOnly } = await on.gateway.subscribe({ overrides: { grpcKinds: ['slots'], grpcStreams: 2 } })
    const client = new Yellowstone(endpoint, slotsOnly, undefined)
    assert.ok(Number(await client.getSlot()) >= 0)
    const stream = await client.subscribe()
    const fromYellowstone = new Promise<void>((resolve, reject) => {
      stream.on('data', (update: Update) => update['slot'] && resolve())
      stream.on('error', reject)
    })
    stream.write({ ...NOTHING, slots: { s: {} } })
    await fromYellowstone
    stream.on('error', () => {})
    stream.cancel()
    const fromLaserstream = Promise.withResolvers<void>()
    const handle = await laserstream.subscribe(
      { apiKey: slotsOnly, endpoint, maxReconnectAttempts: 1 },
      { slots: { s: {} }, commitment: 0 },
      (update: Update) => update['slot'] && fromLaserstream.resolve(),
      fromLaserstream.reject,
    )
    await fromLaserstream.promise
    handle.cancel()
  })

  for (const encoding of ['gzip', 'zstd'] as const) {
    it(`helius-laserstream with ${encoding}`, async () => {
      const watcher = createWatcher()
      const channelOptions = { 'grpc.default_compression_algorithm': laserstream.CompressionAlgorithms[encoding] }
      const handle = await laserstream.subscribe(
        { apiKey: token, endpoint, maxReconnectAttempts: 1, channelOptions },
        { slots: { s: {} }, transactionsStatus: { t: {} }, commitment: 0 },
        watcher.see,
        watcher.fail,
      )
      await watcher.landed()
      handle.cancel()
    })
  }
})
