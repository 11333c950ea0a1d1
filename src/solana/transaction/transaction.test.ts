import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeParsedTransaction } from '../../../test/support/solana/encode-transaction.ts'
import { createSigningKey, signEd25519 } from '../crypto/ed25519.ts'
import {
  isSigner,
  isWritableStatic,
  type ParsedTransaction,
  parseTransaction,
  type TransactionFault,
  verifySignatures,
} from './transaction.ts'
import { FORMAT_LIMITS, hasDuplicateKey, TRANSACTION_LIMITS } from './types.ts'

function parsed(wire: Uint8Array): ParsedTransaction {
  const result = parseTransaction(wire)
  assert.ok(result.ok, `refused: ${result.ok ? '' : result.reason}`)
  return result.transaction
}

function fault(wire: Uint8Array): TransactionFault {
  const result = parseTransaction(wire)
  assert.ok(!result.ok, 'was accepted')
  return result.reason
}

const filled = (byte: number, length = 32): Uint8Array => new Uint8Array(length).fill(byte)

/** A small valid transaction of each version, which the tests modify: two signers, two other keys, one instruction. */
function sample(version: 'legacy' | 0 | 1, change: Partial<ParsedTransaction> = {}): Uint8Array {
  const noConfig = {
    priorityFeeLamports: null,
    computeUnitLimit: null,
    loadedAccountsDataSizeLimit: null,
    heapSize: null,
  }
  return encodeParsedTransaction({
    version,
    signatures: [filled(1, 64), filled(2, 64)],
    message: new Uint8Array(),
    header: { numRequiredSignatures: 2, numReadonlySigned: 1, numReadonlyUnsigned: 1 },
    staticKeys: [filled(10), filled(11), filled(12), filled(13)],
    recentBlockhash: filled(20),
    instructions: [{ programIdIndex: 3, accounts: Uint8Array.of(0, 1, 2), data: Uint8Array.of(9, 8) }],
    addressTableLookups: [],
    config: version === 1 ? noConfig : null,
    wireLength: 0,
    ...change,
  })
}

const manyKeys = (count: number): Uint8Array[] => Array.from({ length: count }, (_, i) => filled(100 + i))
const lookup = (writable: number, readonly: number) => ({
  accountKey: filled(30),
  writableIndexes: filled(1, writable),
  readonlyIndexes: filled(2, readonly),
})
const callOf = (programIdIndex: number, accounts: number[] = [], dataLength = 0) => ({
  programIdIndex,
  accounts: Uint8Array.from(accounts),
  data: filled(7, dataLength),
})
const headerOf = (numRequiredSignatures: number, numReadonlySigned: number, numReadonlyUnsigned: number) => ({
  header: { numRequiredSignatures, numReadonlySigned, numReadonlyUnsigned },
})
const signaturesOf = (count: number) => Array.from({ length: count }, (_, i) => filled(i, 64))

