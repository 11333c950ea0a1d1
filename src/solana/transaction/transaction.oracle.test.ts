import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Address,
  getAddressDecoder,
  getAddressEncoder,
  getCompiledTransactionMessageDecoder,
  getCompiledTransactionMessageEncoder,
  getTransactionDecoder,
  getTransactionEncoder,
} from '@solana/kit'
import fc from 'fast-check'
import {
  checkProperty,
  createRandom,
  mutate,
  randomBytesOf,
  repeatsOf,
  seedOf,
} from '../../../test/support/process/property.ts'
import { encodeParsedTransaction } from '../../../test/support/solana/encode-transaction.ts'
import { isDecodeFault, parseTransaction } from './transaction.ts'
import { hasDuplicateKey } from './types.ts'

const addressOf = (bytes: Uint8Array): Address => getAddressDecoder().decode(bytes)

/** The parts of a transaction that is valid by construction; indexes are taken modulo the number of keys. */
const shape = fc.record({
  version: fc.constantFrom('legacy' as const, 0 as const, 1 as const),
  signers: fc.integer({ min: 1, max: 4 }),
  readonlySigned: fc.nat(3),
  others: fc.integer({ min: 1, max: 8 }),
  readonlyUnsigned: fc.nat(8),
  seed: fc.nat(),
  instructions: fc.array(
    fc.record({ program: fc.nat(), accounts: fc.array(fc.nat(), { maxLength: 9 }), dataLength: fc.nat(200) }),
    { maxLength: 4 },
  ),
  lookups: fc.array(fc.record({ writable: fc.nat(4), readonly: fc.nat(4) }), { maxLength: 3 }),
  config: fc.record({
    fee: fc.option(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
    units: fc.option(fc.nat(0xffffffff)),
    loaded: fc.option(fc.nat(0xffffffff)),
    heap: fc.option(fc.integer({ min: 32, max: 256 })),
  }),
})
type Shape = typeof shape extends fc.Arbitrary<infer T> ? T : never

type Built = { wire: Uint8Array; keys: Uint8Array[]; blockhash: Uint8Array; signatures: Uint8Array[] }

/** Encodes the shape with kit. */
function buildWithKit(given: Shape): Built {
  const random = createRandom(given.seed)
  const keys = Array.from({ length: given.signers + given.others }, () => randomBytesOf(random, 32))
  const blockhash = randomBytesOf(random, 32)
  const lookups = given.version === 0 ? given.lookups.filter((lookup) => lookup.writable + lookup.readonly > 0) : []
  const total = keys.length + lookups.reduce((sum, lookup) => sum + lookup.writable + lookup.readonly, 0)
  const instructions = given.instructions.map(({ program, accounts, dataLength }) => ({
    programAddressIndex: 1 + (program % (keys.length - 1)),
    accountIndices: accounts.map((account) => account % total),
    data: randomBytesOf(random, dataLength),
  }))
  const header = {
    numSignerAccounts: given.signers,
    numReadonlySignerAccounts: given.readonlySigned % given.signers,
    numReadonlyNonSignerAccounts: given.readonlyUnsigned % (given.others + 1),
  }
  const { fee, units, loaded, heap } = given.config
  const common = { header, lifetimeToken: addressOf(blockhash), staticAccounts: keys.map(addressOf) }
  const message =
    given.version === 1
      ? {
          ...common,
          version: 1,
          configMask:
            (fee === null ? 0 : 3) + (units === null ? 0 : 4) + (loaded === null ? 0 : 8) + (heap === null ? 0 : 16),
          configValues: [
            ...(fee === null ? [] : [{ kind: 'u64', value: fee }]),
            ...[units, loaded, heap === null ? null : heap * 1024].flatMap((value) =>
              value === null ? [] : [{ kind: 'u32', value }],
            ),
          ],
          instructionHeaders: instructions.map((instruction) => ({
            numInstructionAccounts: instruction.accountIndices.length,
            numInstructionDataBytes: instruction.data.length,
            programAccountIndex: instruction.programAddressIndex,
          })),
          instructionPayloads: instructions.map((instruction) => ({
            instructionAccountIndices: instruction.accountIndices,
            instructionData: instruction.data,
          })),
          numInstructions: instructions.length,
          numStaticAccounts: keys.length,
        }
      : {
          ...common,
          version: given.version,
          instructions,
          ...(given.version === 0 && {
            addressTableLookups: lookups.map((lookup) => ({
              lookupTableAddress: addressOf(randomBytesOf(random, 32)),
              writableIndexes: Array.from({ length: lookup.writable }, () => random(256)),
              readonlyIndexes: Array.from({ length: lookup.readonly }, () => random(256)),
            })),
          }),
        }
  const messageBytes = getCompiledTransactionMessageEncoder().encode(
    message as unknown as Parameters<ReturnType<typeof getCompiledTransactionMessageEncoder>['encode']>[0],
  )
  const signatures = Array.from({ length: given.signers }, () => randomBytesOf(random, 64))
  const wire = getTransactionEncoder().encode({
    messageBytes,
    signatures: Object.fromEntries(signatures.map((signature, i) => [common.staticAccounts[i], signature])),
  } as unknown as Parameters<ReturnType<typeof getTransactionEncoder>['encode']>[0])
  return { wire: Uint8Array.from(wire), keys, blockhash, signatures }
}

/** Decodes with kit into the fields of a ParsedTransaction. Throws where kit throws. */
function decodeWithKit(wire: Uint8Array) {
  const { messageBytes, signatures } = getTransactionDecoder().decode(wire)
  const message = getCompiledTransactionMessageDecoder().decode(messageBytes) as unknown as KitMessage
  const isV1 = message.version === 1
  return {
    version: message.version,
    signatures: Object.values(signatures).map((signature) =>
      Uint8Array.from((signature as Uint8Array | null) ?? new Uint8Array(64)),
    ),
    message: Uint8Array.from(messageBytes as unknown as Uint8Array),
    header: {
      numRequiredSignatures: message.header.numSignerAccounts,
      numReadonlySigned: message.header.numReadonlySignerAccounts,
      numReadonlyUnsigned: message.header.numReadonlyNonSignerAccounts,
    },
    staticKeys: message.staticAccounts.map(bytesOf),
    recentBlockhash: bytesOf(message.lifetimeToken as Address),
    instructions: isV1
      ? message.instructionHeaders.map((head, i) => ({
          programIdIndex: head.programAccountIndex,
          accounts: Uint8Array.from(message.instructionPayloads[i]?.instructionAccountIndices ?? []),
          data: Uint8Array.from(message.instructionPayloads[i]?.instructionData ?? []),
        }))
      : message.instructions.map((instruction) => ({
          programIdIndex: instruction.programAddressIndex,
          accounts: Uint8Array.from(instruction.accountIndices ?? []),
          data: Uint8Array.from(instruction.data ?? []),
        })),
    addressTableLookups: (message.addressTableLookups ?? []).map((lookup) => ({
      accountKey: bytesOf(lookup.lookupTableAddress),
      writableIndexes: Uint8Array.from(lookup.writableIndexes),
      readonlyIndexes: Uint8Array.from(lookup.readonlyIndexes),
    })),
    reencoded: {
      message: Uint8Array.from(
        getCompiledTransactionMessageEncoder().encode(message as never) as unknown as Uint8Array,
      ),
      wire: Uint8Array.from(
        getTransactionEncoder().encode({ messageBytes, signatures } as never) as unknown as Uint8Array,
      ),
    },
  }
}
type KitMessage = {
  version: 'legacy' | 0 | 1
  header: { numSignerAccounts: number; numReadonlySignerAccounts: number; numReadonlyNonSignerAccounts: number }
  staticAccounts: Address[]
  lifetimeToken: string
  instructions: { programAddressIndex: number; accountIndices?: number[]; data?: Uint8Array }[]
  instructionHeaders: { programAccountIndex: number }[]
  instructionPayloads: { instructionAccountIndices: number[]; instructionData: Uint8Array }[]
  addressTableLookups?: { lookupTableAddress: Address; writableIndexes: number[]; readonlyIndexes: number[] }[]
}

const bytesOf = (address: Address): Uint8Array => Uint8Array.from(getAddressEncoder().encode(address))

test('parses a transaction encoded by kit to the same parts', (t) => {
  checkProperty(
    t,
    fc.property(shape, (given) => {
      const built = buildWithKit(given)
      const limit = given.version === 1 ? 4096 : 1232
      const result = parseTransaction(built.wire)
      if (built.wire.length > limit) return assert.deepEqual(result, { ok: false, reason: 'too-large' })
      assert.ok(result.ok)
      const { config, wireLength, ...ours } = result.transaction
      const { reencoded, ...theirs } = decodeWithKit(built.wire)
      assert.deepEqual(ours, theirs)
      assert.deepEqual(ours.signatures, built.signatures)
      assert.deepEqual(reencoded.wire, built.wire)
      assert.equal(wireLength, built.wire.length)
      if (given.version === 1) {
        const { fee, units, loaded, heap } = given.config
        assert.deepEqual(config, {
          priorityFeeLamports: fee,
          computeUnitLimit: units,
          loadedAccountsDataSizeLimit: loaded,
          heapSize: heap === null ? null : heap * 1024,
        })
      } else assert.equal(config, null)
    }),
    300,
    20_000,
  )
})

test('accepts mutated bytes only when kit encodes them back to the same bytes, and refuses them as undecodable only when it does not', (t) => {
  const seed = seedOf(t)
  const random = createRandom(seed)
  const shapes = fc.sample(shape, { seed, numRuns: 300 })
  const wires = shapes.map((given) => buildWithKit(given).wire).filter((wire) => wire.length <= 1100)
  let accepted = 0
  const runs = repeatsOf({ short: 4000, full: 200_000 })
  for (let run = 0; run < runs; run++) {
    const wire = mutate(wires[random(wires.length)] as Uint8Array, random)
    const result = parseTransaction(wire)
    let kit: ReturnType<typeof decodeWithKit> | undefined
    try {
      kit = decodeWithKit(wire)
    } catch {
      kit = undefined
    }
    const hex = Buffer.from(wire).toString('hex')
    if (result.ok) {
      accepted++
      assert.deepEqual(Buffer.from(encodeParsedTransaction(result.transaction)).toString('hex'), hex)
      // kit keys signatures by address, so it cannot hold two signers of one address.
      if (hasDuplicateKey(result.transaction.staticKeys)) continue
      assert.ok(kit !== undefined, hex)
      const { reencoded, ...theirs } = kit
      const ours = result.transaction
      assert.deepEqual(ours, { ...theirs, config: ours.config, wireLength: wire.length }, hex)
      assert.deepEqual(reencoded.message, ours.message, hex)
      assert.equal(Buffer.from(reencoded.wire).toString('hex'), hex)
    } else if (kit !== undefined && wire.length <= 1232) {
      const canonical =
        Buffer.compare(kit.reencoded.wire, wire) === 0 && Buffer.compare(kit.reencoded.message, kit.message) === 0
      if (canonical) assert.ok(!isDecodeFault(result.reason), `${result.reason} ${hex}`)
    }
  }
  t.diagnostic(`${accepted} mutants accepted`)
  assert.ok(accepted > 100, 'the mutations never leave a valid transaction')
})
