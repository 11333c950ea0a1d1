import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import * as web3 from '@solana/web3.js'
import type { Localnet } from '../../src/localnet/service.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { startQuickLocalnet, untilBlock } from '../support/solana/localnet.ts'

const require = createRequire(import.meta.url)
const { default: Yellowstone } = require('@triton-one/yellowstone-grpc')

type Notification = { method: string; params: { result: { value: { signature: string; logs: string[] } } } }
type VoteNotification = { votePubkey: string; slots: number[]; hash: string; timestamp: number; signature: string }

/** A localnet without traffic has the vote transactions of its validator, as a test validator has. */
describe('votes of a localnet without traffic', () => {
  let node: Localnet
  let connection: web3.Connection
  before(async () => {
    node = await startQuickLocalnet({ votes: { enabled: true } })
    connection = new web3.Connection(`http://127.0.0.1:${node.rpc.port}`, 'confirmed')
    await untilBlock(node.chain, () => node.chain.slot('finalized') > 40)
  })
  after(() => node[Symbol.asyncDispose]())

  it('every block has one vote: a real transaction of the vote program for the block before it', async () => {
    const slot = await connection.getSlot('finalized')
    const found = (await connection.getParsedBlock(slot, {
      maxSupportedTransactionVersion: 0,
    })) as unknown as web3.ParsedBlockResponse
    const [vote] = found.transactions
    assert.equal(found.transactions.length, 1)
    assert.equal(vote?.meta?.err, null)
    assert.equal(vote?.meta?.fee, 10_000)
    assert.deepEqual(
      vote?.transaction.message.accountKeys.slice(0, 2).map(({ pubkey, signer }) => [pubkey.toBase58(), signer]),
      [
        [node.chain.identity, true],
        [node.chain.voteAccount, true],
      ],
    )
    const [instruction] = (vote?.transaction.message.instructions ?? []) as web3.ParsedInstruction[]
    assert.deepEqual([instruction?.program, instruction?.parsed.type], ['vote', 'towersync'])
    const { lockouts, root, timestamp } = (instruction as web3.ParsedInstruction).parsed.info.towerSync
    assert.deepEqual(
      [lockouts.length, lockouts.at(-1), root],
      [31, { slot: slot - 1, confirmation_count: 1 }, slot - 32],
    )
    assert.equal(timestamp, await connection.getBlockTime(slot - 1))
  })

  it('getSignaturesForAddress of the vote account lists them; getTransaction returns one', async () => {
    const listed = await connection.getSignaturesForAddress(new web3.PublicKey(node.chain.voteAccount), { limit: 20 })
    assert.equal(listed.length, 20)
    assert.equal((listed[0]?.slot ?? 0) - (listed[19]?.slot ?? 0), 19)
    const one = await connection.getTransaction(listed[0]?.signature ?? '', { maxSupportedTransactionVersion: 0 })
    assert.equal(one?.slot, listed[0]?.slot)
  })

  it('getVoteAccounts reads the vote account: last vote, root and credits advance', async () => {
    const read = async () => (await connection.getVoteAccounts('confirmed')).current[0]
    const early = await read()
    assert.equal(early?.votePubkey, node.chain.voteAccount)
    const start = node.chain.slot('confirmed')
    await untilBlock(node.chain, () => node.chain.slot('confirmed') >= start + 3)
    const late = await read()
    assert.ok((late?.lastVote ?? 0) >= (early?.lastVote ?? 0) + 3)
    const { rootSlot } = late as unknown as { rootSlot: number }
    assert.equal((late?.lastVote ?? 0) - rootSlot, 31)
    assert.ok((late?.epochCredits[0]?.[1] ?? 0) > (early?.epochCredits[0]?.[1] ?? 0))
  })

  it('logsSubscribe "all" is without votes, "allWithVotes" is with them; voteSubscribe has the same signatures', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${node.ws.port}`)
    const frames: { id?: number; method?: string; params?: unknown }[] = []
    socket.addEventListener('message', ({ data }) => frames.push(JSON.parse(String(data))))
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    const subscribe = (id: number, method: string, params: unknown[]) =>
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    subscribe(1, 'logsSubscribe', ['all', { commitment: 'processed' }])
    subscribe(2, 'logsSubscribe', ['allWithVotes', { commitment: 'processed' }])
    subscribe(3, 'voteSubscribe', [])
    const start = node.chain.slot('processed')
    await untilBlock(node.chain, () => frames.filter(({ id }) => id !== undefined).length === 3)
    const airdrop = await node.chain.airdrop(node.chain.faucet, 1n)
    assert.ok(airdrop.ok)
    const logs = () => frames.filter(({ method }) => method === 'logsNotification') as unknown as Notification[]
    const isAirdrop = ({ params }: Notification) => params.result.value.signature === airdrop.signature
    await untilBlock(node.chain, () => logs().filter(isAirdrop).length === 2)
    const isVote = ({ params }: Notification) => params.result.value.logs[0]?.startsWith('Program Vote1111')
    const votes = frames
      .filter(({ method }) => method === 'voteNotification')
      .map(({ params }) => (params as { result: VoteNotification }).result)
    const bySubscription = Map.groupBy(
      logs(),
      ({ params }) => (params as unknown as { subscription: number }).subscription,
    )
    const counts = [...bySubscription.values()].map((list) => list.filter(isVote).length).sort((a, b) => a - b)
    assert.equal(counts[0], 0)
    assert.ok((counts[1] ?? 0) > 0)
    const seen = new Set(
      logs()
        .filter(isVote)
        .map(({ params }) => params.result.value.signature),
    )
    const both = votes.filter(({ signature }) => seen.has(signature))
    assert.ok(both.length > 0)
    const [vote] = both as [VoteNotification]
    assert.equal(vote.votePubkey, node.chain.voteAccount)
    assert.ok((vote.slots.at(-1) ?? 0) >= start - 1 && vote.slots.length === 31)
    assert.equal(node.chain.transaction(vote.signature)?.slot, (vote.slots.at(-1) ?? 0) + 1)
    socket.close()
  })

  it('Geyser: the filter vote selects them or leaves them out, and is_vote is set', async () => {
    const client = new Yellowstone(`http://127.0.0.1:${node.grpc.port}`, undefined, undefined)
    const stream = await client.subscribe()
    const seen: { names: string[]; isVote: boolean; signature: string }[] = []
    stream.on('error', () => {})
    stream.on(
      'data',
      (update: { filters: string[]; transaction?: { transaction: { isVote: boolean; signature: Uint8Array } } }) => {
        const found = update.transaction?.transaction
        if (found) seen.push({ names: update.filters, isVote: found.isVote, signature: encodeBase58(found.signature) })
      },
    )
    const keys = { accountInclude: [], accountExclude: [], accountRequired: [] }
    stream.write({
      accounts: {},
      slots: {},
      transactions: { votes: { ...keys, vote: true }, others: { ...keys, vote: false } },
      transactionsStatus: {},
      blocks: {},
      blocksMeta: {},
      entry: {},
      accountsDataSlice: [],
      commitment: 0,
    })
    await untilBlock(node.chain, () => seen.length > 2)
    const airdrop = await node.chain.airdrop(node.chain.faucet, 2n)
    assert.ok(airdrop.ok)
    await untilBlock(node.chain, () => seen.some(({ signature }) => signature === airdrop.signature))
    for (const { names, isVote, signature } of seen) {
      assert.equal(isVote, signature !== airdrop.signature)
      assert.deepEqual(names, [isVote ? 'votes' : 'others'])
    }
    stream.cancel()
  })

  it('votes do not count for the prioritization fees of a block', async () => {
    const payer = web3.Keypair.fromSeed(new Uint8Array(32).fill(9))
    await node.chain.airdrop(payer.publicKey.toBase58(), 1_000_000_000n)
    const transaction = new web3.Transaction().add(
      web3.ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 4321 }),
      web3.SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: payer.publicKey, lamports: 1 }),
    )
    const start = node.chain.slot('processed')
    await untilBlock(node.chain, () => node.chain.slot('processed') > start + 2)
    const signature = await connection.sendTransaction(transaction, [payer], { preflightCommitment: 'processed' })
    await untilBlock(node.chain, () => node.chain.transaction(signature) !== undefined)
    const landed = node.chain.transaction(signature)?.slot
    const fees = await connection.getRecentPrioritizationFees()
    assert.equal(fees.find(({ slot }) => slot === landed)?.prioritizationFee, 4321)
  })
})

