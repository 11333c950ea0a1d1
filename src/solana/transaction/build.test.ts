import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AccountRole,
  type Address,
  appendTransactionMessageInstructions,
  blockhash,
  compileTransaction,
  createTransactionMessage,
  getAddressDecoder,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { encodeBase58 } from '../crypto/base58.ts'
import { createSigningKey } from '../crypto/ed25519.ts'
import { buildLegacyMessage, type Instruction, memoInstruction, signMessage, transferInstruction } from './build.ts'
import { type ParsedTransaction, parseTransaction, verifySignatures } from './transaction.ts'

const filled = (byte: number): Uint8Array => new Uint8Array(32).fill(byte)
const address = fc.integer({ min: 1, max: 6 }).map(filled)
const instruction: fc.Arbitrary<Instruction> = fc.record({
  programId: fc.integer({ min: 20, max: 22 }).map(filled),
  accounts: fc.array(fc.record({ address, signer: fc.boolean(), writable: fc.boolean() }), { maxLength: 6 }),
  data: fc.uint8Array({ maxLength: 80 }),
})

test('builds a message equivalent to the one kit compiles from the same instructions', (t) => {
  checkProperty(
    t,
    fc.property(fc.array(instruction, { minLength: 1, maxLength: 4 }), (instructions) => {
      const feePayer = filled(1)
      const ours = withoutOrder(read(buildLegacyMessage({ feePayer, recentBlockhash: filled(9), instructions })))
      const theirs = withoutOrder(read(compileWithKit(feePayer, filled(9), instructions)))
      assert.deepEqual(ours, theirs)
    }),
    200,
    5000,
  )
})

test('signs a transfer with a memo by all its signers, passed in any order', () => {
  const payer = createSigningKey(filled(1))
  const other = createSigningKey(filled(2))
  const message = buildLegacyMessage({
    feePayer: payer.publicKey,
    recentBlockhash: filled(3),
    instructions: [
      transferInstruction({ from: payer.publicKey, to: filled(4), lamports: 2n ** 63n }),
      memoInstruction(filled(5), 'grüezi', [other.publicKey]),
    ],
  })
  const result = parseTransaction(signMessage(message, [other, payer]))
  assert.ok(result.ok)
  assert.equal(verifySignatures(result.transaction), true)
  assert.deepEqual(result.transaction.staticKeys[0], payer.publicKey)
  assert.deepEqual(result.transaction.instructions[0]?.data, Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80))
  assert.throws(() => signMessage(message, [payer]), TypeError)
})

/** The parsed parts of a message with placeholder signatures. */
function read(message: Uint8Array): ParsedTransaction {
  const required = message[0] as number
  const result = parseTransaction(Uint8Array.of(required, ...new Uint8Array(required * 64), ...message))
  assert.ok(result.ok, result.ok ? '' : result.reason)
  return result.transaction
}

/** Keys of one role may be in any order, so instructions are compared by their keys. */
function withoutOrder({ header, staticKeys, recentBlockhash, instructions }: ParsedTransaction) {
  const name = (index: number) => Buffer.from(staticKeys[index] as Uint8Array).toString('hex')
  const names = staticKeys.map((_, index) => name(index))
  const { numRequiredSignatures: signers, numReadonlySigned, numReadonlyUnsigned } = header
  const cuts = [0, 1, signers - numReadonlySigned, signers, staticKeys.length - numReadonlyUnsigned, staticKeys.length]
  return {
    header,
    recentBlockhash,
    groups: cuts.slice(1).map((cut, i) => names.slice(cuts[i], cut).sort()),
    instructions: instructions.map((each) => ({
      program: name(each.programIdIndex),
      accounts: Array.from(each.accounts, name),
      data: each.data,
    })),
  }
}

function compileWithKit(
  feePayer: Uint8Array,
  recentBlockhash: Uint8Array,
  instructions: readonly Instruction[],
): Uint8Array {
  const addressOf = (bytes: Uint8Array): Address => getAddressDecoder().decode(bytes)
  const roleOf = (signer: boolean, writable: boolean): AccountRole =>
    signer
      ? writable
        ? AccountRole.WRITABLE_SIGNER
        : AccountRole.READONLY_SIGNER
      : writable
        ? AccountRole.WRITABLE
        : AccountRole.READONLY
  const message = pipe(
    createTransactionMessage({ version: 'legacy' }),
    (m) => setTransactionMessageFeePayer(addressOf(feePayer), m),
    (m) =>
      setTransactionMessageLifetimeUsingBlockhash(
        { blockhash: blockhash(encodeBase58(recentBlockhash)), lastValidBlockHeight: 1n },
        m,
      ),
    (m) =>
      appendTransactionMessageInstructions(
        instructions.map((each) => ({
          programAddress: addressOf(each.programId),
          accounts: each.accounts.map((account) => ({
            address: addressOf(account.address),
            role: roleOf(account.signer, account.writable),
          })),
          data: each.data,
        })),
        m,
      ),
  )
  return Uint8Array.from(compileTransaction(message).messageBytes as unknown as Uint8Array)
}
