import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { manySigned, tipped, walletOf } from '../../../test/support/sender/start.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'
import { FORMAT_LIMITS, type ParsedTransaction, WIRE_BYTES_MAX } from '../../solana/transaction/types.ts'
import { type SignatureVerifier, startSignatureVerifier, type Verdict } from './signature-verifier.ts'

const BLOCKHASH = encodeBase58(new Uint8Array(32).fill(3))
const PATIENT = { checkingMax: 1000, delayMsMax: 60_000, inLoopPerTurn: 0 }
const DEPS = { clock: createManualClock(), random: createSeededRandom(1), log: silentLogger }

function parsed(wire: Uint8Array): ParsedTransaction {
  const outcome = parseTransaction(wire)
  assert.ok(outcome.ok)
  return outcome.transaction
}

/** Every third has one bit of its signature or message flipped. */
function transactions(count: number): { readonly wire: Uint8Array; readonly isGood: boolean }[] {
  return Array.from({ length: count }, (_, n) => {
    const wire = Uint8Array.from(tipped(walletOf(n % 5), BLOCKHASH, `check ${n}`))
    const isGood = n % 3 !== 0
    const at = n % 2 === 0 ? 10 : wire.length - 1
    if (!isGood) wire[at] = (wire[at] as number) ^ 1
    return { wire, isGood }
  })
}

async function verifyAll(
  verifier: SignatureVerifier,
  all: ReturnType<typeof transactions>,
): Promise<(Verdict | undefined)[]> {
  const outcomes: (Verdict | undefined)[] = all.map(() => undefined)
  for (const [at, { wire }] of all.entries()) {
    assert.equal(
      verifier.verify(wire, parsed(wire), (verdict) => (outcomes[at] = verdict)),
      'pending',
    )
  }
  await until('all are verified', () => !outcomes.includes(undefined))
  return outcomes
}

for (const threads of [0, 1, 3]) {
  test(`every transaction gets its own verdict with ${threads} threads`, async () => {
    await using verifier = startSignatureVerifier({ ...PATIENT, threads }, DEPS)
    // The first round starts before the threads are ready and does not wait for them.
    for (let round = 0; round < 3; round++) {
      if (round > 0) await until('the threads are ready', () => verifier.threads === threads)
      const all = transactions(50)
      assert.deepEqual(
        await verifyAll(verifier, all),
        all.map(({ isGood }) => (isGood ? 'good' : 'bad')),
      )
    }
    assert.equal(verifier.delayMs, 0)
  })
}

describe('in the event loop', () => {
  const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

  test('the first two signatures of a turn are verified at once, the others by a thread', async () => {
    await using verifier = startSignatureVerifier({ ...PATIENT, threads: 1, inLoopPerTurn: 2 }, DEPS)
    await until('the thread is ready', () => verifier.threads === 1)
    for (let turn = 0; turn < 3; turn++) {
      const all = transactions(4)
      const outcomes: (Verdict | undefined)[] = all.map(() => undefined)
      const made = all.map(({ wire }, at) => verifier.verify(wire, parsed(wire), (verdict) => (outcomes[at] = verdict)))
      assert.deepEqual(made, ['bad', 'good', 'pending', 'pending'])
      await until('the thread has verified the others', () => outcomes.filter(Boolean).length === 2)
      assert.deepEqual(outcomes, [undefined, undefined, 'good', 'bad'])
      await nextTurn()
    }
  })

  test('none while the threads have work, and none with more signatures than a turn may verify', async () => {
    await using verifier = startSignatureVerifier({ ...PATIENT, threads: 1, inLoopPerTurn: 2 }, DEPS)
    await until('the thread is ready', () => verifier.threads === 1)
    const outcomes: Verdict[] = []
    const give = (wire: Uint8Array) => verifier.verify(wire, parsed(wire), (verdict) => outcomes.push(verdict))
    give(manySigned(3, BLOCKHASH, 'three signatures'))
    const [, good] = transactions(2)
    give(good?.wire as Uint8Array)
    assert.deepEqual(outcomes, [], 'both wait for the thread')
    await until('both are verified', () => outcomes.length === 2)
    assert.deepEqual(outcomes, ['good', 'good'])
  })
})