const edges: [string, TransactionFault | 'ok', Uint8Array][] = [
  ['the legacy sample', 'ok', sample('legacy')],
  ['the v0 sample', 'ok', sample(0)],
  ['the v1 sample', 'ok', sample(1)],
  ['no byte at all', 'truncated', new Uint8Array()],
  ['no signature', 'signature-count', sample('legacy', { signatures: [], ...headerOf(0, 0, 1) })],
  [
    'a legacy signature count of 13',
    'signature-count',
    sample('legacy', { signatures: signaturesOf(13), ...headerOf(13, 0, 0) }),
  ],
  ['fewer signatures than required', 'signature-count', sample('legacy', { signatures: signaturesOf(1) })],
  ['more signatures than required', 'signature-count', sample('legacy', { signatures: signaturesOf(3) })],
  ['a two-byte signature count', 'version-unsupported', Uint8Array.of(0x82, 0, ...sample('legacy').subarray(1))],
  ['all signers readonly', 'header-counts', sample('legacy', headerOf(2, 2, 1))],
  ['exactly all others readonly', 'ok', sample('legacy', headerOf(2, 1, 2))],
  ['more readonly keys than there are', 'header-counts', sample('legacy', headerOf(2, 1, 3))],
  [
    'a v0 message of version 1 behind signatures',
    'version-unsupported',
    sample(0).map((b, i) => (i === 129 ? 0x81 : b)),
  ],
  ['program index of the fee payer', 'program-index', sample('legacy', { instructions: [callOf(0)] })],
  ['program index past the keys', 'program-index', sample('legacy', { instructions: [callOf(4)] })],
  ['account index of the last key', 'ok', sample('legacy', { instructions: [callOf(3, [3])] })],
  ['account index past the keys', 'account-index', sample('legacy', { instructions: [callOf(3, [4])] })],
  ['64 instructions', 'ok', sample('legacy', { instructions: Array.from({ length: 64 }, () => callOf(3)) })],
  [
    '65 instructions',
    'too-many-instructions',
    sample('legacy', { instructions: Array.from({ length: 65 }, () => callOf(3)) }),
  ],
  ['129 keys', 'too-many-accounts', sample('legacy', { staticKeys: manyKeys(129) })],
  ['a duplicate key', 'ok', sample('legacy', { staticKeys: [filled(1), filled(2), filled(2), filled(4)] })],
  ['one byte after the end', 'trailing-bytes', Uint8Array.of(...sample('legacy'), 0)],
  ['one byte short', 'truncated', sample('legacy').subarray(0, -1)],
  ['1232 bytes', 'ok', sample('legacy', { instructions: [callOf(3, [], 1232 - 298)] })],
  ['1233 bytes', 'too-large', sample('legacy', { instructions: [callOf(3, [], 1233 - 298)] })],
  ['a lookup', 'ok', sample(0, { addressTableLookups: [lookup(1, 2)], instructions: [callOf(3, [6])] })],
  [
    'an account index past the loaded keys',
    'account-index',
    sample(0, { addressTableLookups: [lookup(1, 2)], instructions: [callOf(3, [7])] }),
  ],
  [
    'a program from a lookup',
    'program-index',
    sample(0, { addressTableLookups: [lookup(1, 2)], instructions: [callOf(4)] }),
  ],
  ['an empty lookup', 'empty-lookup', sample(0, { addressTableLookups: [lookup(0, 0)] })],
  ['124 loaded keys beside 4', 'ok', sample(0, { addressTableLookups: [lookup(62, 62)] })],
  ['60 loaded keys beside 4', 'ok', sample(0, { addressTableLookups: [lookup(30, 30)] })],
  ['125 loaded keys beside 4', 'too-many-accounts', sample(0, { addressTableLookups: [lookup(63, 62)] })],
  ['a v0 one byte short', 'truncated', sample(0).subarray(0, -1)],
  ['v1 without a signer', 'signature-count', sample(1, { signatures: [], ...headerOf(0, 0, 1) })],
  [
    'v1 with 12 signers',
    'ok',
    sample(1, { signatures: signaturesOf(12), ...headerOf(12, 0, 0), staticKeys: manyKeys(14) }),
  ],
  [
    'v1 with 13 signers',
    'signature-count',
    sample(1, { signatures: signaturesOf(13), ...headerOf(13, 0, 0), staticKeys: manyKeys(14) }),
  ],
  [
    'v1 with a duplicate key',
    'duplicate-account',
    sample(1, { staticKeys: [filled(1), filled(2), filled(2), filled(4)] }),
  ],
  ['v1 with all signers readonly', 'header-counts', sample(1, headerOf(2, 2, 1))],
  ['v1 with 64 keys', 'ok', sample(1, { staticKeys: manyKeys(64) })],
  ['v1 with 120 keys', 'ok', sample(1, { staticKeys: manyKeys(120) })],
  ['v1 with 129 keys', 'too-many-accounts', sample(1, { staticKeys: manyKeys(129) })],
  ['v1 with 64 instructions', 'ok', sample(1, { instructions: Array.from({ length: 64 }, () => callOf(3)) })],
  [
    'v1 with 65 instructions',
    'too-many-instructions',
    sample(1, { instructions: Array.from({ length: 65 }, () => callOf(3)) }),
  ],
  ['v1 program index of the fee payer', 'program-index', sample(1, { instructions: [callOf(0)] })],
  ['v1 program index past the keys', 'program-index', sample(1, { instructions: [callOf(4)] })],
  ['v1 account index past the keys', 'account-index', sample(1, { instructions: [callOf(3, [4])] })],
  ['v1 with half a priority fee', 'config-mask', sample(1).map((b, i) => (i === 4 ? 1 : b))],
  ['v1 with the other half', 'config-mask', sample(1).map((b, i) => (i === 4 ? 2 : b))],
  ['v1 with an unknown config bit', 'config-mask', sample(1).map((b, i) => (i === 4 ? 0x20 : b))],
  ['v1 with a high config bit', 'config-mask', sample(1).map((b, i) => (i === 7 ? 0x80 : b))],
  ['v1 of 4096 bytes', 'ok', sample(1, { instructions: [callOf(3, [], 4096 - 302)] })],
  ['v1 of 4097 bytes', 'too-large', sample(1, { instructions: [callOf(3, [], 4097 - 302)] })],
  ['v1 one byte short', 'truncated', sample(1).subarray(0, -1)],
  ['v1 and one byte after', 'trailing-bytes', Uint8Array.of(...sample(1), 0)],
  ['version 2', 'version-unsupported', sample(1).map((b, i) => (i === 0 ? 0x82 : b))],
  ['version 0 in the place of v1', 'version-unsupported', sample(1).map((b, i) => (i === 0 ? 0x80 : b))],
  ...(
    [
      [32_767, 'config-heap-size'],
      [32_768, 'ok'],
      [33_000, 'config-heap-size'],
      [262_144, 'ok'],
      [263_168, 'config-heap-size'],
    ] as const
  ).map(([heapSize, expected]): [string, TransactionFault | 'ok', Uint8Array] => [
    `v1 heap of ${heapSize}`,
    expected,
    sample(1, {
      config: { priorityFeeLamports: null, computeUnitLimit: null, loadedAccountsDataSizeLimit: null, heapSize },
    }),
  ]),
]

