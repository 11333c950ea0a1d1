import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { transactionShapes, wireOf } from '../../../test/support/solana/wire-transactions.ts'
import { isSimpleVote, isSimpleVoteWire } from '../transaction/simple-vote.ts'
import { parseTransaction } from '../transaction/transaction.ts'
import { FORMAT_LIMITS } from '../transaction/types.ts'
import { createWireFields, locateFields } from '../transaction/wire-fields.ts'
import { ProtobufWriter } from './protobuf-writer.ts'
import { createMeasured, measureTransaction, putTransaction } from './put-wire-transaction.ts'
import { writeTransaction } from './write-transaction.ts'

test('a transaction in wire form is written as the same transaction parsed; its keys and the vote flag are the same', (t) => {
  const writer = new ProtobufWriter()
  const fields = createWireFields()
  const measured = createMeasured()
  const seen = { votes: 0, v0: 0, v1: 0 }
  checkProperty(
    t,
    fc.property(transactionShapes('legacy', 0, 1), (given) => {
      const wire = wireOf(given)
      const parse = parseTransaction(wire, FORMAT_LIMITS)
      assert.ok(parse.ok, parse.ok ? '' : parse.reason)
      const { transaction } = parse
      writeTransaction(writer, transaction)
      const expected = Buffer.from(writer.take())
      measureTransaction(wire, measured)
      assert.equal(measured.bytes, expected.length)
      // Exactly as much room as it needs, at an offset.
      const written = Buffer.alloc(3 + expected.length)
      assert.equal(putTransaction(wire, measured, written, 3), written.length)
      assert.ok(expected.equals(written.subarray(3)))
      locateFields(wire, fields)
      const keys = Array.from({ length: fields.keys }, (_, i) => {
        const at = fields.keysAt + 32 * i
        return wire.subarray(at, at + 32)
      })
      assert.deepEqual(keys.map(String), transaction.staticKeys.map(String))
      assert.equal(fields.keysEnd, fields.keysAt + 32 * fields.keys)
      assert.deepEqual([fields.isVersioned, fields.isV1], [transaction.version !== 'legacy', transaction.version === 1])
      assert.equal(isSimpleVoteWire(wire, fields), isSimpleVote(transaction))
      seen.votes += Number(isSimpleVote(transaction))
      seen.v0 += Number(transaction.version === 0)
      seen.v1 += Number(transaction.version === 1)
    }),
    300,
    10_000,
  )
  assert.ok(seen.votes > 0 && seen.v0 > 0 && seen.v1 > 0)
})
