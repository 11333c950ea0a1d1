import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { checkProperty } from '../../../../test/support/process/property.ts'
import { encodeParsedTransaction } from '../../../../test/support/solana/encode-transaction.ts'
import { createSeededRandom } from '../../../core/random.ts'
import { FilterIndex, type IndexedFilters } from './filter-index.ts'
import { keyText, type TransactionFilter } from './filters.ts'
import type { DecodedTransaction } from './source.ts'
import { accountOf, decodedTransaction, withRange } from './test-transactions.ts'

/** The upper half is the prefix of the account in the index; some have the same. */
const ACCOUNTS = [
  ...[0, 1, 2, 0x00_01_00_00, 0x00_1f_00_00, 0x00_20_00_00, 0x00_20_00_01],
  ...[0x01_00_00_00, 0x80_1f_00_00, 0xff_1f_00_00, 0xff_e0_00_00, 0xff_ff_00_00],
]
const accounts = fc.uniqueArray(fc.constantFrom(...ACCOUNTS), { maxLength: 4 })
const filter = fc.record({
  vote: fc.constantFrom(undefined, true, false),
  include: accounts,
  required: accounts,
  exclude: fc.uniqueArray(fc.constantFrom(...ACCOUNTS), { maxLength: 6 }),
})
const transaction = fc.record({ fixed: accounts, writable: accounts, readonly: accounts, isVote: fc.boolean() })
type Given = { vote: boolean | undefined; include: number[]; required: number[]; exclude: number[] }

function compile({ vote, include, required, exclude }: Given, name: string): TransactionFilter {
  const keys = (numbers: number[]) => new Set(numbers.map((number) => keyText(accountOf(number))))
  return { name: Buffer.from(name), vote, include: keys(include), required: keys(required), exclude: keys(exclude) }
}

/** The same in wire form, which is not parsed. */
function wireAlone(decoded: DecodedTransaction): DecodedTransaction {
  const parsed = { get: () => assert.fail('the wire form is enough') }
  return Object.defineProperty({ ...decoded, wire: encodeParsedTransaction(decoded.parsed) }, 'parsed', parsed)
}

function runAll(steps: Generator): void {
  for (const _step of steps);
}

/** The rule in one line for each part, without an index. */
function isMatch({ vote, include, required, exclude }: Given, has: Set<number>, isVote: boolean): boolean {
  return (
    (vote === undefined || vote === isVote) &&
    (include.length === 0 || include.some((number) => has.has(number))) &&
    required.every((number) => has.has(number)) &&
    !exclude.some((number) => has.has(number))
  )
}

test('each stream gets the names of exactly its matching filters, also after streams have ended', (t) => {
  checkProperty(
    t,
    fc.property(
      fc.array(fc.array(filter, { maxLength: 4 }), { minLength: 1, maxLength: 5 }),
      fc.array(fc.nat(4), { maxLength: 3 }),
      fc.array(transaction, { minLength: 1, maxLength: 10 }),
      (streams, removed, transactions) => {
        const index = new FilterIndex<number>(createSeededRandom(1))
        const open = new Map<number, { given: Given[]; indexed: IndexedFilters<number> }>()
        for (const [owner, given] of streams.entries()) {
          const compiled = given.map((each, at) => compile(each, `${owner}/${at}`))
          const indexed = index.create(owner, compiled)
          runAll(index.add(indexed))
          index.setActive(indexed, true)
          open.set(owner, { given, indexed })
        }
        for (const owner of removed) {
          const stream = open.get(owner)
          if (stream === undefined) continue
          index.setActive(stream.indexed, false)
          // What is not active does not match, also where it is still in the index.
          if (owner % 2 === 0) runAll(index.remove(stream.indexed))
          open.delete(owner)
        }
        for (const [at, { fixed, writable, readonly, isVote }] of transactions.entries()) {
          const got = new Map<number, string[]>()
          const decoded = decodedTransaction(at, { fixed, writable, readonly }, { isVote })
          // In wire form, which is read then, or parsed.
          const given = at % 2 === 0 ? decoded : wireAlone(at % 3 === 0 ? decoded : withRange(decoded))
          index.match(given, (owner, names) => {
            assert.ok(!got.has(owner), 'a stream is delivered to once')
            got.set(owner, names.map(String).sort())
          })
          const has = new Set([...fixed, ...writable, ...readonly])
          const expected = new Map<number, string[]>()
          for (const [owner, { given }] of open) {
            const names = given.flatMap((each, i) => (isMatch(each, has, isVote) ? [`${owner}/${i}`] : []))
            if (names.length > 0) expected.set(owner, names.sort())
          }
          assert.deepEqual(got, expected)
        }
        for (const { indexed } of open.values()) {
          index.setActive(indexed, false)
          runAll(index.remove(indexed))
        }
        assert.equal(index.size, 0)
        index.match(decodedTransaction(0, { fixed: [0, 1, 2, 3] }), () => assert.fail('no filter is left'))
      },
    ),
    200,
    20_000,
  )
})

test('keeps nothing of a stream that was delivered to and has ended', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const index = new FilterIndex<object>(createSeededRandom(1))
  const deliverAndEnd = () => {
    const owner = {}
    const indexed = index.create(owner, [compile({ vote: undefined, include: [], required: [], exclude: [] }, 'all')])
    runAll(index.add(indexed))
    index.setActive(indexed, true)
    let delivered = 0
    const transaction = decodedTransaction(0, { fixed: [1] })
    index.match(transaction, () => (delivered += 1))
    assert.equal(delivered, 1)
    index.setActive(indexed, false)
    runAll(index.remove(indexed))
    return [new WeakRef(owner), new WeakRef(transaction)]
  }
  const held = deliverAndEnd()
  await setImmediate()
  collect()
  assert.deepEqual(
    held.map((each) => each.deref()),
    [undefined, undefined],
  )
  assert.equal(index.size, 0)
})
