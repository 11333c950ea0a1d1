import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sign, TIP_ACCOUNTS, tipInstruction, walletOf } from '../../../test/support/sender/start.ts'
import { advanceNonce } from '../../../test/support/solana/nonce.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { type Instruction, transferInstruction } from '../../solana/transaction/build.ts'
import { checkTip } from '../../solana/transaction/tip.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'
import type { AccountChecks } from './account-checks.ts'
import type { Account } from './account-lookups.ts'
import { createLanding } from './landing.ts'
import type { SecondCheck } from './second-check.ts'
import { tipTerms } from './tip-terms.ts'

const SYSTEM = encodeBase58(new Uint8Array(32))
const BLOCKHASH = encodeBase58(new Uint8Array(32).fill(3))
const [PAYER, OTHER] = [walletOf(0), walletOf(1)]
const { rule, terms } = tipTerms({ tipAccounts: TIP_ACCOUNTS, minTipLamports: 1_000_000 })
const checkTwice: SecondCheck = (check) => check(false)
const [FEE, TIP] = [5000n, 1_000_000n]

async function refusalOf(account: Account, instructions: readonly Instruction[], age: 'fresh' | 'expired' = 'fresh') {
  const parsed = parseTransaction(sign(PAYER, BLOCKHASH, instructions))
  assert.ok(parsed.ok)
  const tip = checkTip(parsed.transaction, rule)
  assert.ok(tip.ok)
  const checks: AccountChecks = { check: (_address, faultOf) => faultOf(account) }
  const landing = createLanding({
    freshness: { check: () => age },
    payers: checks,
    nonces: checks,
    checkTwice,
    tables: checks,
    terms,
  })
  return landing.check(parsed.transaction, tip, { feePayer: 'payer', blockhash: BLOCKHASH, lookupTables: [] })
}

const holding = (lamports: bigint, owner = SYSTEM): Account => ({ lamports, owner, data: new Uint8Array() })
const named = (address: Uint8Array): Instruction => ({
  programId: new Uint8Array(32).fill(60),
  accounts: [{ address, signer: false, writable: true }],
  data: new Uint8Array(),
})

test('requires fee and tip from the payer, to the lamport', async () => {
  const instructions = [tipInstruction(PAYER)]
  assert.equal(await refusalOf(holding(FEE + TIP), instructions), undefined)
  const refusal = await refusalOf(holding(FEE + TIP - 1n), instructions)
  assert.deepEqual(refusal?.data, {
    payer: 'payer',
    lamports: 1_004_999,
    requiredLamports: 1_005_000,
    reason: 'lamports',
  })
})

test('refuses a payer that is owned by a program', async () => {
  const refusal = await refusalOf(holding(10n ** 12n, BLOCKHASH), [tipInstruction(PAYER)])
  assert.deepEqual([refusal?.code, refusal?.data['reason']], ['payer-cannot-pay', 'owner'])
})

test('refuses nonce data in an account that is owned by another program', async () => {
  const keys = { account: OTHER.publicKey, authority: PAYER.publicKey }
  const data = Uint8Array.of(
    1,
    0,
    0,
    0,
    1,
    0,
    0,
    0,
    ...PAYER.publicKey,
    ...decodeBase58(BLOCKHASH),
    ...new Uint8Array(8),
  )
  const instructions = [advanceNonce(keys), tipInstruction(PAYER)]
  const refusal = async (owner: string) =>
    (await refusalOf({ lamports: 10n ** 12n, owner, data }, instructions, 'expired'))?.data['reason']
  assert.deepEqual([await refusal(SYSTEM), await refusal(BLOCKHASH)], [undefined, 'not-a-nonce'])
})

