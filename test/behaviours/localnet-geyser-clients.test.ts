import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import type { Localnet } from '../../src/localnet/service.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

const require = createRequire(import.meta.url)
const { default: Yellowstone } = require('@triton-one/yellowstone-grpc')
const laserstream = require('helius-laserstream')

type Update = { filters: string[]; [kind: string]: unknown }
type Slot = { slot: string; status: number }

const RECIPIENT = 'Sysvar1111111111111111111111111111111111112'
const NAMES: Readonly<Record<string, string>> = {
  account: 'a',
  transaction: 't',
  transactionStatus: 'ts',
  entry: 'e',
  block: 'b',
  blockMeta: 'm',
  slot: 's',
}
const NO_KEYS = { accountInclude: [], accountExclude: [], accountRequired: [] }
const EVERYTHING = {
  accounts: { a: { account: [], owner: [], filters: [] } },
  slots: { s: {} },
  transactions: { t: NO_KEYS },
  transactionsStatus: { ts: NO_KEYS },
  blocks: { b: { accountInclude: [], includeAccounts: true, includeEntries: true } },
  blocksMeta: { m: {} },
  entry: { e: {} },
  accountsDataSlice: [],
}

/** Unmodified npm clients: one in JavaScript on grpc-js, one in Rust on tonic. */
describe('geyser clients', () => {
  let node: Localnet
  before(async () => {
    node = await startQuickLocalnet()
  })
  after(async () => {
    laserstream.shutdownAllStreams()
    await node[Symbol.asyncDispose]()
  })

  /** Sends a transaction once the stream receives updates: a filter takes effect only after it was processed. */
  async function land(watcher: Watcher): Promise<string> {
    await watcher.flowing
    const outcome = await node.chain.airdrop(RECIPIENT, 1_000_000_000n)
    assert.ok(outcome.ok)
    return outcome.signature
  }

  it('@triton-one/yellowstone-grpc: every kind in contract order, at every commitment', async () => {
    for (const commitment of [0, 1, 2]) {
      const client = new Yellowstone(`http://127.0.0.1:${node.grpc.port}`, 'any-token', undefined)
      const stream = await client.subscribe()
      const watcher = watch(commitment)
      stream.on('data', watcher.see)
      stream.on('error', watcher.fail)
      stream.write({ ...EVERYTHING, commitment })
      await watcher.check(await land(watcher))
      stream.cancel()
    }
  })

  it('@triton-one/yellowstone-grpc: the unary methods', async () => {
    const client = new Yellowstone(`http://127.0.0.1:${node.grpc.port}`, undefined, undefined)
    const { slot, blockhash, lastValidBlockHeight } = await client.getLatestBlockhash(1)
    assert.ok(Number(lastValidBlockHeight) > Number(slot))
    assert.equal((await client.isBlockhashValid(blockhash)).valid, true)
    assert.equal((await client.isBlockhashValid(RECIPIENT)).valid, false)
    assert.equal(await client.ping(7), 7)
    assert.ok(Number(await client.getSlot()) >= Number(slot))
    assert.ok(Number(await client.getBlockHeight(2)) <= Number(await client.getBlockHeight(0)))
    assert.equal(JSON.parse(await client.getVersion()).version.proto, '13.0.0')
  })

  it('helius-laserstream, a Rust client: accepts empty filters and replays', async () => {
    const endpoint = `http://127.0.0.1:${node.grpc.port}`
    const fromSlot = node.chain.slot('processed')
    const watcher = watch(0)
    // On the wire an empty filter is a map entry without a value.
    const filters = {
      accounts: { a: {} },
      slots: { s: {} },
      transactions: { t: {} },
      transactionsStatus: { ts: {} },
      blocks: { b: { includeAccounts: true } },
      blocksMeta: { m: {} },
      entry: { e: {} },
    }
    const handle = await laserstream.subscribe(
      { apiKey: 'any', endpoint, replay: true, maxReconnectAttempts: 1 },
      { ...filters, commitment: 0, fromSlot },
      watcher.see,
      watcher.fail,
    )
    await watcher.check(await land(watcher))
    const metas = watcher.updates.flatMap((update) => (update['blockMeta'] ? [slotOf(update, 'blockMeta')] : []))
    assert.equal(metas[0], String(fromSlot))
    handle.cancel()
  })
})

type Watcher = ReturnType<typeof watch>

/** Collects updates, and knows which slot a transaction landed in and whether that slot is complete. */
function watch(commitment: number) {
  const updates: Update[] = []
  const slots = new Map<string, string>()
  const complete = new Set<string>()
  const flowing = Promise.withResolvers<void>()
  let look = () => {}
  let failure: Error | undefined

  function see(update: Update): void {
    updates.push(update)
    const status = update['transactionStatus'] as { signature: Uint8Array } | undefined
    if (status) slots.set(encodeBase58(new Uint8Array(status.signature)), slotOf(update, 'transactionStatus'))
    const slot = update['slot'] as Slot | undefined
    if (slot) flowing.resolve()
    if (slot?.status === commitment) complete.add(String(slot.slot))
    look()
  }

  function fail(error: Error): void {
    failure = error
    look()
  }

  /** Waits for the complete slot of this transaction and checks the order of its updates. */
  async function check(signature: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      look = () => {
        if (failure) reject(failure)
        else if (complete.has(slots.get(signature) ?? '')) resolve()
      }
      look()
    })
    look = () => {}
    checkOrder(updates, slots.get(signature) as string, commitment)
  }

  return { updates, flowing: flowing.promise, see, fail, check }
}

/** Every kind arrived for that slot; content first, then block, meta and status. */
function checkOrder(updates: readonly Update[], slot: string, commitment: number): void {
  const kinds: string[] = []
  for (const update of updates) {
    const kind = Object.keys(NAMES).find((name) => update[name] !== undefined && update[name] !== null)
    if (!kind || slotOf(update, kind) !== slot) continue
    if (kind === 'slot' && (update['slot'] as Slot).status !== commitment) continue
    kinds.push(kind)
    assert.deepEqual(update.filters, [NAMES[kind]])
  }
  for (const kind of Object.keys(NAMES)) assert.ok(kinds.includes(kind), `no ${kind} in slot ${slot}`)
  const last = (kind: string) => kinds.lastIndexOf(kind)
  const content = Math.max(...['account', 'transaction', 'transactionStatus', 'entry'].map(last))
  assert.ok(content < last('block') && last('block') < last('blockMeta') && last('blockMeta') < last('slot'))
  assert.equal(kinds.at(-1), 'slot')
  assert.ok(kinds.indexOf('account') < kinds.indexOf('transaction'))
}

function slotOf(update: Update, kind: string): string {
  return String((update[kind] as { slot: string | number }).slot)
}
