import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedOf } from '../../../test/support/process/property.ts'
import { createSeededRandom, type Random, randomInt } from '../../core/random.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { createSigningKey, type SigningKey } from '../../solana/crypto/ed25519.ts'
import { buildLegacyMessage, signMessage, transferInstruction } from '../../solana/transaction/build.ts'
import type { LocalChain } from '../chain/chain.ts'
import type { Account, AccountWrite, Block, ChainEvent } from '../chain/model.ts'
import type { LocalnetOptionsInput } from '../options.ts'
import { startTestChain } from '../test-chain.ts'

const ALPENGLOW: LocalnetOptionsInput = { consensus: 'alpenglow', candidateBanksPercent: 100 }
const SOL = 1_000_000_000n
const wallets = Array.from({ length: 5 }, (_, index) => createSigningKey(new Uint8Array(32).fill(index + 1)))

function transfer(chain: LocalChain, from: SigningKey, to: SigningKey, lamports: bigint): Uint8Array {
  const message = buildLegacyMessage({
    feePayer: from.publicKey,
    recentBlockhash: decodeBase58(chain.latestBlockhash('processed').blockhash),
    instructions: [transferInstruction({ from: from.publicKey, to: to.publicKey, lamports })],
  })
  return signMessage(message, [from])
}

/** Blocks with up to six transfers each; some of them fail for lack of funds. */
async function produce(chain: LocalChain, random: Random, blocks: number): Promise<void> {
  const any = () => wallets[randomInt(random, wallets.length)] as SigningKey
  for (let block = 0; block < blocks; block++) {
    const wires = Array.from({ length: randomInt(random, 7) }, () =>
      transfer(chain, any(), any(), BigInt(1 + randomInt(random, 3_000_000_000))),
    )
    await Promise.all(wires.map((wire) => chain.submit(wire)))
    await chain.produceBlock()
  }
}

async function startFunded(options: LocalnetOptionsInput, seed: number) {
  const host = await startTestChain(options, { seed })
  const events: ChainEvent[] = []
  const accounts = new Map<string, Account>(host.chain.allAccounts('processed'))
  const balancesBefore = new Map<string, bigint>()
  host.chain.subscribe((event) => {
    events.push(event)
    if (event.kind !== 'frozen') return
    for (const { signature, writes } of event.block.transactions) {
      const [payer] = writes
      if (payer) balancesBefore.set(signature, accounts.get(payer.address)?.lamports ?? 0n)
      apply(accounts, writes)
    }
    apply(accounts, event.block.systemWrites)
  })
  for (const { publicKey } of wallets) await host.chain.airdrop(encodeBase58(publicKey), 10n * SOL)
  await host.chain.produceBlock()
  return { ...host, events, accounts, balancesBefore, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() }
}

function apply(accounts: Map<string, Account>, writes: readonly AccountWrite[]): void {
  for (const { address, account } of writes) {
    if (account) accounts.set(address, account)
    else accounts.delete(address)
  }
}

const plain = (accounts: Iterable<readonly [string, Account]>) =>
  new Map([...accounts].map(([address, account]) => [address, { ...account, data: Buffer.from(account.data) }]))

test('the state of the chain is that of the surviving banks alone', async (t) => {
  for (const seed of [seedOf(t), seedOf(t) + 1, seedOf(t) + 2]) {
    await using host = await startFunded(ALPENGLOW, seed)
    const { chain, events, accounts, balancesBefore } = host
    await produce(chain, createSeededRandom(seed), 60)
    assert.deepEqual(plain(chain.allAccounts('processed')), plain(accounts), `seed ${seed}`)
    // The engine executes on the state of the chain too, although it executed the candidates before.
    let checked = 0
    for (let slot = 1; slot <= chain.slot('processed'); slot++) {
      for (const { signature, meta } of (chain.block(slot) as Block).transactions) {
        assert.equal(meta.preBalances[0], balancesBefore.get(signature), `slot ${slot}`)
        checked++
      }
    }
    assert.ok(checked > 50, `${checked} transactions`)
    for (const event of events) {
      if (event.kind === 'frozen' || event.kind === 'confirmed' || event.kind === 'finalized')
        assert.equal(chain.block(event.block.slot)?.blockhash, event.block.blockhash)
    }
  }
})