test('payers, nonce accounts and lookup tables have separate caches, and nonces are checked for the blockhash of the transaction', async () => {
  const keys = { account: OTHER.publicKey, authority: PAYER.publicKey }
  const parsed = parseTransaction(sign(PAYER, BLOCKHASH, [advanceNonce(keys), tipInstruction(PAYER)]))
  assert.ok(parsed.ok)
  const tip = checkTip(parsed.transaction, rule)
  assert.ok(tip.ok)
  const checked = { payers: [] as string[], nonces: [] as string[], tables: [] as string[] }
  const noting = (kind: keyof typeof checked): AccountChecks => ({
    check: (address, _faultOf, state = 'any state') => void checked[kind].push(`${address} ${state}`),
  })
  const freshness = { check: () => 'expired' as const }
  const landing = createLanding({
    freshness,
    payers: noting('payers'),
    nonces: noting('nonces'),
    checkTwice,
    tables: noting('tables'),
    terms,
  })
  const lookupTables = ['first', 'second']
  await landing.check(parsed.transaction, tip, { feePayer: 'payer', blockhash: BLOCKHASH, lookupTables })
  assert.deepEqual(checked, {
    payers: ['payer any state'],
    tables: ['first any state', 'second any state'],
    nonces: [`${encodeBase58(OTHER.publicKey)} ${BLOCKHASH}`],
  })
})

test('does not require a tip that an earlier instruction may fund, but always the fee', async () => {
  for (const [what, earlier, isRequired] of [
    ['it names the payer', named(PAYER.publicKey), false],
    ['it names another account', named(OTHER.publicKey), true],
  ] as const) {
    const instructions = [earlier, tipInstruction(PAYER)]
    assert.equal((await refusalOf(holding(FEE), instructions)) !== undefined, isRequired, what)
    assert.notEqual(await refusalOf(holding(FEE - 1n), instructions), undefined, what)
  }
  const later = transferInstruction({ from: PAYER.publicKey, to: OTHER.publicKey, lamports: 1n })
  assert.notEqual(
    await refusalOf(holding(FEE), [tipInstruction(PAYER), later]),
    undefined,
    'a later one brings nothing',
  )
})

test('refuses a lookup table that does not exist or belongs to another program, not one that no node reports', async () => {
  const parsed = parseTransaction(sign(PAYER, BLOCKHASH, [tipInstruction(PAYER)]))
  assert.ok(parsed.ok)
  const tip = checkTip(parsed.transaction, rule)
  assert.ok(tip.ok)
  const table = holding(1n, 'AddressLookupTab1e1111111111111111111111111')
  const accounts: Record<string, Account> = { table, missing: null, other: holding(1n) }
  const pass: AccountChecks = { check: () => undefined }
  const tables: AccountChecks = {
    check: (address, faultOf) => {
      const account = accounts[address]
      return account === undefined ? undefined : faultOf(account)
    },
  }
  const landing = createLanding({
    freshness: { check: () => 'fresh' },
    payers: pass,
    nonces: pass,
    checkTwice,
    tables,
    terms,
  })
  const refusalFor = (...lookupTables: string[]) =>
    landing.check(parsed.transaction, tip, { feePayer: 'payer', blockhash: BLOCKHASH, lookupTables })
  assert.equal(refusalFor('table', 'unreported'), undefined)
  for (const [address, reason] of [
    ['missing', 'lookup-table-not-found'],
    ['other', 'lookup-table-owner'],
  ] as const) {
    const refusal = await refusalFor('table', address)
    assert.deepEqual([refusal?.code, refusal?.data], ['invalid-params', { reason, lookupTable: address }])
  }
})

test('only the blockhash of a transaction without a durable nonce may be looked up twice', async () => {
  const asked: unknown[] = []
  const freshness = { check: (_blockhash: string, isNonce?: boolean) => (asked.push(isNonce), 'fresh' as const) }
  const missing: AccountChecks = { check: (_address, faultOf) => faultOf(null) }
  const pass: AccountChecks = { check: () => undefined }
  const landing = createLanding({ freshness, payers: pass, nonces: missing, checkTwice, tables: pass, terms })
  const keys = { account: OTHER.publicKey, authority: PAYER.publicKey }
  for (const instructions of [[tipInstruction(PAYER)], [advanceNonce(keys), tipInstruction(PAYER)]]) {
    const parsed = parseTransaction(sign(PAYER, BLOCKHASH, instructions))
    assert.ok(parsed.ok)
    const tip = checkTip(parsed.transaction, rule)
    assert.ok(tip.ok)
    await landing.check(parsed.transaction, tip, { feePayer: 'payer', blockhash: BLOCKHASH, lookupTables: [] })
  }
  assert.deepEqual(asked, [false, true])
})
