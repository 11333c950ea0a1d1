import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import {
  manySigned,
  signatureOf,
  TIP_ACCOUNTS,
  tipInstruction,
  tipped,
  walletOf,
} from '../../../test/support/sender/start.ts'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { buildLegacyMessage, signMessage } from '../../solana/transaction/build.ts'
import { parseSenderOptions, type SenderOptionsInput } from '../options.ts'
import type { Receipt } from '../receipts/receipt.ts'
import { createReceipts, type Receipts } from '../receipts/receipts.ts'
import { type Accept, type Acceptance, createAccept } from './accept.ts'
import { decodeText, decodeWire } from './decode.ts'
import type { Verdict } from './signature-verifier.ts'
import { TIP_LAMPORTS_MAX, tipTerms, validateTip } from './tip-terms.ts'

const BLOCKHASH = encodeBase58(new Uint8Array(32).fill(3))
const WINDOW_MS = 120_000
const wire = tipped(walletOf(0), BLOCKHASH, 'one')

describe('accept, on a manual clock', () => {
  let clock: ManualClock
  let receipts: Receipts
  let noPath: number
  let sent: Receipt[]
  let checks: ((verdict: Verdict) => void)[]
  let world: { isOpen: boolean; delayMs: number; isJournalOpen: boolean; isDoubtful: boolean; recorded: boolean }
  let accept: Accept
  /** What the verifier returns at once. */
  let atOnce: 'good' | 'bad' | 'full' | undefined
  let journal: PromiseWithResolvers<boolean> | undefined
  let onStart: () => void
  let onRecord: () => void

  function open(limits: SenderOptionsInput['limits'] = {}): void {
    clock = createManualClock()
    sent = []
    noPath = 0
    checks = []
    atOnce = undefined
    journal = undefined
    onStart = () => {}
    onRecord = () => {}
    world = { isOpen: true, delayMs: 0, isJournalOpen: true, isDoubtful: false, recorded: true }
    const options = parseSenderOptions({ tipAccounts: TIP_ACCOUNTS, limits })
    receipts = createReceipts({ ...options.limits, keepMs: 600_000 }, { clock, onSettled() {} })
    accept = createAccept(options.limits, {
      ...tipTerms(options),
      receipts,
      clock,
      dispatch: {
        get isOpen() {
          return world.isOpen
        },
        paths: ['leaders', 'relay'],
        start: (receipt) => {
          sent.push(receipt)
          onStart()
        },
        [Symbol.dispose]() {},
      },
      landing: { check: () => undefined },
      verifier: {
        get delayMs() {
          return world.delayMs
        },
        verify(_wire, _transaction, done) {
          if (atOnce === undefined) checks.push(done)
          return atOnce ?? 'pending'
        },
      },
      journal: {
        get isOpen() {
          return world.isJournalOpen
        },
        get isDoubtful() {
          return world.isDoubtful
        },
        recordAccepted: () => {
          onRecord()
          return journal?.promise ?? Promise.resolve(world.recorded)
        },
      },
      onDispatched() {},
      onNoPath: () => void (noPath += 1),
    })
  }

  beforeEach(() => open())

  const give = async (bytes = wire, address = 'somebody') => accept(() => decodeWire(bytes), address)
  /** For outcomes that are synchronous: without a check and without I/O. */
  function giveNow(bytes = wire): Acceptance {
    const outcome = accept(() => decodeWire(bytes), 'somebody')
    assert.ok(!(outcome instanceof Promise), 'nothing is waited for')
    return outcome
  }

  const limitOf = (outcome: Acceptance) => (outcome.ok ? undefined : outcome.refusal.data['limit'])

  async function giveChecked(bytes = wire, verdict: Verdict = 'good', address = 'somebody') {
    const outcome = give(bytes, address)
    checks.at(-1)?.(verdict)
    checks = []
    return outcome
  }

  test('with a verdict at once it is sent before the call returns; the response still waits for the journal', async () => {
    atOnce = 'good'
    journal = Promise.withResolvers()
    const outcome = accept(() => decodeWire(wire), 'somebody')
    assert.deepEqual([outcome instanceof Promise, sent.length, receipts.pending], [true, 1, 1])
    const duplicate = accept(() => decodeWire(wire), 'somebody')
    let isSettled = false
    for (const each of [outcome, duplicate]) void Promise.resolve(each).then(() => (isSettled = true))
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(isSettled, false)
    journal.resolve(true)
    assert.deepEqual(await outcome, { ok: true, signature: signatureOf(wire), isNew: true })
    assert.deepEqual(await duplicate, { ok: true, signature: signatureOf(wire), isNew: false })
    assert.equal(sent.length, 1)
  })

  test('its packets leave before its journal line is begun', async () => {
    atOnce = 'good'
    const order: string[] = []
    // As the leaders' connection sends: in a microtask.
    onStart = () => queueMicrotask(() => order.push('packets'))
    onRecord = () => order.push('line')
    assert.ok((await give()).ok)
    assert.deepEqual(order, ['packets', 'line'])
  })

  test('transactions whose journal line is not written yet count as being checked', async () => {
    open({ checkingMax: 1 })
    atOnce = 'good'
    journal = Promise.withResolvers()
    const outcome = accept(() => decodeWire(wire), 'somebody')
    const two = tipped(walletOf(0), BLOCKHASH, 'two')
    assert.equal(limitOf(giveNow(two)), 'checkingMax')
    journal.resolve(true)
    assert.ok((await outcome).ok)
    assert.ok((await give(two)).ok)
  })

  for (const [verdict, code, limit] of [
    ['bad', 'signature-invalid', undefined],
    ['full', 'rate-limited', 'checkingMax'],
  ] as const) {
    test(`${verdict} at once: refused before the call returns, not sent, and the payer is not charged`, async () => {
      open({ perPayerPerSecond: 1, perPayerBurst: 1, checkingMax: 1 })
      atOnce = verdict
      const outcome = giveNow()
      assert.deepEqual([outcome.ok ? '' : outcome.refusal.code, limitOf(outcome), sent.length], [code, limit, 0])
      atOnce = 'good'
      assert.ok((await give()).ok, 'nothing is left of the refused one')
      assert.equal(limitOf(giveNow(tipped(walletOf(0), BLOCKHASH, 'two'))), 'perPayerPerSecond')
      assert.equal(sent.length, 1)
    })
  }

  test('reports pending, landed and expired duplicates without a check until DEDUP_MS has passed', async () => {
    assert.deepEqual(await giveChecked(), { ok: true, signature: signatureOf(wire), isNew: true })
    const known = { ok: true, signature: signatureOf(wire), isNew: false }
    assert.deepEqual(giveNow(), known)
    receipts.settle(sent[0] as Receipt, 'expired', 7)
    clock.advance(WINDOW_MS - 1)
    assert.deepEqual([giveNow(), sent.length, checks.length], [known, 1, 0])
    clock.advance(1)
    assert.deepEqual(await giveChecked(), { ...known, isNew: true }, 'it may be tried again')
    assert.equal(sent.length, 2)
    receipts.land(sent[1] as Receipt, { slot: 1, confirmation: 'confirmed', error: null })
    clock.advance(WINDOW_MS * 2)
    assert.deepEqual([giveNow(), sent.length], [known, 2], 'one that landed is done')
  })

  test('a transaction whose receipt had to make room is still sent once within DEDUP_MS', async () => {
    open({ receiptsMax: 2 })
    for (const memo of ['one', 'b', 'c', 'd']) {
      assert.ok((await giveChecked(tipped(walletOf(0), BLOCKHASH, memo))).ok)
      receipts.settle(sent.at(-1) as Receipt, 'expired', 7)
      clock.advance(100)
    }
    assert.deepEqual([sent.length, receipts.size, receipts.get((sent[0] as Receipt).key)], [4, 2, undefined])
    const known = { ok: true, signature: signatureOf(wire), isNew: false }
    assert.deepEqual([giveNow(), checks.length, sent.length], [known, 0, 4])
    const forged = Uint8Array.from(wire)
    forged[forged.length - 1] = (forged.at(-1) as number) ^ 1
    assert.equal((await giveChecked(forged, 'bad')).ok, false, 'other bytes are checked')
    clock.advance(WINDOW_MS)
    assert.deepEqual([await giveChecked(), sent.length], [{ ...known, isNew: true }, 5], 'it may be tried again')
  })

  test('when no further signature can be remembered, new transactions are refused by that limit', async () => {
    open({ receiptsMax: 1, knownSignaturesMax: 2 })
    for (const memo of ['one', 'b', 'c']) {
      assert.ok((await giveChecked(tipped(walletOf(0), BLOCKHASH, memo))).ok)
      receipts.settle(sent.at(-1) as Receipt, 'expired', 7)
    }
    const refused = giveNow(tipped(walletOf(0), BLOCKHASH, 'd'))
    assert.deepEqual(
      [limitOf(refused), refused.ok || refused.refusal.data['size'], sent.length],
      ['knownSignaturesMax', 2, 3],
    )
    assert.ok(giveNow().ok, 'a duplicate is recognized all the same')
    clock.advance(WINDOW_MS)
    assert.ok((await giveChecked(tipped(walletOf(0), BLOCKHASH, 'd'))).ok, 'there is room again')
  })

  test('concurrent duplicates share a check; other bytes with the same signature are checked separately', async () => {
    const [first, second] = [give(), give()]
    const forged = Uint8Array.from(wire)
    forged[forged.length - 1] = (forged.at(-1) as number) ^ 1
    const third = give(forged)
    assert.equal(checks.length, 2)
    checks[1]?.('bad')
    checks[0]?.('good')
    assert.deepEqual([(await first).ok, (await second).ok, (await third).ok, sent.length], [true, true, false, 1])
    assert.equal((await giveChecked(forged, 'bad')).ok, false, 'nor afterwards')
  })

  test('a duplicate is recognized by its bytes while they are held, and by their hash afterwards', async () => {
    assert.ok((await giveChecked()).ok)
    const forged = Uint8Array.from(wire)
    forged[forged.length - 1] = (forged.at(-1) as number) ^ 1
    for (const isReleased of [false, true]) {
      if (isReleased) (sent[0] as Receipt).job = undefined
      assert.deepEqual(giveNow(), { ok: true, signature: signatureOf(wire), isNew: false })
      const outcome = await giveChecked(forged, 'bad')
      assert.equal(outcome.ok ? '' : outcome.refusal.code, 'signature-invalid')
    }
    assert.equal(sent.length, 1)
  })

  test('refuses a tip that is larger than any real one, whichever account pays it', async () => {
    const largest = tipped(walletOf(0), BLOCKHASH, 'largest', BigInt(TIP_LAMPORTS_MAX))
    assert.ok((await giveChecked(largest)).ok)
    for (const lamports of [BigInt(TIP_LAMPORTS_MAX) + 1n, 2n ** 53n, 2n ** 64n - 1n]) {
      const signers = [walletOf(0), walletOf(1)] as const
      const message = buildLegacyMessage({
        feePayer: signers[0].publicKey,
        recentBlockhash: decodeBase58(BLOCKHASH),
        instructions: [tipInstruction(signers[1], lamports)],
      })
      const tooLarge = signMessage(message, signers)
      const outcome = giveNow(tooLarge)
      assert.ok(!outcome.ok)
      const { code, message: text, data } = outcome.refusal
      assert.deepEqual([code, data['reason'], limitOf(outcome)], ['invalid-params', 'tip-too-large', 'tipLamportsMax'])
      assert.match(text, /1000000000000000 lamports/)
      assert.deepEqual([data['size'], data['foundLamports']], [TIP_LAMPORTS_MAX, Number(lamports)])
      const validated = validateTip(tooLarge, { tipAccounts: TIP_ACCOUNTS, minTipLamports: 1_000_000 })
      assert.ok(!validated.ok && validated.refusal.data['reason'] === 'tip-too-large')
    }
    assert.equal(sent.length, 1)
  })

  for (const [verdict, code, limit] of [
    ['bad', 'signature-invalid', undefined],
    ['late', 'rate-limited', 'checkDelayMsMax'],
  ] as const) {
    test(`${verdict}: refused, not sent, and the payer is not charged`, async () => {
      open({ perPayerPerSecond: 1, perPayerBurst: 1 })
      const outcome = await giveChecked(wire, verdict)
      assert.deepEqual([outcome.ok ? '' : outcome.refusal.code, limitOf(outcome), sent.length], [code, limit, 0])
      assert.ok((await giveChecked()).ok, 'the one place of the payer is still there')
      assert.equal(limitOf(await giveChecked(tipped(walletOf(0), BLOCKHASH, 'two'))), 'perPayerPerSecond')
      assert.equal(sent.length, 1)
    })
  }

  test('refuses for lack of capacity before any check and leaves no state behind', async () => {
    for (const [change, code, limit] of [
      [{ isOpen: false }, 'no-path', undefined],
      [{ isJournalOpen: false }, 'not-recorded', undefined],
      [{ delayMs: 11 }, 'rate-limited', 'checkDelayMsMax'],
    ] as const) {
      Object.assign(world, change)
      const outcome = giveNow()
      assert.deepEqual([outcome.ok ? '' : outcome.refusal.code, limitOf(outcome), checks.length], [code, limit, 0])
      Object.assign(world, { isOpen: true, isJournalOpen: true, delayMs: 0 })
    }
    assert.deepEqual([receipts.size, sent.length, noPath], [0, 0, 1])
    assert.ok((await giveChecked()).ok)
  })

  test('names the paths when none is open', () => {
    world.isOpen = false
    const outcome = giveNow()
    assert.ok(!outcome.ok)
    assert.deepEqual(outcome.refusal.data, { reason: 'paths-closed', paths: ['leaders', 'relay'] })
  })

  const of = (payer: number, memo: string) => tipped(walletOf(payer), BLOCKHASH, memo)

  test('limits the pending transactions of one address, including those being checked; other addresses are not affected', async () => {
    open({ pendingPerAddressMax: 2 })
    assert.ok((await giveChecked(of(1, 'a'))).ok)
    const checked = give(of(2, 'b'))
    assert.deepEqual([limitOf(giveNow(of(3, 'c'))), checks.length], ['pendingPerAddressMax', 1], 'before it is checked')
    checks.shift()?.('good')
    assert.ok((await checked).ok)
    const refused = giveNow(of(3, 'c'))
    assert.deepEqual([limitOf(refused), refused.ok || refused.refusal.data['size']], ['pendingPerAddressMax', 2])
    assert.ok((await giveChecked(of(3, 'c'), 'good', 'another')).ok)
    receipts.settle(sent[0] as Receipt, 'expired', 7)
    assert.ok((await giveChecked(of(4, 'd'))).ok, 'there is room again')
    assert.equal(limitOf(giveNow(of(5, 'e'))), 'pendingPerAddressMax')
  })

  test('limits the pending transactions over all addresses and payers, including those being checked', async () => {
    open({ pendingMax: 2 })
    assert.ok((await giveChecked(of(1, 'a'), 'good', 'a')).ok)
    const checked = give(of(2, 'b'), 'b')
    assert.deepEqual([limitOf(giveNow(of(3, 'c'))), checks.length], ['pendingMax', 1], 'before it is checked')
    checks.shift()?.('good')
    assert.ok((await checked).ok)
    const refused = giveNow(of(3, 'c'))
    assert.deepEqual([limitOf(refused), refused.ok || refused.refusal.data['size']], ['pendingMax', 2])
    receipts.settle(sent[0] as Receipt, 'expired', 7)
    assert.ok((await giveChecked(of(3, 'c'), 'good', 'c')).ok, 'there is room again')
  })

  test('limits the pending transactions of one payer over all addresses', async () => {
    open({ pendingPerPayerMax: 2 })
    for (const memo of ['a', 'b']) assert.ok((await giveChecked(of(1, memo), 'good', memo)).ok)
    const refused = await giveChecked(of(1, 'c'), 'good', 'c')
    assert.deepEqual(
      [limitOf(refused), refused.ok || refused.refusal.data['size'], sent.length],
      ['pendingPerPayerMax', 2, 2],
    )
    assert.ok((await giveChecked(of(2, 'c'), 'good', 'c')).ok)
    receipts.land(sent[0] as Receipt, { slot: 1, confirmation: 'confirmed', error: null })
    assert.ok((await giveChecked(of(1, 'd'), 'good', 'd')).ok, 'there is room again')
  })

  test('charges the signature budget of the address before the check', async () => {
    open({ signaturesPerAddressPerSecond: 12, perAddressBurst: 1, perAddressPerSecond: 1000 })
    const forged = (n: number) => manySigned(10, BLOCKHASH, String(n))
    assert.equal((await giveChecked(forged(1), 'bad')).ok, false)
    clock.advance(10)
    const outcome = giveNow(forged(2))
    assert.deepEqual([limitOf(outcome), checks.length], ['signaturesPerAddressPerSecond', 0])
    const another = give(forged(2), 'another')
    assert.equal(checks.length, 1, 'others are checked meanwhile')
    checks.shift()?.('bad')
    assert.equal((await another).ok, false)
    clock.advance(1000)
    void give(forged(3))
    assert.equal(checks.length, 1)
  })

  test('the signature budget allows the largest transaction, however small the rate', async () => {
    open({ perAddressPerSecond: 1, perAddressBurst: 1 })
    assert.ok((await giveChecked(manySigned(10, BLOCKHASH, 'large'))).ok)
  })

  test('a pending transaction holds a copy of its bytes, not the shared buffer', async () => {
    const outcome = accept(() => decodeText(Buffer.from(wire).toString('base64'), 'base64'), 'somebody')
    checks.shift()?.('good')
    assert.ok((await outcome).ok)
    assert.equal(sent[0]?.job?.wire.buffer.byteLength, wire.length)
  })

  test('does not decode a transaction over the limit of its address', async () => {
    open({ perAddressPerSecond: 1, perAddressBurst: 1 })
    assert.ok((await giveChecked()).ok)
    assert.equal(limitOf(await accept(() => assert.fail('not looked at'), 'somebody')), 'perAddressPerSecond')
    assert.ok((await accept(() => decodeWire(wire), 'another')).ok)
  })

  test('after a failed journal write reports whether it was sent, and sends nothing while the journal is doubtful', async () => {
    world.recorded = false
    const reported = await giveChecked()
    assert.deepEqual([reported.ok ? 'yes' : reported.refusal.data['sent'], sent.length], [true, 1])
    world.isDoubtful = true
    const held = await giveChecked(tipped(walletOf(0), BLOCKHASH, 'two'))
    assert.deepEqual([held.ok ? 'yes' : held.refusal.data['sent'], sent.length], [false, 1])
    world.recorded = true
    assert.ok((await giveChecked(tipped(walletOf(0), BLOCKHASH, 'three'))).ok)
  })
})
