import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  AddressLookupTableProgram,
  Keypair,
  NONCE_ACCOUNT_LENGTH,
  NonceAccount,
  PublicKey,
  SYSVAR_CLOCK_PUBKEY,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { startTestChain } from '../test-chain.ts'
import type { LocalChain } from './chain.ts'
import type { ChainEvent } from './model.ts'
import { sha256 } from './poh.ts'

const SOL = 1_000_000_000n
const alice = Keypair.fromSeed(new Uint8Array(32).fill(7))
const bob = Keypair.fromSeed(new Uint8Array(32).fill(8))
const aliceText = alice.publicKey.toBase58()

type BuildOptions = { blockhash?: string; signers?: Keypair[] }

function build(
  chain: LocalChain,
  instructions: TransactionInstruction[],
  { blockhash, signers = [alice] }: BuildOptions = {},
) {
  const recent = blockhash ?? chain.latestBlockhash('processed').blockhash
  const transaction = new Transaction({
    feePayer: (signers[0] as Keypair).publicKey,
    blockhash: recent,
    lastValidBlockHeight: 1,
  })
  transaction.add(...instructions)
  transaction.sign(...signers)
  return new Uint8Array(transaction.serialize())
}

const pay = (lamports: number) =>
  SystemProgram.transfer({ fromPubkey: alice.publicKey, toPubkey: bob.publicKey, lamports })

async function land(chain: LocalChain, wire: Uint8Array) {
  const outcome = await chain.submit(wire)
  assert(outcome.ok, JSON.stringify(outcome))
  await chain.produceBlock()
  const record = chain.transaction(outcome.signature)
  assert(record)
  return record
}

async function startFunded() {
  const host = await startTestChain()
  await host.chain.airdrop(aliceText, 100n * SOL)
  await host.chain.produceBlock()
  return host
}

describe('slots', () => {
  test('an airdrop becomes visible at processed, then confirmed, then finalized', async () => {
    await using host = await startTestChain()
    const { chain, clock } = host
    assert.equal(chain.slot('processed'), 0)
    assert.equal(chain.openSlot(), 1)
    const outcome = await chain.airdrop(aliceText, SOL)
    assert(outcome.ok)
    assert.equal(chain.account(aliceText, 'processed'), null)
    clock.advance(400)
    assert.equal(chain.slot('processed'), 1)
    assert.equal(chain.account(aliceText, 'processed')?.lamports, SOL)
    assert.equal(chain.account(aliceText, 'confirmed'), null)
    clock.advance(400)
    assert.equal(chain.account(aliceText, 'confirmed')?.lamports, SOL)
    assert.equal(chain.account(aliceText, 'finalized'), null)
    clock.advance(400 * 30)
    assert.equal(chain.slot('finalized'), 1)
    assert.equal(chain.account(aliceText, 'finalized')?.lamports, SOL)
    assert.equal(chain.account(aliceText, 'finalized')?.rentEpoch, 18446744073709551615n)
    assert.equal(chain.transaction(outcome.signature)?.slot, 1)
    assert.deepEqual(
      [...chain.signaturesOf(aliceText)].map(({ signature }) => signature),
      [outcome.signature],
    )
    assert.equal(chain.transactionCount('processed'), 1)
    assert.equal(chain.transactionCount('finalized'), 1)
  })

  test('emits the events of a slot in the order opened, frozen, confirmed, finalized', async () => {
    await using host = await startTestChain({ commitment: { confirmedSlots: 1, finalizedSlots: 2 } })
    const seen: string[] = []
    host.chain.subscribe((event: ChainEvent) =>
      seen.push(`${event.kind} ${'slot' in event ? event.slot : event.block.slot}`),
    )
    host.clock.advance(1200)
    const expected = [
      ['frozen 1', 'confirmed 0', 'opened 2'],
      ['frozen 2', 'confirmed 1', 'finalized 0', 'opened 3'],
      ['frozen 3', 'confirmed 2', 'finalized 1', 'opened 4'],
    ]
    assert.deepEqual(seen, expected.flat())
  })

  test('the clock sysvar follows the wall clock and slots do not drift', async () => {
    await using host = await startTestChain()
    const { chain, clock } = host
    const startSeconds = Math.floor(clock.nowMs() / 1000)
    for (let i = 0; i < 100; i++) clock.advance(130)
    assert.equal(chain.slot('processed'), 32) // 13 s / 400 ms
    const data = chain.account(SYSVAR_CLOCK_PUBKEY.toBase58(), 'processed')?.data as Uint8Array
    const view = new DataView(data.buffer, data.byteOffset)
    assert.equal(view.getBigUint64(0, true), 32n)
    assert.equal(Number(view.getBigInt64(32, true)) - startSeconds, 12)
    assert.equal(chain.block(32)?.time, startSeconds + 12)
  })

  test('the blockhash is the hash of the last entry, and entries chain from the parent', async () => {
    await using host = await startFunded()
    const { chain } = host
    const record = await land(chain, build(chain, [pay(1_000_000)]))
    const block = chain.block(record.slot)
    assert(block)
    const parent = chain.block(block.parentSlot)
    assert.equal(block.previousBlockhash, parent?.blockhash)
    assert.equal(block.entries.length, 65)
    assert.equal(encodeBase58(block.entries.at(-1)?.hash as Uint8Array), block.blockhash)
    const [first, second] = block.entries
    assert.equal(first?.transactionCount, 1)
    assert.deepEqual(second?.hash, sha256(first?.hash as Uint8Array))
    assert.equal(chain.latestBlockhash('processed').lastValidBlockHeight, block.height + 150)
  })

  test('the leader receives half of the base fee and all of the priority fee', async () => {
    await using host = await startFunded()
    const { chain } = host
    const before = chain.account(chain.identity, 'processed')?.lamports as bigint
    const record = await land(chain, build(chain, [pay(1_000_000)]))
    const reward = chain.block(record.slot)?.rewards?.[0]
    assert.equal(reward?.lamports, 2500n)
    assert.equal(chain.account(chain.identity, 'processed')?.lamports, before + 2500n)
  })
})