test('every losing bank is dead, and is never confirmed; every slot keeps one bank', async (t) => {
  const seed = seedOf(t)
  await using host = await startFunded(ALPENGLOW, seed)
  const { chain, events } = host
  await produce(chain, createSeededRandom(seed), 100)
  const confirmedTo = chain.slot('confirmed')
  const ids = (kind: ChainEvent['kind']) =>
    events.flatMap((event) => (event.kind === kind && event.bankId !== undefined ? [event.bankId] : []))
  const slotOf = (event: ChainEvent) => ('block' in event ? event.block.slot : event.slot)
  const opened = events.filter((event) => event.kind === 'opened' && slotOf(event) <= confirmedTo)
  const confirmed = new Set(ids('confirmed'))
  const dead = ids('dead')
  assert.equal(new Set(dead).size, dead.length, 'a bank dies once')
  for (const event of opened) {
    const bankId = event.bankId as bigint
    assert.ok(dead.includes(bankId) !== confirmed.has(bankId), `bank ${bankId} is either dead or confirmed`)
  }
  assert.deepEqual(
    events.filter(({ kind }) => kind === 'confirmed').map(slotOf),
    Array.from({ length: confirmedTo + 1 }, (_, slot) => slot).filter((slot) => slot >= 0),
  )
  const candidates = events.filter((event) => event.kind === 'candidate')
  assert.ok(candidates.length > 100, 'with 100 % every slot has one or two candidates')
  for (const { bankId } of candidates) assert.ok(!confirmed.has(bankId))
  const survivor = (slot: number) => chain.block(slot) as Block
  assert.ok(candidates.every(({ block }) => block.blockhash !== survivor(block.slot).blockhash))
  const signatures = ({ transactions }: Block) => transactions.map(({ signature }) => signature).join()
  assert.ok(candidates.some(({ block }) => signatures(block) !== signatures(survivor(block.slot))))
  assert.ok(
    candidates.some(({ block }) => block.parentSlot < survivor(block.slot).parentSlot),
    'a parent is replaced',
  )
  const versions = events.flatMap((event) =>
    event.kind === 'frozen' || event.kind === 'candidate'
      ? [...event.block.systemWrites, ...event.block.transactions.flatMap(({ writes }) => writes)]
      : [],
  )
  assert.equal(new Set(versions.map(({ writeVersion }) => writeVersion)).size, versions.length)
})

test('the ids of banks differ between two instances', async () => {
  const idsOf = async (seed: number) => {
    await using host = await startFunded(ALPENGLOW, seed)
    await produce(host.chain, createSeededRandom(1), 5)
    return new Set(host.events.flatMap(({ bankId }) => bankId ?? []))
  }
  const [one, other] = [await idsOf(1), await idsOf(2)]
  assert.ok(one.size > 5 && one.isDisjointFrom(other))
})

test('a share of 0 % has no candidates; the tower has neither candidates nor bank ids nor footers', async () => {
  for (const options of [{ ...ALPENGLOW, candidateBanksPercent: 0 }, { candidateBanksPercent: 100 }] as const) {
    await using host = await startFunded(options, 3)
    await produce(host.chain, createSeededRandom(1), 10)
    assert.ok(!host.events.some(({ kind }) => kind === 'candidate' || kind === 'dead'))
    const isAlpenglow = 'consensus' in options
    assert.ok(host.events.every((event) => (event.bankId !== undefined) === (isAlpenglow && eventSlot(event) > 0)))
    assert.equal(host.chain.block(3)?.footer !== undefined, isAlpenglow)
  }
})

function eventSlot(event: ChainEvent): number {
  return 'block' in event ? event.block.slot : event.slot
}

test('blocks of Alpenglow have no ticks: their entries hold transactions, and the last one has the blockhash', async () => {
  await using host = await startFunded(ALPENGLOW, 1)
  const { chain } = host
  await produce(chain, createSeededRandom(1), 30)
  const hashes = new Set<string>()
  for (let slot = 1; slot <= chain.slot('processed'); slot++) {
    const { entries, transactions, blockhash } = chain.block(slot) as Block
    assert.ok(entries.every(({ transactionCount }) => transactionCount > 0))
    assert.equal(
      entries.reduce((sum, { transactionCount }) => sum + transactionCount, 0),
      transactions.length,
    )
    if (entries.length > 0) assert.equal(encodeBase58(entries.at(-1)?.hash as Uint8Array), blockhash)
    hashes.add(blockhash)
  }
  assert.equal(hashes.size, chain.slot('processed'), 'empty blocks have a hash of their own')
})

test('consensus and slot length change with the next slot, and back', async () => {
  await using host = await startFunded({ candidateBanksPercent: 50 }, 1)
  const { chain, clock, events } = host
  const ticks = async (ms: number) => {
    const before = chain.slot('processed')
    const reached = Promise.withResolvers<void>()
    const stop = chain.subscribe(({ kind }) => kind === 'frozen' && reached.resolve())
    clock.advance(ms)
    await reached.promise
    stop()
    return chain.slot('processed') - before
  }
  assert.equal(await ticks(400), 1)
  chain.setSlotMs(200)
  chain.setConsensus('alpenglow')
  assert.deepEqual([chain.slotMs, chain.consensus], [400, 'tower'])
  assert.equal(await ticks(400), 1)
  assert.deepEqual([chain.slotMs, chain.consensus], [200, 'alpenglow'])
  const last = chain.slot('processed')
  assert.equal(chain.block(last)?.footer, undefined)
  assert.equal(await ticks(200), 1)
  assert.ok(chain.block(last + 1)?.footer)
  assert.deepEqual(chain.alpenglowGenesis(), { slot: last, blockhash: chain.block(last)?.blockhash })
  // The blocks of the tower that were not finalized are, with the first block of Alpenglow or the next.
  await produce(chain, createSeededRandom(1), 2)
  const finalized = events.flatMap((event) => (event.kind === 'finalized' ? [event.block.slot] : []))
  assert.deepEqual(
    finalized,
    Array.from({ length: finalized.length }, (_, slot) => slot),
  )
  assert.ok(chain.slot('finalized') >= chain.slot('processed') - 1)
  chain.setConsensus('tower')
  await produce(chain, createSeededRandom(2), 3)
  assert.equal(chain.alpenglowGenesis(), undefined)
  assert.ok(chain.slot('finalized') >= (finalized.at(-1) as number))
})
