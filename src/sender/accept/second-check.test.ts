import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sign, TIP_ACCOUNTS, tipInstruction, walletOf } from '../../../test/support/sender/start.ts'
import { advanceNonce } from '../../../test/support/solana/nonce.ts'
import { createManualClock } from '../../core/clock.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { checkTip } from '../../solana/transaction/tip.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'
import { type AccountChecks, createAccountChecks } from './account-checks.ts'
import { createAccountLookups } from './account-lookups.ts'
import { createLanding } from './landing.ts'
import type { Refusal } from './refusal.ts'
import { createSecondCheck } from './second-check.ts'
import { tipTerms } from './tip-terms.ts'

const [PAYER, NONCE] = [walletOf(0), walletOf(1)]
const SYSTEM = encodeBase58(new Uint8Array(32))
const NONCE_HEAD = [1, 0, 0, 0, 1, 0, 0, 0]
const { rule, terms } = tipTerms({ tipAccounts: TIP_ACCOUNTS, minTipLamports: 1_000_000 })
const pass: AccountChecks = { check: () => undefined }
const slotMs = () => 400

/** Checks transactions of one nonce account, which holds `held`, against a node two slots behind the newest one. */
function open() {
  const clock = createManualClock()
  const node = { held: 1, calls: 0 }
  const callNode = async () => {
    node.calls += 1
    const data = Buffer.of(
      ...NONCE_HEAD,
      ...PAYER.publicKey,
      ...new Uint8Array(32).fill(node.held),
      ...new Uint8Array(8),
    )
    return {
      context: { slot: 998 },
      value: [{ lamports: 1, owner: SYSTEM, data: [data.toString('base64'), 'base64'] }],
    }
  }
  const landing = createLanding({
    freshness: { check: () => 'expired' },
    payers: pass,
    nonces: createAccountChecks({ read: createAccountLookups({ callNode, clock }), clock, bestSlot: () => 1000 }),
    checkTwice: createSecondCheck({ clock, slotMs, waitingMax: 4 }),
    tables: pass,
    terms,
  })

  async function check(nonce: number): Promise<unknown> {
    const blockhash = encodeBase58(new Uint8Array(32).fill(nonce))
    const keys = { account: NONCE.publicKey, authority: PAYER.publicKey }
    const parsed = parseTransaction(sign(PAYER, blockhash, [advanceNonce(keys), tipInstruction(PAYER)]))
    assert.ok(parsed.ok)
    const tip = checkTip(parsed.transaction, rule)
    assert.ok(tip.ok)
    const refusal: Refusal | undefined = await landing.check(parsed.transaction, tip, {
      feePayer: 'payer',
      blockhash,
      lookupTables: [],
    })
    return refusal?.data['reason']
  }

  return { clock, node, check }
}

test('a transaction with the next nonce passes once a node that is a slot behind has it, and so does another one after it', async () => {
  const { clock, node, check } = open()
  const first = check(2)
  await clock.advanceAsync(399)
  node.held = 2
  await clock.advanceAsync(1)
  assert.equal(await first, undefined)
  assert.equal(await check(2), undefined)
  assert.equal(node.calls, 2)
})

test('a nonce that is still another one a slot later is refused, with two readings per second however often it is tried', async () => {
  const { clock, node, check } = open()
  for (let tries = 0; tries < 2; tries++) {
    const refused = check(2)
    await clock.advanceAsync(400)
    assert.equal(await refused, 'value')
  }
  assert.equal(node.calls, 2)
})

test('a limited number of transactions waits for the second check; the others are refused after the first', async () => {
  const { clock, check } = open()
  const reasons: string[] = []
  for (let n = 0; n < 7; n++) void check(2).then((reason) => reasons.push(String(reason)))
  await clock.advanceAsync(399)
  assert.deepEqual(reasons, ['value', 'value', 'value'])
  await clock.advanceAsync(1)
  assert.equal(reasons.length, 7)
  // Those that waited make room for others.
  await clock.advanceAsync(1000)
  void check(3).then((reason) => reasons.push(String(reason)))
  await clock.advanceAsync(399)
  assert.equal(reasons.length, 7)
  await clock.advanceAsync(1)
  assert.equal(reasons.length, 8)
})