describe('submit refuses', () => {
  test('a transaction that was already processed', async () => {
    await using host = await startFunded()
    const { chain } = host
    const wire = build(chain, [pay(1_000_000)])
    const [first, second] = await Promise.all([chain.submit(wire), chain.submit(wire)])
    assert(first.ok)
    assert.deepEqual(second, { ok: false, reason: 'rejected', err: 'AlreadyProcessed' })
    await chain.produceBlock()
    assert.deepEqual(await chain.submit(wire), { ok: false, reason: 'rejected', err: 'AlreadyProcessed' })
    const simulate = async (replaceBlockhash: boolean) => {
      const run = await chain.simulate(wire, { verifySignatures: false, replaceBlockhash })
      return run === 'engine-down' ? run : run.err
    }
    assert.equal(await simulate(false), 'AlreadyProcessed')
    // With another blockhash it is another transaction.
    assert.equal(await simulate(true), null)
    // The age of the blockhash is checked first.
    host.clock.advance(400 * 151)
    assert.deepEqual(await chain.submit(wire), { ok: false, reason: 'rejected', err: 'BlockhashNotFound' })
    assert.equal(await simulate(false), 'BlockhashNotFound')
    assert.equal(await simulate(true), null)
  })

  test('a blockhash 151 blocks old, but not one 150 blocks old', async () => {
    await using host = await startFunded()
    const { chain, clock } = host
    const { blockhash } = chain.latestBlockhash('processed')
    const simulated = async () => {
      const options = { verifySignatures: false, replaceBlockhash: false }
      const run = await chain.simulate(build(chain, [pay(3_000_000)], { blockhash }), options)
      return run === 'engine-down' ? run : run.err
    }
    clock.advance(400 * 144)
    assert.equal(await simulated(), null)
    // A simulated transaction has yet to be forwarded: it needs six blocks more.
    clock.advance(400)
    assert.equal(await simulated(), 'BlockhashNotFound')
    clock.advance(400 * 5)
    assert.equal(chain.blockhashAge(blockhash, 'processed'), 150)
    assert.equal((await chain.submit(build(chain, [pay(1_000_000)], { blockhash }))).ok, true)
    clock.advance(400)
    assert.equal(chain.blockhashAge(blockhash, 'processed'), 151)
    const late = await chain.submit(build(chain, [pay(2_000_000)], { blockhash }))
    assert.deepEqual(late, { ok: false, reason: 'rejected', err: 'BlockhashNotFound' })
  })

  test('bytes that are not a transaction', async () => {
    await using host = await startTestChain()
    assert.deepEqual(await host.chain.submit(new Uint8Array(40)), {
      ok: false,
      reason: 'rejected',
      err: 'SanitizeFailure',
    })
  })

  test('a transaction over limits.pendingMax', async () => {
    await using host = await startTestChain({ limits: { pendingMax: 2 } })
    const { chain } = host
    const outcomes = await Promise.all([1n, 2n, 3n].map((n) => chain.airdrop(aliceText, n * SOL)))
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.ok ? 'ok' : outcome.reason)),
      ['ok', 'ok', 'queue-full'],
    )
  })
})

