import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../../test/support/process/property.ts'
import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { SubscribeDeshredRequestSchema } from '../../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../../solana/geyser/protobuf.ts'
import { encodeFilterName } from '../../../solana/geyser/update-envelope.ts'
import { type CompiledFilters, compileFilters, keyText } from './filters.ts'
import { readDeshredRequest } from './request.ts'
import { accountOf } from './test-transactions.ts'

const address = fc.nat(20).map((number) => encodeBase58(accountOf(number)))
const accounts = fc.array(address, { maxLength: 5 })
const filter = fc.record(
  { vote: fc.boolean(), accountInclude: accounts, accountExclude: accounts, accountRequired: accounts },
  { requiredKeys: [] },
)
// The names of integers are ordered differently in objects.
const name = fc.string({ maxLength: 8, unit: 'grapheme' }).map((text) => `n${text}`)
const request = fc.record(
  {
    deshredTransactions: fc.dictionary(name, filter, { maxKeys: 4, noNullPrototype: true }),
    slots: fc.dictionary(name, fc.record({ interslotUpdates: fc.boolean() }, { requiredKeys: [] }), {
      ...{ maxKeys: 3, noNullPrototype: true },
    }),
    ping: fc.record({ id: fc.integer() }),
  },
  { requiredKeys: [] },
)

function compile(message: Uint8Array): CompiledFilters | undefined {
  const read = readDeshredRequest(message)
  if (read === undefined) return undefined
  const steps = compileFilters(read)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

test('reads of a request what a decoder of protobuf does', (t) => {
  const property = fc.property(fc.array(request, { minLength: 1, maxLength: 2 }), (parts) => {
    // Messages that follow each other are one message: entries of a map replace earlier ones.
    const message = Buffer.concat(parts.map((part) => encodeMessage(SubscribeDeshredRequestSchema, part)))
    const decoded = decodeMessage(SubscribeDeshredRequestSchema, message)
    assert.ok(decoded)
    const keys = (texts: readonly string[]) => new Set(texts.map((text) => keyOf(text)))
    assert.deepEqual(compile(message), {
      ok: true,
      filters: {
        transactions: Object.entries(decoded.deshredTransactions).map(([given, one]) => ({
          ...{ name: encodeFilterName(given), vote: one.vote, include: keys(one.accountInclude) },
          ...{ required: keys(one.accountRequired), exclude: keys(one.accountExclude) },
        })),
        slots: Object.entries(decoded.slots).map(([given, { interslotUpdates = false }]) => ({
          name: encodeFilterName(given),
          hasInterslotUpdates: interslotUpdates,
        })),
      },
    })
    const pings = parts.flatMap(({ ping }) => ping ?? [])
    if (pings.length < 2) assert.equal(readDeshredRequest(message)?.ping, decoded.ping?.id)
  })
  checkProperty(t, property, 300, 20_000)
})

const KEYS = new Map(Array.from({ length: 21 }, (_, number) => [encodeBase58(accountOf(number)), accountOf(number)]))

function keyOf(text: string): string {
  return keyText(KEYS.get(text) as Uint8Array)
}

test('any bytes are read or refused', (t) => {
  const bytes = fc.uint8Array({ maxLength: 60 })
  checkProperty(
    t,
    fc.property(bytes, (message) => void compile(message)),
    500,
    50_000,
  )
})
