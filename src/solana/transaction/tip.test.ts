import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encodeParsedTransaction } from '../../../test/support/solana/encode-transaction.ts'
import { checkTip } from './tip.ts'
import { type ParsedTransaction, parseTransaction } from './transaction.ts'

const MIN = 1_000_000n
const VERSIONS = ['legacy', 0, 1] as const
type Version = (typeof VERSIONS)[number]

const key = (n: number) => new Uint8Array(32).fill(n)
const [PAYER, TIP, OTHER_TIP, STRANGER, PROGRAM] = [key(1), key(200), key(201), key(50), key(60)]
const SYSTEM = key(0)
const RULE = { accounts: [TIP, OTHER_TIP], minLamports: MIN }

type Part = { program: Uint8Array; accounts: number[]; data: Uint8Array }

/** Keys in header order: signers (the last `readonlySigned` of them read-only), writable others, read-only others. */
type Shape = {
  signers?: Uint8Array[]
  readonlySigned?: number
  writable?: Uint8Array[]
  readonly?: Uint8Array[]
  parts: Part[]
  lookups?: { writable: number[]; readonly: number[] }[]
}

function build(version: Version, shape: Shape): Uint8Array {
  const signers = shape.signers ?? [PAYER]
  const readonly = shape.readonly ?? [SYSTEM]
  const staticKeys = [...signers, ...(shape.writable ?? [TIP]), ...readonly]
  const indexOf = (wanted: Uint8Array) => staticKeys.findIndex((one) => Buffer.compare(one, wanted) === 0)
  return encodeParsedTransaction({
    version,
    signatures: signers.map(() => key(9)).map((half) => Uint8Array.of(...half, ...half)),
    message: new Uint8Array(),
    header: {
      numRequiredSignatures: signers.length,
      numReadonlySigned: shape.readonlySigned ?? 0,
      numReadonlyUnsigned: readonly.length,
    },
    staticKeys,
    recentBlockhash: key(7),
    instructions: shape.parts.map(({ program, accounts, data }) => ({
      programIdIndex: indexOf(program),
      accounts: Uint8Array.from(accounts),
      data,
    })),
    addressTableLookups: (shape.lookups ?? []).map(({ writable, readonly: rest }) => ({
      accountKey: key(90),
      writableIndexes: Uint8Array.from(writable),
      readonlyIndexes: Uint8Array.from(rest),
    })),
    config:
      version === 1
        ? { priorityFeeLamports: null, computeUnitLimit: 1000, loadedAccountsDataSizeLimit: 1000, heapSize: null }
        : null,
    wireLength: 0,
  })
}

function data(kind: number, lamports: bigint, ...rest: Uint8Array[]): Uint8Array {
  const head = new Uint8Array(12)
  new DataView(head.buffer).setUint32(0, kind, true)
  new DataView(head.buffer).setBigUint64(4, lamports, true)
  return Uint8Array.from([head, ...rest].flatMap((bytes) => [...bytes]))
}

const transfer = (lamports: bigint, from = 0, to = 1): Part => ({
  program: SYSTEM,
  accounts: [from, to],
  data: data(2, lamports),
})
const u64 = (n: number) => Uint8Array.of(n, 0, 0, 0, 0, 0, 0, 0)
const seeded = (lamports: bigint, accounts: number[], seedBytes = 3, given = seedBytes): Part => ({
  program: SYSTEM,
  accounts,
  data: data(11, lamports, u64(seedBytes), new Uint8Array(given), key(3)),
})
const call = (accounts: number[]): Part => ({ program: PROGRAM, accounts, data: data(2, MIN) })

type Case = { name: string; shape: Shape; is: string; found?: bigint; not?: readonly Version[] }

/** Only version 0 has lookup tables; in the other formats the parser refuses such an index. */
const ONLY_V0 = { not: ['legacy', 1] as const }

