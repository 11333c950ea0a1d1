import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import type { Localnet } from '../../src/localnet/service.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import {
  CommitmentLevel,
  SlotStatus,
  SubscribeRequestSchema,
  type SubscribeUpdate,
  SubscribeUpdateSchema,
} from '../../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import type { Request } from '../support/solana/geyser-node.ts'
import { startQuickLocalnet, untilBlock } from '../support/solana/localnet.ts'

const require = createRequire(import.meta.url)
const { default: Yellowstone } = require('@triton-one/yellowstone-grpc')

const EVERYTHING: Request = {
  accounts: { a: {} },
  slots: { s: { interslotUpdates: true } },
  transactions: { t: {} },
  transactionsStatus: { ts: {} },
  blocks: { b: { includeEntries: true } },
  blocksMeta: { m: {} },
  entry: { e: {} },
  blockFooter: { f: {} },
}

/** Blocks that a test watches. */
const SLOTS = 30

describe('localnet with alpenglow', () => {
  let node: Localnet
  before(async () => {
    node = await startQuickLocalnet({
      consensus: 'alpenglow',
      candidateBanksPercent: 60,
      traffic: { enabled: true, tps: 60 },
    })
  })
  after(() => node[Symbol.asyncDispose]())

  const rpc = async (method: string, ...params: unknown[]) => {
    const response = await fetch(`http://127.0.0.1:${node.rpc.port}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return ((await response.json()) as { result: never }).result
  }

  /** All updates of the next slots at a commitment, with the fields that older clients do not know. */
  async function watch(commitment: CommitmentLevel): Promise<SubscribeUpdate[]> {
    const client = new Client(`127.0.0.1:${node.grpc.port}`, credentials.createInsecure())
    const call = client.makeBidiStreamRequest(
      '/geyser.Geyser/Subscribe',
      (message: Request) => Buffer.from(encodeMessage(SubscribeRequestSchema, message)),
      (bytes: Buffer) => decodeMessage(SubscribeUpdateSchema, bytes) as SubscribeUpdate,
    )
    const updates: SubscribeUpdate[] = []
    call.on('data', (update: SubscribeUpdate) => updates.push(update))
    call.on('error', () => {})
    call.write({ ...EVERYTHING, commitment })
    const from = node.chain.slot('processed')
    await untilBlock(node.chain, () => node.chain.slot('finalized') > from + SLOTS)
    await until('the stream has these slots', () =>
      updates.some(({ updateOneof: { case: kind, value } }) => kind === 'slot' && Number(value.slot) > from + SLOTS),
    )
    call.cancel()
    client.close()
    // The stream begins somewhere in a slot; the next one is complete.
    const [{ slot: firstSlot } = { slot: 0n }] = slotUpdates(updates, SlotStatus.SLOT_CREATED_BANK)
    return updates.filter(({ updateOneof }) => {
      const slot = Number((updateOneof.value as { slot?: bigint } | undefined)?.slot ?? -1)
      return slot > firstSlot && slot <= from + SLOTS - 2
    })
  }

  const bankOf = ({ updateOneof }: SubscribeUpdate) => (updateOneof.value as { bankId?: bigint }).bankId
  const idsOf = (banks: readonly { bankId?: bigint | undefined }[]) => new Set(banks.map(({ bankId }) => bankId))
  const metas = (updates: SubscribeUpdate[]) =>
    updates.flatMap(({ updateOneof }) => (updateOneof.case === 'blockMeta' ? [updateOneof.value] : []))
  const slotUpdates = (updates: SubscribeUpdate[], status: SlotStatus) =>
    updates.flatMap(({ updateOneof }) =>
      updateOneof.case === 'slot' && updateOneof.value.status === status ? [updateOneof.value] : [],
    )

  it('a processed stream has the updates of every bank with its id; the losing ones are dead', async () => {
    const updates = await watch(CommitmentLevel.PROCESSED)
    for (const update of updates) assert.notEqual(bankOf(update), undefined, `${update.updateOneof.case} has a bank id`)
    const blocks = metas(updates)
    const bySlot = Map.groupBy(blocks, ({ slot }) => slot)
    assert.ok(blocks.length > bySlot.size, 'some slots have several banks')
    const dead = slotUpdates(updates, SlotStatus.SLOT_DEAD)
    assert.ok(dead.every(({ deadError }) => deadError === 'bank replaced'))
    const survivors = new Map(slotUpdates(updates, SlotStatus.SLOT_FINALIZED).map(({ slot, bankId }) => [slot, bankId]))
    for (const { slot, bankId, blockhash } of blocks) {
      const isSurvivor = survivors.get(slot) === bankId
      assert.equal(blockhash === node.chain.block(Number(slot))?.blockhash, isSurvivor)
      assert.equal(
        dead.some((update) => update.bankId === bankId),
        !isSurvivor,
      )
    }
    const footers = updates.flatMap(({ updateOneof }) =>
      updateOneof.case === 'blockFooter' ? [updateOneof.value] : [],
    )
    const created = slotUpdates(updates, SlotStatus.SLOT_CREATED_BANK)
    assert.deepEqual(idsOf(created), idsOf(blocks))
    for (const list of [created, footers, blocks]) assert.equal(idsOf(list).size, list.length)
    for (const { bankId, parentSlot } of blocks)
      assert.equal(created.find((one) => one.bankId === bankId)?.parent, parentSlot)
    assert.ok(
      created.some(({ slot, parent }) => parent === slot - 2n),
      'some bank has another parent',
    )
    assert.deepEqual(idsOf(footers), idsOf(blocks))
    assert.ok(
      footers.every(({ bankHash, blockProducerTimeNanos }) => bankHash.length === 32 && blockProducerTimeNanos > 0n),
    )
    assert.ok(
      updates.every(
        ({ updateOneof }) => updateOneof.case !== 'entry' || updateOneof.value.executedTransactionCount > 0n,
      ),
      'no ticks',
    )
    assert.ok(
      updates.every(({ updateOneof }) => updateOneof.case !== 'transaction' || !updateOneof.value.transaction?.isVote),
    )
  })

  it('a confirmed and a finalized stream have only the surviving bank, and every slot', async () => {
    for (const commitment of [CommitmentLevel.CONFIRMED, CommitmentLevel.FINALIZED]) {
      const updates = await watch(commitment)
      const blocks = metas(updates)
      const slots = blocks.map(({ slot }) => slot)
      assert.equal(new Set(slots).size, slots.length, 'one block per slot')
      assert.equal(slots.length, Number(slots.at(-1)) - Number(slots[0]) + 1, 'no slot is missing')
      for (const { slot, blockhash } of blocks) assert.equal(node.chain.block(Number(slot))?.blockhash, blockhash)
      const ids = new Map(blocks.map(({ slot, bankId }) => [slot, bankId]))
      for (const update of updates) {
        const { slot } = update.updateOneof.value as { slot: bigint }
        if (update.updateOneof.case !== 'slot')
          assert.equal(bankOf(update), ids.get(slot), `${update.updateOneof.case}`)
      }
    }
  })

  it('@triton-one/yellowstone-grpc, which does not know bank ids, reads the stream', async () => {
    const client = new Yellowstone(`http://127.0.0.1:${node.grpc.port}`, 'any-token', undefined)
    const stream = await client.subscribe()
    const finalized = new Map<string, string>()
    const statuses = new Set<number>()
    let fault: unknown
    stream.on('error', (error: unknown) => (fault = error))
    stream.on('data', (update: { blockMeta?: { slot: string; blockhash: string }; slot?: { status: number } }) => {
      if (update.blockMeta) finalized.set(String(update.blockMeta.slot), update.blockMeta.blockhash)
      if (update.slot) statuses.add(update.slot.status)
    })
    stream.write({
      accounts: {},
      slots: { s: { interslotUpdates: true } },
      transactions: {},
      transactionsStatus: {},
      blocks: {},
      blocksMeta: { m: {} },
      entry: {},
      accountsDataSlice: [],
      commitment: 2,
    })
    await until('blocks and a dead bank have come', () => finalized.size >= 20 && statuses.has(SlotStatus.SLOT_DEAD))
    assert.equal(fault, undefined)
    for (const [slot, blockhash] of finalized) assert.equal(node.chain.block(Number(slot))?.blockhash, blockhash)
    stream.on('error', () => {})
    stream.cancel()
  })

  it('JSON-RPC: a certificate, a validator that is not delinquent, and blocks of the surviving banks', async () => {
    await untilBlock(node.chain, () => node.chain.slot('finalized') > 3)
    const certificate = (await rpc('getAgGenesisCert')) as { slot: number; blockId: string }
    assert.deepEqual([certificate.slot, certificate.blockId], [0, node.chain.block(0)?.blockhash])
    const voters = (await rpc('getVoteAccounts', { delinquentSlotDistance: 2 })) as {
      current: unknown[]
      delinquent: unknown[]
    }
    assert.deepEqual([voters.current.length, voters.delinquent.length], [1, 0])
    const slot = (await rpc('getSlot', { commitment: 'finalized' })) as number
    assert.ok(node.chain.slot('processed') - slot <= 3)
    const block = (await rpc('getBlock', slot, { maxSupportedTransactionVersion: 0 })) as {
      blockhash: string
      parentSlot: number
    }
    assert.deepEqual([block.blockhash, block.parentSlot], [node.chain.block(slot)?.blockhash, slot - 1])
    const info = (await rpc('getEpochInfo')) as { blockHeight: number }
    assert.ok(info.blockHeight > 0)
  })

  it('PubSub: slotsUpdates name the dead banks, roots and blocks come once per slot, no votes', async () => {
    const client = new WebSocket(`ws://127.0.0.1:${node.ws.port}`)
    const messages: string[] = []
    client.on('message', (data: Buffer) => messages.push(data.toString()))
    await once(client, 'open')
    client.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'slotsUpdatesSubscribe' }))
    client.send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'rootSubscribe' }))
    client.send(JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'voteSubscribe' }))
    const types = new Map<string, number>()
    const roots: number[] = []
    await until('roots and dead banks have come', () => {
      for (const text of messages.splice(0)) {
        const { method, params } = JSON.parse(text) as { method?: string; params: { result: never } }
        if (method === 'rootNotification') roots.push(params.result)
        if (method === 'slotsUpdatesNotification') {
          const { type } = params.result as { type: string }
          types.set(type, (types.get(type) ?? 0) + 1)
        }
        assert.notEqual(method, 'voteNotification')
      }
      return roots.length >= 20 && types.has('dead')
    })
    client.close()
    assert.deepEqual(
      roots,
      Array.from({ length: roots.length }, (_, index) => (roots[0] as number) + index),
    )
    assert.ok((types.get('createdBank') as number) > (types.get('firstShredReceived') as number))
  })
})
