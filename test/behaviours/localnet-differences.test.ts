import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import { MEMO_PROGRAM_V4 } from '../../src/localnet/chain/addresses.ts'
import type { Block, TransactionRecord } from '../../src/localnet/chain/model.ts'
import { writeMeta } from '../../src/localnet/geyser/encode-transaction.ts'
import { startPubSubServer } from '../../src/localnet/pubsub/ws.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { decodeBase58 } from '../../src/solana/crypto/base58.ts'
import { TransactionStatusMetaSchema } from '../../src/solana/gen/solana-storage_pb.ts'
import { decodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { ProtobufWriter } from '../../src/solana/geyser/protobuf-writer.ts'
import { startTestServer, type TestServer } from '../support/solana/rpc-server.ts'
import { base64, type Context, openRpcWallet, type RpcWallet } from '../support/solana/rpc-wallet.ts'

const SLOTS_PER_EPOCH = 32
const STAKE_HISTORY = 'SysvarStakeHistory1111111111111111111111111'

/** Every row of the table "Where it differs" in docs/localnet.md, by its first cell. */
describe('where localnet differs from a test validator', () => {
  let server: TestServer
  let wallet: RpcWallet
  before(async () => {
    server = await startTestServer({
      slotsPerEpoch: SLOTS_PER_EPOCH,
      commitment: { confirmedSlots: 1, finalizedSlots: 3 },
    })
    wallet = await openRpcWallet(server)
    await server.pass(2 * SLOTS_PER_EPOCH)
  })
  after(() => server[Symbol.asyncDispose]())

  const blocks = (): Block[] =>
    Array.from({ length: server.chain.slot('processed') }, (_, i) => server.chain.block(i + 1) as Block)

  const checks: Readonly<Record<string, () => Promise<void>>> = {
    async 'client name'() {
      const [node] = await server.call<{ clientId: string; version: string }[]>('getClusterNodes')
      const { 'solana-core': version } = await server.call<{ 'solana-core': string }>('getVersion')
      assert.deepEqual([node?.clientId, node?.version, version], ['Sluice', '4.2.1', '4.2.1'])
    },
    async network() {
      const [node] = await server.call<Record<string, unknown>[]>('getClusterNodes')
      for (const name of [
        'gossip',
        'tpu',
        'tpuQuic',
        'tpuForwards',
        'tpuForwardsQuic',
        'tpuVote',
        'tvu',
        'serveRepair',
      ])
        assert.equal(node?.[name], null, name)
    },
    async leader() {
      const leaders = await server.call<string[]>('getSlotLeaders', 0, SLOTS_PER_EPOCH)
      assert.deepEqual([...new Set(leaders)], [server.chain.identity])
    },
    async forks() {
      assert.ok(blocks().length > 2 * SLOTS_PER_EPOCH)
      for (const { slot, parentSlot } of blocks()) assert.equal(parentSlot, slot - 1)
    },
    async commitment() {
      const slots = await Promise.all(
        ['processed', 'confirmed', 'finalized'].map((commitment) => server.call<number>('getSlot', { commitment })),
      )
      const [head = 0] = slots
      assert.deepEqual(slots, [head, head - 1, head - 3])
      await using plain = await startTestServer()
      await plain.pass(40)
      assert.deepEqual([plain.chain.slot('confirmed'), plain.chain.slot('finalized')], [39, 9])
    },
    async 'block time'() {
      server.clock.advance(server.chain.slotMs)
      await server.pass(2)
      const time = await server.call<number>('getBlockTime', server.chain.slot('processed'))
      assert.equal(time, Math.floor(server.clock.nowMs() / 1000))
    },
    async 'proof of history'() {
      for (const { numHashes } of blocks().flatMap(({ entries }) => entries)) assert.equal(numHashes, 1n)
    },
    async 'bank hash'() {
      const { bankHash: parent } = server.chain.head
      await server.call('requestAirdrop', server.chain.identity, 1)
      await server.pass(1)
      const { bankHash, blockhash } = server.chain.head
      const signatures = Buffer.alloc(8)
      signatures.writeBigUInt64LE(1n)
      const parts = [parent, signatures, decodeBase58(blockhash)]
      assert.deepEqual(Buffer.from(bankHash), createHash('sha256').update(Buffer.concat(parts)).digest())
    },
    async 'rewards of an epoch'() {
      const { voteAccount, identity } = server.chain
      assert.deepEqual(await server.call('getInflationReward', [voteAccount, identity], { epoch: 0 }), [null, null])
      assert.ok((await new web3.Connection(server.url).getInflationRate()).total > 0)
    },
    async 'stake history'() {
      const { value } = await server.call<Context<{ data: { parsed: { info: unknown[] } } }>>(
        'getAccountInfo',
        STAKE_HISTORY,
        { encoding: 'jsonParsed' },
      )
      assert.deepEqual(value.data.parsed.info, [])
      const { current } = await server.call<{ current: { activatedStake: number }[] }>('getVoteAccounts')
      assert.equal(current[0]?.activatedStake, 1_000_000 * web3.LAMPORTS_PER_SOL)
    },
    async snapshots() {
      assert.deepEqual(await server.refusal('getHighestSnapshotSlot'), [-32008, 'No snapshot'])
    },
    async subscriptions() {
      const { chain, clock } = server
      await using pubsub = await startPubSubServer(
        { listen: { host: '127.0.0.1', port: 0 } },
        { chain, clock, log: silentLogger },
      )
      const socket = new WebSocket(`ws://127.0.0.1:${pubsub.address.port}`)
      await new Promise((resolve) => socket.addEventListener('open', resolve))
      for (const [method, ...params] of [['blockSubscribe', 'all'], ['voteSubscribe']] as const) {
        const response = new Promise<string>((resolve) =>
          socket.addEventListener('message', ({ data }) => resolve(String(data)), { once: true }),
        )
        socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
        assert.equal(typeof JSON.parse(await response).result, 'number', method)
      }
      socket.close()
    },
    async history() {
      await using small = await startTestServer({ limits: { ledgerBlocksMax: 512 } })
      await small.pass(520)
      assert.equal(await small.call('getFirstAvailableBlock'), small.chain.slot('processed') - 511)
    },
    async 'Memo program'() {
      const { value } = await server.call<Context<{ executable: boolean }>>('getAccountInfo', MEMO_PROGRAM_V4, {
        encoding: 'base64',
      })
      assert.equal(value.executable, true)
    },
    async simulation() {
      const poor = web3.Keypair.fromSeed(new Uint8Array(32).fill(77))
      const finalized = server.chain.slot('finalized')
      await server.chain.airdrop(poor.publicKey.toBase58(), BigInt(web3.LAMPORTS_PER_SOL))
      assert.equal(server.chain.account(poor.publicKey.toBase58(), 'processed'), null)
      const wire = base64(wallet.sign([wallet.transfer(web3.LAMPORTS_PER_SOL / 2, 1, poor)], poor))
      const config = { encoding: 'base64', commitment: 'finalized' }
      const { context, value } = await server.call<Context<{ err: unknown }>>('simulateTransaction', wire, config)
      assert.deepEqual([context.slot, value.err], [finalized, null])
    },
    async 'v1 transactions'() {
      const message = Buffer.concat([
        Buffer.of(0x81, 1, 0, 1, 0, 0, 0, 0),
        new web3.PublicKey(wallet.recent()).toBytes(),
        Buffer.of(1, 2),
        wallet.payer.publicKey.toBytes(),
        web3.SystemProgram.programId.toBytes(),
        Buffer.of(1, 0, 0, 0),
      ])
      const { value } = await server.call<Context<{ err: unknown }>>(
        'simulateTransaction',
        base64(Buffer.concat([message, new Uint8Array(64)])),
        { encoding: 'base64', commitment: 'processed' },
      )
      assert.equal(value.err, 'SanitizeFailure')
    },
    async 'cost units'() {
      const signature = await wallet.send(wallet.sign([wallet.transfer(web3.LAMPORTS_PER_SOL, 78)]))
      await server.pass(4)
      type Landed = { meta: Record<string, unknown> }
      const config = { maxSupportedTransactionVersion: 0, commitment: 'confirmed' }
      const { meta } = await server.call<Landed>('getTransaction', signature, config)
      const { slot, meta: recorded } = server.chain.transaction(signature) as TransactionRecord
      const { transactions } = await server.call<{ transactions: Landed[] }>('getBlock', slot, config)
      for (const each of [meta, transactions.at(-1)?.meta])
        assert.deepEqual([each?.['computeUnitsConsumed'], each?.['costUnits']], [150, undefined])
      const writer = new ProtobufWriter()
      writeMeta(writer, recorded)
      const decoded = decodeMessage(TransactionStatusMetaSchema, writer.take())
      assert.deepEqual([decoded?.computeUnitsConsumed, decoded?.costUnits], [150n, undefined])
    },
  }

  for (const [row, check] of Object.entries(checks)) it(row, check)

  it('has a check for each row of the page', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/localnet.md'), 'utf8')
    const table = page.slice(page.indexOf('## Where it differs'))
    const rows = [...table.matchAll(/^\| (?!what \|)([^|]+) \|/gm)].map(([, cell]) => cell)
    assert.deepEqual(rows, Object.keys(checks))
  })
})