describe('localnet.votes as it is by default', () => {
  it('a search for a transaction in recent blocks ends, although there is no traffic', async () => {
    await using node = await startQuickLocalnet({ votes: {} })
    await untilBlock(node.chain, () => node.chain.slot('finalized') > 6)
    const connection = new web3.Connection(`http://127.0.0.1:${node.rpc.port}`, 'finalized')
    let slot = await connection.getSlot()
    let signatures: string[] = []
    for (; slot > 0 && signatures.length === 0; slot--) ({ signatures } = await connection.getBlockSignatures(slot))
    assert.ok(signatures.length > 0, 'no block has a transaction')
    const [signature] = signatures as [string]
    assert.equal((await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 }))?.slot, slot + 1)
  })
})

describe('localnet.votes.enabled = false', () => {
  it('blocks without traffic are empty, and the validator still counts as current', async () => {
    await using node = await startQuickLocalnet({ votes: { enabled: false } })
    await untilBlock(node.chain, () => node.chain.slot('finalized') > 3)
    assert.equal(node.chain.transactionCount('processed'), 0)
    const connection = new web3.Connection(`http://127.0.0.1:${node.rpc.port}`, 'confirmed')
    const { current, delinquent } = await connection.getVoteAccounts()
    assert.deepEqual([current.length, delinquent.length], [1, 0])
  })
})
