import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js'
import { createSeededRandom, type Random, randomInt } from '../core/random.ts'
import { repeatsOf } from '../core/test-seed.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { encodeBase58 } from '../solana/crypto/base58.ts'
import { packAccounts } from './chain/account-codec.ts'
import type { LocalChain } from './chain/chain.ts'
import type { SubmitOutcome } from './chain/model.ts'
import { Engine } from './engine/engine.ts'
import { startEngineProcess } from './engine/process.ts'
import type { EngineAccount, SimulateReply } from './engine/protocol.ts'
import { toAccount } from './engine/values.ts'
import { startTestChain } from './test-chain.ts'

const COUNT = repeatsOf({ short: 2_000, full: 100_000 })
const SEED = Number(process.env['SLUICE_SEED'] ?? Date.now() % 2 ** 31)
const MEMORY_GROWTH_MAX = 64 * 1024 * 1024
const alice = Keypair.fromSeed(new Uint8Array(32).fill(7))
const MEMO = new PublicKey('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr')

function seeds(blockhash: string): Uint8Array[] {
  const pay = SystemProgram.transfer({
    fromPubkey: alice.publicKey,
    toPubkey: Keypair.generate().publicKey,
    lamports: 1_000_000,
  })
  const memo = new TransactionInstruction({
    keys: [{ pubkey: alice.publicKey, isSigner: true, isWritable: true }],
    programId: MEMO,
    data: Buffer.from('hello'),
  })
  const create = SystemProgram.createAccount({
    fromPubkey: alice.publicKey,
    newAccountPubkey: alice.publicKey,
    lamports: 5,
    space: 10,
    programId: MEMO,
  })
  return [[pay], [memo], [pay, memo, create]].flatMap((instructions) => {
    const legacy = new Transaction({ feePayer: alice.publicKey, blockhash, lastValidBlockHeight: 1 }).add(
      ...instructions,
    )
    legacy.sign(alice)
    const message = new TransactionMessage({
      payerKey: alice.publicKey,
      recentBlockhash: blockhash,
      instructions,
    }).compileToV0Message()
    const v0 = new VersionedTransaction(message)
    v0.sign([alice])
    return [new Uint8Array(legacy.serialize()), v0.serialize()]
  })
}

/** Flips, sets, inserts and cuts a few bytes, most of them at lengths and counts. */
function mutate(random: Random, wire: Uint8Array): Uint8Array {
  let bytes = [...wire]
  for (let changes = 1 + randomInt(random, 3); changes > 0 && bytes.length > 0; changes--) {
    const at =
      random.float() < 0.5 ? randomInt(random, bytes.length) : Math.min(bytes.length - 1, 64 + randomInt(random, 8))
    const kind = randomInt(random, 5)
    if (kind === 0) bytes[at] = (bytes[at] as number) ^ (1 << randomInt(random, 8))
    else if (kind === 1) bytes[at] = randomInt(random, 256)
    else if (kind === 2) bytes[at] = randomInt(random, 5)
    else if (kind === 3) bytes.splice(at, 0, randomInt(random, 256))
    else bytes = bytes.slice(0, at)
  }
  return Uint8Array.from(bytes)
}

test(`${COUNT} mutated transactions: each receives a response, and the chain continues`, async () => {
  console.log(`SLUICE_SEED=${SEED}`)
  await using host = await startTestChain({ limits: { pendingMax: 500 } })
  const { chain, clock } = host
  assert((await chain.airdrop(alice.publicKey.toBase58(), 10n ** 15n)).ok)
  await chain.produceBlock()
  const random = createSeededRandom(SEED)
  const responses = new Map<string, number>()
  let halfway = 0
  for (let done = 0; done < COUNT; done += 500) {
    const wires = seeds(chain.latestBlockhash('processed').blockhash)
    const batch = Array.from({ length: 500 }, () =>
      chain.submit(mutate(random, wires[randomInt(random, wires.length)] as Uint8Array)),
    )
    for (const outcome of await Promise.all(batch))
      responses.set(nameOf(outcome), (responses.get(nameOf(outcome)) ?? 0) + 1)
    clock.advance(400)
    if (done < COUNT / 2) halfway = memoryOf(chain)
  }
  // The second half of the run does not use more memory than the first.
  const grown = memoryOf(chain) - halfway
  assert(grown < MEMORY_GROWTH_MAX, `grew by ${Math.round(grown / 1e6)} MB`)
  assert(responses.has('"SanitizeFailure"') && responses.has('"SignatureFailure"'), [...responses.keys()].join())
  assert(!responses.has('engine-down') && !responses.has('queue-full'), [...responses.keys()].join())
  assert.equal(chain.engineRestarts(), 0)
  assert((await chain.airdrop(alice.publicKey.toBase58(), 1_000_000n)).ok)
})