const CASES: readonly Case[] = [
  { name: 'exactly the minimum', shape: { parts: [transfer(MIN)] }, is: 'tip' },
  { name: 'more than the minimum', shape: { parts: [transfer(MIN * 50n)] }, is: 'tip' },
  { name: 'the largest amount there is', shape: { parts: [transfer(2n ** 64n - 1n)] }, is: 'tip' },
  {
    name: 'below the minimum by one lamport',
    shape: { parts: [transfer(MIN - 1n)] },
    is: 'below-minimum',
    found: MIN - 1n,
  },
  { name: 'nothing at all', shape: { parts: [transfer(0n)] }, is: 'below-minimum', found: 0n },
  { name: 'no instruction', shape: { parts: [] }, is: 'no-transfer' },
  { name: 'to another account', shape: { writable: [STRANGER], parts: [transfer(MIN)] }, is: 'no-transfer' },
  {
    name: 'split over two transfers',
    shape: { parts: [transfer(600_000n), transfer(700_000n)] },
    is: 'below-minimum',
    found: 700_000n,
  },
  {
    name: 'split over two tip accounts',
    shape: { writable: [TIP, OTHER_TIP], parts: [transfer(999_999n), transfer(999_999n, 0, 2)] },
    is: 'below-minimum',
    found: 999_999n,
  },
  { name: 'one of two transfers is enough', shape: { parts: [transfer(1n), transfer(MIN)] }, is: 'tip' },
  { name: 'the second tip account', shape: { writable: [TIP, OTHER_TIP], parts: [transfer(MIN, 0, 2)] }, is: 'tip' },
  {
    name: 'after an instruction that may fail',
    shape: { readonly: [SYSTEM, PROGRAM], parts: [call([0, 1]), transfer(MIN)] },
    is: 'tip',
  },
  {
    name: 'before an instruction that may fail',
    shape: { readonly: [SYSTEM, PROGRAM], parts: [transfer(MIN), call([0, 1])] },
    is: 'tip',
  },
  {
    name: 'only through a call of another program',
    shape: { readonly: [SYSTEM, PROGRAM], parts: [call([0, 1, 2])] },
    is: 'no-transfer',
  },
  {
    name: 'the tip account is read-only',
    shape: { writable: [STRANGER], readonly: [TIP, SYSTEM], parts: [transfer(MIN, 0, 2)] },
    is: 'read-only',
  },
  {
    name: 'the source does not sign',
    shape: { writable: [STRANGER, TIP], parts: [transfer(MIN, 1, 2)] },
    is: 'source',
  },
  {
    name: 'the source is read-only',
    shape: { signers: [PAYER, STRANGER], readonlySigned: 1, parts: [transfer(MIN, 1, 2)] },
    is: 'source',
  },
  { name: 'a second signer pays', shape: { signers: [PAYER, STRANGER], parts: [transfer(MIN, 1, 2)] }, is: 'tip' },
  {
    name: 'bytes after the instruction',
    shape: { parts: [{ program: SYSTEM, accounts: [0, 1], data: data(2, MIN, key(4)) }] },
    is: 'tip',
  },
  {
    name: 'instruction data cut short',
    shape: { parts: [{ program: SYSTEM, accounts: [0, 1], data: data(2, MIN).slice(0, 11) }] },
    is: 'no-transfer',
  },
  {
    name: 'no receiver named',
    shape: { parts: [{ program: SYSTEM, accounts: [0], data: data(2, MIN) }] },
    is: 'no-transfer',
  },
  {
    name: 'another instruction of the System Program',
    shape: { parts: [{ program: SYSTEM, accounts: [0, 1], data: data(3, MIN) }] },
    is: 'no-transfer',
  },
  { name: 'with seed', shape: { writable: [STRANGER, TIP], parts: [seeded(MIN, [1, 0, 2])] }, is: 'tip' },
  {
    name: 'with seed, below the minimum',
    shape: { writable: [STRANGER, TIP], parts: [seeded(5n, [1, 0, 2])] },
    is: 'below-minimum',
    found: 5n,
  },
  {
    name: 'with seed, the base does not sign',
    shape: { writable: [STRANGER, TIP], parts: [seeded(MIN, [0, 1, 2])] },
    is: 'source',
  },
  {
    name: 'with seed, cut short',
    shape: { writable: [STRANGER, TIP], parts: [seeded(MIN, [1, 0, 2], 200, 3)] },
    is: 'source',
  },
  {
    name: 'the payer tips itself as a tip account',
    shape: { signers: [TIP], writable: [], parts: [transfer(MIN, 0, 0)] },
    is: 'tip',
  },
  {
    name: 'the receiver comes from a lookup table',
    shape: { writable: [], lookups: [{ writable: [0], readonly: [] }], parts: [transfer(MIN, 0, 2)] },
    is: 'lookup-table',
    ...ONLY_V0,
  },
  {
    name: 'a small transfer through a table is no near miss',
    shape: { writable: [], lookups: [{ writable: [0], readonly: [] }], parts: [transfer(5n, 0, 2)] },
    is: 'no-transfer',
    ...ONLY_V0,
  },
  {
    name: 'a table beside a good tip does no harm',
    shape: { lookups: [{ writable: [0], readonly: [1] }], parts: [transfer(MIN, 0, 3), transfer(MIN)] },
    is: 'tip',
    ...ONLY_V0,
  },
  {
    name: 'a seeded source from a table, writable there',
    shape: { lookups: [{ writable: [0], readonly: [] }], parts: [seeded(MIN, [3, 0, 1])] },
    is: 'tip',
    ...ONLY_V0,
  },
  {
    name: 'a seeded source from a table, read-only there',
    shape: { lookups: [{ writable: [0], readonly: [1] }], parts: [seeded(MIN, [4, 0, 1])] },
    is: 'source',
    ...ONLY_V0,
  },
  {
    name: 'too small to a static account, and the rest through a table: reports below-minimum',
    shape: { lookups: [{ writable: [0], readonly: [] }], parts: [transfer(MIN, 0, 3), transfer(7n)] },
    is: 'below-minimum',
    found: 7n,
    ...ONLY_V0,
  },
]

for (const version of VERSIONS) {
  describe(`tip in version ${version}`, () => {
    for (const { name, shape, is, found, not } of CASES) {
      if (not?.includes(version) === true) continue
      test(name, () => {
        const check = checkTip(parsed(build(version, shape)), RULE)
        assert.equal(check.ok ? 'tip' : check.fault, is)
        if (!check.ok) assert.equal(check.foundLamports, found ?? 0n)
      })
    }
  })
}

test('the table has at least 25 cases in every format', () => {
  for (const version of VERSIONS) assert.ok(CASES.filter(({ not }) => not?.includes(version) !== true).length >= 25)
})

test('applies a higher minimum', () => {
  const wire = build(0, { parts: [transfer(MIN)] })
  assert.equal(checkTip(parsed(wire), { ...RULE, minLamports: MIN + 1n }).ok, false)
})

test('returns the payer and the instruction of the tip', () => {
  const check = checkTip(
    parsed(
      build(0, { signers: [PAYER, STRANGER], parts: [call([0]), transfer(MIN, 1, 2)], readonly: [SYSTEM, PROGRAM] }),
    ),
    RULE,
  )
  assert.deepEqual(check.ok ? [check.from, check.instruction] : check.fault, [1, 1])
})

function parsed(wire: Uint8Array): ParsedTransaction {
  const read = parseTransaction(wire)
  assert.ok(read.ok, read.ok ? '' : read.reason)
  return read.transaction
}