for (const [name, expected, wire] of edges) {
  test(`edge: ${name}: ${expected}`, () => {
    const result = parseTransaction(wire)
    assert.equal(result.ok ? 'ok' : result.reason, expected)
  })
}

test('refuses a length that is not in its shortest form, at every position', () => {
  for (const version of ['legacy', 0] as const) {
    const wire = sample(version, { addressTableLookups: version === 0 ? [lookup(1, 1)] : [] })
    const base = 1 + 128 + (version === 0 ? 1 : 0)
    const instructionsAt = base + 4 + 4 * 32 + 32
    const lengthsAt = [base + 3, instructionsAt, instructionsAt + 2, instructionsAt + 6]
    if (version === 0) lengthsAt.push(instructionsAt + 9, instructionsAt + 42, instructionsAt + 44)
    for (const at of lengthsAt) {
      const value = wire[at] as number
      const padded = Uint8Array.of(...wire.subarray(0, at), value | 0x80, 0, ...wire.subarray(at + 1))
      assert.equal(fault(padded), 'length-not-canonical', `${version} at ${at}`)
    }
  }
})

test('refuses every prefix of a valid transaction as truncated', () => {
  for (const version of ['legacy', 0, 1] as const) {
    const wire = sample(version, { addressTableLookups: version === 0 ? [lookup(1, 2)] : [] })
    for (let length = 0; length < wire.length; length++) {
      assert.equal(fault(wire.subarray(0, length)), 'truncated', `${version} cut at ${length}`)
    }
  }
})