/** Resident bytes of this process and the engine's; the engine is counted only on Linux. */
function memoryOf(chain: LocalChain): number {
  const path = `/proc/${chain.enginePid()}/status`
  const engineKb = existsSync(path) ? Number(/VmRSS:\s+(\d+)/.exec(readFileSync(path, 'utf8'))?.[1]) : 0
  return process.memoryUsage.rss() + engineKb * 1024
}

function nameOf(outcome: SubmitOutcome): string {
  if (outcome.ok) return 'ok'
  return outcome.reason === 'rejected' ? JSON.stringify(outcome.err) : outcome.reason
}

/** Signature checks stop nearly all mutants above. Here none is checked, so the engine executes whatever parses. */
test('unsigned transactions that pass the parser do not abort the engine', async () => {
  const deps = { clock: systemClock, random: createSeededRandom(1), log: silentLogger }
  await using engine = await startEngineProcess({ ...deps, refill: () => [] })
  const parent = new Uint8Array(32).fill(9)
  const slot = { slot: 5, epoch: 0, epochStartTimestamp: 0, unixTimestamp: 1, slotsPerEpoch: 432_000 }
  const payer = { lamports: 10n ** 15n, owner: new Uint8Array(32), data: new Uint8Array(0), executable: false }
  await engine.fill([
    { op: 'open', slot: { ...slot, slotHashes: [{ slot: 4, hash: parent }], blockhashes: [parent] } },
    { op: 'load', accounts: packAccounts([[alice.publicKey.toBytes(), payer]]) },
  ])
  const random = createSeededRandom(SEED)
  const wires = seeds(encodeBase58(parent))
  let executed = 0
  let responded = 0
  const batchSize = 500
  for (let done = 0; done < COUNT; done += batchSize) {
    for (let i = 0; i < batchSize; i++) {
      const wire = mutate(random, wires[randomInt(random, wires.length)] as Uint8Array)
      engine.send({ op: 'simulate', wire, nonce: false, verifySignatures: false }, (reply) => {
        responded++
        assert(reply !== 'engine-down')
        if ((reply as SimulateReply).meta.err === null) executed++
      })
    }
    await until('every request of the batch has a response', () => responded === done + batchSize, 30_000)
  }
  assert(executed > COUNT / 100, `${executed} of ${COUNT} ran`)
  assert.equal(engine.restarts(), 0)
})

test('a killed engine restarts with all accounts, and history is unchanged', async () => {
  await using host = await startTestChain()
  const { chain, clock } = host
  const address = alice.publicKey.toBase58()
  const before = await chain.airdrop(address, 5_000_000_000n)
  assert(before.ok)
  await chain.produceBlock()
  // Landed in the open slot: only the main process has it when the engine dies.
  assert((await chain.airdrop(address, 7_000_000_000n)).ok)

  const startedMs = performance.now()
  process.kill(chain.enginePid() as number, 'SIGKILL')
  await until('the engine has exited', () => chain.enginePid() === undefined)
  const waiting = chain.airdrop(address, 1_000_000_000n)
  clock.advance(400) // a slot ends while no engine runs
  assert((await waiting).ok)
  assert(performance.now() - startedMs < 10_000)
  await chain.produceBlock()
  assert.equal(chain.engineRestarts(), 1)
  assert.equal(chain.account(address, 'processed')?.lamports, 13_000_000_000n)
  assert.equal(chain.transaction(before.signature)?.slot, 1)
  assert.equal([...chain.signaturesOf(address)].length, 3)
})

test('a program loaded as a fixture runs, also after an engine restart', async () => {
  const dump = new Engine().handle({ op: 'dump' })
  assert(dump && 'accounts' in dump)
  const memo = dump.accounts.find(([address]) => MEMO.equals(new PublicKey(address)))?.[1] as EngineAccount
  const programId = Keypair.fromSeed(new Uint8Array(32).fill(6)).publicKey
  await using host = await startTestChain({}, { fixtures: [[programId.toBase58(), toAccount(memo)]] })
  const { chain, clock } = host
  const call = (text: string) => {
    const { blockhash } = chain.latestBlockhash('processed')
    const transaction = new Transaction({ feePayer: alice.publicKey, blockhash, lastValidBlockHeight: 1 })
    transaction.add(new TransactionInstruction({ keys: [], programId, data: Buffer.from(text) }))
    transaction.sign(alice)
    return chain.submit(new Uint8Array(transaction.serialize()))
  }
  assert((await chain.airdrop(alice.publicKey.toBase58(), 10n ** 9n)).ok)
  const first = await call('first')
  process.kill(chain.enginePid() as number, 'SIGKILL')
  await until('the engine has exited', () => chain.enginePid() === undefined)
  clock.advance(400)
  const second = await call('second')
  await chain.produceBlock()
  for (const outcome of [first, second]) {
    assert(outcome.ok)
    assert.equal(chain.transaction(outcome.signature)?.meta.err, null)
  }
})