test('a thread verifies transactions above the default limits, which the configured ones accepted', async () => {
  await using verifier = startSignatureVerifier({ ...PATIENT, threads: 1 }, DEPS)
  await until('the thread is ready', () => verifier.threads === 1)
  const wire = tipped(walletOf(0), BLOCKHASH, 'x'.repeat(WIRE_BYTES_MAX))
  const outcome = parseTransaction(wire, FORMAT_LIMITS)
  assert.ok(wire.length > WIRE_BYTES_MAX && outcome.ok)
  const { transaction } = outcome
  assert.equal(await new Promise<Verdict>((resolve) => verifier.verify(wire, transaction, resolve)), 'good')
})

test('delayMs grows with the pending transactions, and checkingMax limits them', async () => {
  await using verifier = startSignatureVerifier({ ...PATIENT, threads: 1, checkingMax: 40 }, DEPS)
  const [one] = transactions(2).slice(1)
  const wire = one?.wire as Uint8Array
  let done = 0
  const verify = () => verifier.verify(wire, parsed(wire), () => (done += 1))
  assert.equal(verifier.delayMs, 0)
  assert.equal(verify(), 'pending')
  const first = verifier.delayMs
  assert.ok(first > 0)
  for (let n = 1; n < 40; n++) assert.equal(verify(), 'pending')
  assert.ok(Math.abs(verifier.delayMs - 40 * first) < 1e-6, 'it grows with the pending transactions')
  assert.equal(verify(), 'full', 'one too many')
  await until('all are verified', () => done === 40)
  assert.equal(verifier.delayMs, 0)
  assert.equal(verify(), 'pending', 'there is room again')
})

test('a transaction that waits longer than delayMsMax gets the verdict late, and delayMs is at least the wait of the oldest', async () => {
  const clock = createManualClock()
  const limits = { threads: 1, checkingMax: 1000, delayMsMax: 10, inLoopPerTurn: 0 }
  await using verifier = startSignatureVerifier(limits, { ...DEPS, clock })
  await until('the thread is ready', () => verifier.threads === 1)
  const all = transactions(200)
  const outcomes: Verdict[] = []
  for (const { wire } of all)
    assert.equal(
      verifier.verify(wire, parsed(wire), (verdict) => outcomes.push(verdict)),
      'pending',
    )
  clock.advance(5)
  assert.ok(verifier.delayMs >= 5)
  clock.advance(6)
  assert.ok(verifier.delayMs >= 11, 'the oldest has waited this long')
  await until('all have a verdict', () => outcomes.length === all.length)
  const verified = outcomes.filter((verdict) => verdict !== 'late').length
  assert.ok(verified > 0 && verified <= 16, `${verified} were at the thread already`)
  assert.equal(verifier.delayMs, 0)
  assert.deepEqual(await verifyAll(verifier, all.slice(0, 3)), ['bad', 'good', 'good'], 'a new transaction is not late')
})

test('a transaction that arrives at an idle service is not late, however long the event loop stalls in verify()', async () => {
  let nowMs = 0
  // The process stalls between any two reads of the clock.
  const clock = { ...createManualClock(), monotonicMs: () => (nowMs += 50) }
  const limits = { threads: 1, checkingMax: 1000, delayMsMax: 10, inLoopPerTurn: 0 }
  await using verifier = startSignatureVerifier(limits, { ...DEPS, clock })
  const all = transactions(6)
  for (const one of all) assert.deepEqual(await verifyAll(verifier, [one]), [one.isGood ? 'good' : 'bad'])
})

test('a thread that dies is restarted, and its transactions still get their verdicts', async () => {
  const clock = createManualClock()
  const entry = new URL('./test-dying-thread.ts', import.meta.url)
  await using verifier = startSignatureVerifier({ ...PATIENT, threads: 1 }, { ...DEPS, clock, entry })
  await until('the thread is ready', () => verifier.threads === 1)
  const all = transactions(20)
  assert.deepEqual(
    await verifyAll(verifier, all),
    all.map(({ isGood }) => (isGood ? 'good' : 'bad')),
  )
  assert.equal(verifier.threads, 0)
  clock.advance(1000)
  await until('the next thread is ready', () => verifier.threads === 1)
})