test('a Buffer with an offset gives Uint8Array views of the right bytes', () => {
  const wire = sample('legacy')
  const buffer = Buffer.concat([Buffer.alloc(5), wire, Buffer.alloc(5)]).subarray(5, 5 + wire.length)
  assert.deepEqual(parsed(buffer), parsed(wire))
})

test('the header determines the roles of keys', () => {
  const transaction = parsed(sample('legacy'))
  assert.deepEqual(
    [0, 1, 2, 3].map((i) => isSigner(transaction, i)),
    [true, true, false, false],
  )
  assert.deepEqual(
    [0, 1, 2, 3].map((i) => isWritableStatic(transaction, i)),
    [true, false, true, false],
  )
})

test('detects duplicate keys', () => {
  assert.equal(hasDuplicateKey(parsed(sample('legacy')).staticKeys), false)
  const last = Uint8Array.from(filled(13)).with(31, 14)
  assert.equal(
    hasDuplicateKey(parsed(sample('legacy', { staticKeys: [filled(1), filled(13), last, filled(2)] })).staticKeys),
    false,
  )
  assert.equal(
    hasDuplicateKey(parsed(sample('legacy', { staticKeys: [filled(1), filled(2), filled(3), filled(1)] })).staticKeys),
    true,
  )
})

test('verifies signatures over the message in all three formats', () => {
  const keys = [createSigningKey(filled(1)), createSigningKey(filled(2))]
  for (const version of ['legacy', 0, 1] as const) {
    const staticKeys = [...keys.map((key) => key.publicKey), filled(4), filled(5)]
    const { message } = parsed(sample(version, { staticKeys }))
    const signatures = keys.map((key) => signEd25519(message, key))
    const wire = sample(version, { staticKeys, signatures })
    const transaction = parsed(wire)
    assert.equal(verifySignatures(transaction), true)
    const blockhashAt = transaction.recentBlockhash.byteOffset
    for (const at of [blockhashAt, ...transaction.signatures.map((signature) => signature.byteOffset + 40)]) {
      assert.equal(verifySignatures(parsed(wire.with(at, (wire[at] as number) ^ 1))), false)
    }
    const [first, second] = signatures as [Uint8Array, Uint8Array]
    assert.equal(verifySignatures(parsed(sample(version, { staticKeys, signatures: [second, first] }))), false)
  }
})

test('the limits are arguments: account locks of all formats, and the bytes of each', () => {
  const reasonOf = (wire: Uint8Array, limits: Partial<typeof TRANSACTION_LIMITS>) => {
    const result = parseTransaction(wire, { ...TRANSACTION_LIMITS, ...limits })
    return result.ok ? 'ok' : result.reason
  }
  const legacy = sample('legacy', { instructions: [callOf(3, [], 1233 - 298)] })
  assert.equal(reasonOf(legacy, {}), 'too-large')
  assert.equal(reasonOf(legacy, { transactionBytesMax: 1233 }), 'ok')
  assert.equal(reasonOf(legacy, { transactionV1BytesMax: 9000 }), 'too-large')
  const v1 = sample(1, { staticKeys: manyKeys(120) })
  assert.equal(reasonOf(v1, { transactionV1BytesMax: v1.length }), 'ok')
  assert.equal(reasonOf(Uint8Array.of(...v1, 0), { transactionV1BytesMax: v1.length }), 'trailing-bytes')
  assert.equal(reasonOf(v1, { transactionV1BytesMax: v1.length - 1 }), 'too-large')
  assert.equal(reasonOf(v1, { accountLocksMax: 119 }), 'too-many-accounts')
  const loading = sample(0, { addressTableLookups: [lookup(62, 62)] })
  assert.equal(reasonOf(loading, { accountLocksMax: 127 }), 'too-many-accounts')
  assert.equal(reasonOf(sample(0, { addressTableLookups: [lookup(126, 126)] }), FORMAT_LIMITS), 'ok')
  assert.equal(reasonOf(sample(0, { addressTableLookups: [lookup(127, 126)] }), FORMAT_LIMITS), 'too-many-accounts')
})
