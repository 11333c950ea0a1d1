import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodeParsedTransaction } from '../../../test/support/encode-transaction.ts'
import { checkProperty, createRandom, randomBytesOf } from '../../../test/support/property.ts'
import { decodeBase58 } from '../crypto/base58.ts'
import { isSimpleVote, isSimpleVoteWire } from '../transaction/simple-vote.ts'
import { parseTransaction } from '../transaction/transaction.ts'
import { FORMAT_LIMITS, type ParsedTransaction } from '../transaction/types.ts'
import { createWireFields, hasWireFields, locateFields } from '../transaction/wire-fields.ts'
import { ProtobufWriter } from './protobuf-writer.ts'
import { writeTransaction, writeWireTransaction } from './write-transaction.ts'

const VOTE_PROGRAM = decodeBase58('Vote111111111111111111111111111111111111111')
const length = (max: number) => fc.oneof(fc.nat(4), fc.nat(max))
/** Valid by construction; indexes are taken modulo the number of keys. */
const shape = fc.record({
  version: fc.constantFrom('legacy' as const, 0 as const),
  signers: fc.integer({ min: 1, max: 4 }),
  others: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 180 })),
  isVoteProgram: fc.boolean(),
  seed: fc.nat(),
  instructions: fc.array(fc.record({ program: fc.nat(), accounts: length(200), data: length(20_000) }), {
    maxLength: 3,
  }),
  lookups: fc.array(fc.record({ writable: fc.nat(12), readonly: fc.nat(12) }), { maxLength: 3 }),
})
type Shape = typeof shape extends fc.Arbitrary<infer T> ? T : never

function wireOf({ version, signers, others, isVoteProgram, seed, instructions, lookups }: Shape): Uint8Array {
  const random = createRandom(seed)
  const staticKeys = Array.from({ length: signers + others }, () => randomBytesOf(random, 32))
  if (isVoteProgram) staticKeys[staticKeys.length - 1] = VOTE_PROGRAM
  const parsed: ParsedTransaction = {
    version,
    signatures: Array.from({ length: signers }, () => randomBytesOf(random, 64)),
    message: new Uint8Array(),
    header: { numRequiredSignatures: signers, numReadonlySigned: random(signers), numReadonlyUnsigned: random(others) },
    staticKeys,
    recentBlockhash: randomBytesOf(random, 32),
    instructions: instructions.map(({ program, accounts, data }) => ({
      // The last key, which may be the vote program, is as likely as all others.
      programIdIndex: program % 2 === 0 ? staticKeys.length - 1 : 1 + (program % (staticKeys.length - 1)),
      accounts: Uint8Array.from({ length: accounts }, () => random(staticKeys.length)),
      data: randomBytesOf(random, data),
    })),
    addressTableLookups:
      version === 'legacy'
        ? []
        : lookups
            .filter(({ writable, readonly }) => writable + readonly > 0)
            .map(({ writable, readonly }) => ({
              accountKey: randomBytesOf(random, 32),
              writableIndexes: randomBytesOf(random, writable),
              readonlyIndexes: randomBytesOf(random, readonly),
            })),
    config: null,
    wireLength: 0,
  }
  return encodeParsedTransaction(parsed)
}

test('a transaction in wire form is written as the same transaction parsed; its keys and the vote flag are the same', (t) => {
  const writer = new ProtobufWriter()
  const fields = createWireFields()
  const seen = { votes: 0, versioned: 0 }
  checkProperty(
    t,
    fc.property(shape, (given) => {
      const wire = wireOf(given)
      const parse = parseTransaction(wire, FORMAT_LIMITS)
      assert.ok(parse.ok, parse.ok ? '' : parse.reason)
      const { transaction } = parse
      assert.ok(hasWireFields(wire))
      writeTransaction(writer, transaction)
      const expected = Buffer.from(writer.take())
      writeWireTransaction(writer, wire)
      assert.ok(expected.equals(writer.take()))
      locateFields(wire, fields)
      const keys = Array.from({ length: fields.keys }, (_, i) => {
        const at = fields.keysAt + 32 * i
        return wire.subarray(at, at + 32)
      })
      assert.deepEqual(keys.map(String), transaction.staticKeys.map(String))
      assert.equal(fields.blockhashAt, fields.keysAt + 32 * fields.keys)
      assert.equal(isSimpleVoteWire(wire, fields), isSimpleVote(transaction))
      seen.votes += Number(isSimpleVote(transaction))
      seen.versioned += Number(transaction.version === 0)
    }),
    300,
    10_000,
  )
  assert.ok(seen.votes > 0 && seen.versioned > 0)
  assert.equal(hasWireFields(Uint8Array.of(0x81)), false)
})