test('equal airdrops in one slot are different transactions', async () => {
  await using host = await startTestChain()
  const outcomes = await Promise.all([1, 2, 3].map(() => host.chain.airdrop(aliceText, SOL)))
  const signatures = outcomes.map((outcome) => outcome.ok && outcome.signature)
  assert.equal(new Set(signatures).size, 3)
  await host.chain.produceBlock()
  assert.equal(host.chain.account(aliceText, 'processed')?.lamports, 3n * SOL)
})

describe('durable nonces', () => {
  const nonce = Keypair.fromSeed(new Uint8Array(32).fill(9))
  const advance = SystemProgram.nonceAdvance({ noncePubkey: nonce.publicKey, authorizedPubkey: alice.publicKey })
  const nonceOf = (chain: LocalChain) =>
    NonceAccount.fromAccountData(chain.account(nonce.publicKey.toBase58(), 'processed')?.data as Uint8Array).nonce

  async function startWithNonce() {
    const host = await startFunded()
    const { chain } = host
    const lamports = Number(chain.minimumBalance(NONCE_ACCOUNT_LENGTH))
    const keys = { noncePubkey: nonce.publicKey, authorizedPubkey: alice.publicKey }
    const create = SystemProgram.createNonceAccount({ fromPubkey: alice.publicKey, lamports, ...keys })
    await land(chain, build(chain, create.instructions, { signers: [alice, nonce] }))
    return host
  }

  test('a nonce transaction lands once after its blockhash expired', async () => {
    await using host = await startWithNonce()
    const { chain, clock } = host
    const before = nonceOf(chain)
    const wire = build(chain, [advance, pay(1_000_000)], { blockhash: before })
    clock.advance(400 * 200)
    const record = await land(chain, wire)
    assert.equal(record.meta.err, null)
    assert.notEqual(nonceOf(chain), before)
    // The new nonce is derived from the blockhash of the parent of the block it was advanced in.
    const parent = new PublicKey(chain.block(record.slot)?.previousBlockhash as string).toBytes()
    assert.equal(nonceOf(chain), encodeBase58(sha256(Buffer.from('DURABLE_NONCE'), parent)))
    for (const late of [wire, build(chain, [advance, pay(2_000_000)], { blockhash: before })]) {
      assert.deepEqual(await chain.submit(late), { ok: false, reason: 'rejected', err: 'BlockhashNotFound' })
    }
  })

  test('a nonce transaction is executed once in the open slot', async () => {
    await using host = await startWithNonce()
    const { chain } = host
    const wire = build(chain, [advance, pay(1_000_000)], { blockhash: nonceOf(chain) })
    const repeated = { ok: false, reason: 'rejected', err: 'AlreadyProcessed' }
    const [first, second] = await Promise.all([chain.submit(wire), chain.submit(wire)])
    assert.deepEqual([first.ok, second, await chain.submit(wire)], [true, repeated, repeated])
    const { transactions } = await chain.produceBlock()
    assert.equal(transactions.length, 1)
  })

  test('a failing transaction advances the nonce and pays the fee', async () => {
    await using host = await startWithNonce()
    const { chain } = host
    const before = nonceOf(chain)
    const lamports = chain.account(aliceText, 'processed')?.lamports as bigint
    const record = await land(chain, build(chain, [advance, pay(10 ** 15)], { blockhash: before }))
    assert.deepEqual(record.meta.err, { InstructionError: [1, { Custom: 1 }] })
    assert.notEqual(nonceOf(chain), before)
    assert.equal(chain.account(aliceText, 'processed')?.lamports, lamports - 5000n)
    assert.deepEqual(record.writes.map(({ address }) => address).sort(), [aliceText, nonce.publicKey.toBase58()].sort())
  })

  test('a nonce advances once per slot', async () => {
    await using host = await startWithNonce()
    const { chain } = host
    const first = await chain.submit(build(chain, [advance], { blockhash: nonceOf(chain) }))
    assert(first.ok)
    const second = await chain.submit(build(chain, [advance, pay(1_000_000)]))
    assert(second.ok)
    await chain.produceBlock()
    assert.deepEqual(chain.transaction(second.signature)?.meta.err, { InstructionError: [0, { Custom: 7 }] })
  })

  test('a nonce with another authority is refused', async () => {
    await using host = await startWithNonce()
    const { chain } = host
    await chain.airdrop(bob.publicKey.toBase58(), SOL)
    const theft = SystemProgram.nonceAdvance({ noncePubkey: nonce.publicKey, authorizedPubkey: bob.publicKey })
    const outcome = await chain.submit(build(chain, [theft], { blockhash: nonceOf(chain), signers: [bob] }))
    assert.deepEqual(outcome, { ok: false, reason: 'rejected', err: 'BlockhashNotFound' })
  })
})

test('a lookup table is usable from the slot after it was extended', async () => {
  await using host = await startFunded()
  const { chain, clock } = host
  clock.advance(400 * 3)
  const [create, table] = AddressLookupTableProgram.createLookupTable({
    authority: alice.publicKey,
    payer: alice.publicKey,
    recentSlot: chain.slot('processed'),
  })
  const extend = AddressLookupTableProgram.extendLookupTable({
    lookupTable: table,
    authority: alice.publicKey,
    payer: alice.publicKey,
    addresses: [bob.publicKey],
  })
  const created = await chain.submit(build(chain, [create, extend]))
  assert(created.ok)

  const lookup = { key: table, state: { addresses: [bob.publicKey] } as never, isActive: () => true }
  const buildV0 = (lamports: number) => {
    const { blockhash } = chain.latestBlockhash('processed')
    const message = new TransactionMessage({
      payerKey: alice.publicKey,
      recentBlockhash: blockhash,
      instructions: [pay(lamports)],
    })
    const transaction = new VersionedTransaction(message.compileToV0Message([lookup as never]))
    transaction.sign([alice])
    return transaction.serialize()
  }
  const early = await chain.submit(buildV0(1_000_000))
  assert.deepEqual(early, { ok: false, reason: 'rejected', err: 'InvalidAddressLookupTableIndex' })
  await chain.produceBlock()
  const record = await land(chain, buildV0(2_000_000))
  assert.equal(record.meta.err, null)
  assert.deepEqual(record.meta.loadedAddresses, { writable: [bob.publicKey.toBase58()], readonly: [] })
  assert.equal(chain.account(bob.publicKey.toBase58(), 'processed')?.lamports, 2_000_000n)
  assert.equal([...chain.signaturesOf(bob.publicKey.toBase58())][0]?.signature, record.signature)
})

describe('simulation', () => {
  test('replaces the blockhash on request', async () => {
    await using host = await startFunded()
    const { chain } = host
    const wire = build(chain, [pay(1_000_000)], { blockhash: SystemProgram.programId.toBase58() })
    const options = { verifySignatures: false, replaceBlockhash: false }
    const refused = await chain.simulate(wire, options)
    assert(refused !== 'engine-down')
    assert.equal(refused.err, 'BlockhashNotFound')
    const run = await chain.simulate(wire, { ...options, replaceBlockhash: true })
    assert(run !== 'engine-down')
    assert.equal(run.err, null)
    assert.deepEqual(run.replacementBlockhash, chain.latestBlockhash('processed'))
    assert.equal(run.postAccounts.get(bob.publicKey.toBase58())?.lamports, 1_000_000n)
    assert.equal(chain.account(bob.publicKey.toBase58(), 'processed'), null)
  })
})

test('accountsOwnedBy reads each commitment', async () => {
  await using host = await startFunded()
  const { chain } = host
  const mine = () =>
    [...chain.accountsOwnedBy(SystemProgram.programId.toBase58(), 'processed')].map(([address]) => address)
  assert(mine().includes(aliceText))
  const owner = Keypair.fromSeed(new Uint8Array(32).fill(3)).publicKey
  await land(
    chain,
    build(chain, [SystemProgram.assign({ accountPubkey: bob.publicKey, programId: owner }), pay(1_000_000)], {
      signers: [alice, bob],
    }),
  )
  assert.deepEqual(
    [...chain.accountsOwnedBy(owner.toBase58(), 'processed')].map(([address]) => address),
    [bob.publicKey.toBase58()],
  )
  assert.deepEqual([...chain.accountsOwnedBy(owner.toBase58(), 'confirmed')], [])
})

test('the clock, epoch start and epoch schedule change with the first slot of an epoch', async () => {
  await using host = await startTestChain({ slotsPerEpoch: 32 })
  const { chain, clock } = host
  const read = () => {
    const data = chain.account(SYSVAR_CLOCK_PUBKEY.toBase58(), 'processed')?.data as Uint8Array
    const view = new DataView(data.buffer, data.byteOffset)
    return {
      epoch: view.getBigUint64(16, true),
      start: view.getBigInt64(8, true),
      scheduled: view.getBigUint64(24, true),
      now: view.getBigInt64(32, true),
    }
  }
  clock.advance(400 * 31)
  const before = read()
  assert.equal(before.epoch, 0n)
  clock.advance(400)
  assert.deepEqual({ ...read(), now: 0n }, { epoch: 1n, start: read().now, scheduled: 2n, now: 0n })
  const { start } = read()
  clock.advance(400 * 5)
  assert.equal(read().start, start)
})
