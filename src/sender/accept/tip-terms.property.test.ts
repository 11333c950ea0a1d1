import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AccountRole,
  type Address,
  address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransaction,
  compressTransactionMessageUsingAddressLookupTables,
  createTransactionMessage,
  getCompiledTransactionMessageDecoder,
  getTransactionEncoder,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { TIP_ACCOUNTS } from '../../../test/support/sender/start.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { WIRE_BYTES_MAX } from '../../solana/transaction/types.ts'
import { parseSenderOptions } from '../options.ts'
import { validateTip } from './tip-terms.ts'

const MIN = 1_000_000n
const OPTIONS = parseSenderOptions({ tipAccounts: TIP_ACCOUNTS })
const keyOf = (n: number): Address => address(encodeBase58(new Uint8Array(32).fill(n)))
const BLOCKHASH = encodeBase58(new Uint8Array(32).fill(3)) as Blockhash
const [SYSTEM, OTHER_PROGRAM, TABLE] = [keyOf(0), keyOf(60), keyOf(90)]
const SIGNERS = Array.from({ length: 8 }, (_, n) => keyOf(100 + n))
const RECEIVERS = [...TIP_ACCOUNTS.map((text) => address(text)), keyOf(50)]

const signerRole = fc.constantFrom(
  AccountRole.WRITABLE_SIGNER,
  AccountRole.WRITABLE_SIGNER,
  AccountRole.READONLY_SIGNER,
  AccountRole.WRITABLE,
)
const transferPart = fc.record({
  from: fc.nat(SIGNERS.length - 1),
  fromRole: signerRole,
  to: fc.nat(RECEIVERS.length - 1),
  toRole: fc.constantFrom(AccountRole.WRITABLE, AccountRole.WRITABLE, AccountRole.READONLY),
  lamports: fc.oneof(fc.constantFrom(MIN - 1n, MIN, MIN + 1n), fc.bigInt({ min: 0n, max: 10n * MIN })),
  /** A transfer may have further bytes; with the same data, another program transfers nothing. */
  tail: fc.nat(3),
  isSystem: fc.constantFrom(true, true, true, false),
})
const otherPart = fc.record({
  accounts: fc.array(fc.record({ account: fc.nat(10), role: signerRole }), { maxLength: 6 }),
  data: fc.uint8Array({ maxLength: 150 }),
})
const shape = fc.record({
  version: fc.constantFrom('legacy' as const, 0 as const),
  parts: fc.array(fc.oneof(transferPart, otherPart), { maxLength: 5 }),
  /** Which receivers a lookup table has. */
  inTable: fc.subarray(RECEIVERS),
  /** The length of the whole transaction, reached by an instruction without accounts; undefined without it. */
  bytes: fc.option(fc.constantFrom(WIRE_BYTES_MAX - 1, WIRE_BYTES_MAX, WIRE_BYTES_MAX + 1), { nil: undefined }),
})
type Shape = typeof shape extends fc.Arbitrary<infer T> ? T : never
type Transfer = typeof transferPart extends fc.Arbitrary<infer T> ? T : never
type Part = Shape['parts'][number]

const isTransfer = (part: Part): part is Transfer => 'lamports' in part

function instructionOf(part: Part) {
  if (!isTransfer(part)) {
    const accounts = part.accounts.map(({ account, role }) => ({ address: keyOf(100 + account), role }))
    return { programAddress: OTHER_PROGRAM, accounts, data: part.data }
  }
  const data = new Uint8Array(12 + part.tail)
  data[0] = 2
  new DataView(data.buffer).setBigUint64(4, part.lamports, true)
  return {
    programAddress: part.isSystem ? SYSTEM : OTHER_PROGRAM,
    accounts: [
      { address: SIGNERS[part.from] as Address, role: part.fromRole },
      { address: RECEIVERS[part.to] as Address, role: part.toRole },
    ],
    data,
  }
}

/** As kit compiles and encodes it; the signatures are zeros. */
function compile({ version, parts, inTable }: Shape, filler: Uint8Array | undefined) {
  const filling = filler === undefined ? [] : [{ programAddress: OTHER_PROGRAM, data: filler }]
  const instructions = [...parts.map(instructionOf), ...filling]
  const message = pipe(
    // Built the same way in both versions, which differ in type.
    createTransactionMessage({ version: version as 0 }),
    (started) => setTransactionMessageFeePayer(SIGNERS[0] as Address, started),
    (started) =>
      setTransactionMessageLifetimeUsingBlockhash({ blockhash: BLOCKHASH, lastValidBlockHeight: 1n }, started),
    (started) => appendTransactionMessageInstructions(instructions, started),
    (complete) =>
      version === 0 ? compressTransactionMessageUsingAddressLookupTables(complete, { [TABLE]: inTable }) : complete,
  )
  const transaction = compileTransaction(message)
  const wire = Uint8Array.from(getTransactionEncoder().encode(transaction))
  const { staticAccounts } = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes)
  return { wire, staticAccounts: new Set(staticAccounts) }
}

/** With the filler that makes the transaction as long as the shape wants it; undefined where none does. */
function build(given: Shape) {
  if (given.bytes === undefined) return compile(given, undefined)
  let length = 0
  for (let turn = 0; turn < 4; turn++) {
    // In base64 it has characters that base58 lacks, as every signature has.
    const built = compile(given, new Uint8Array(length).fill(0xff))
    if (built.wire.length === given.bytes) return built
    length += given.bytes - built.wire.length
    if (length < 0) return undefined
  }
  return undefined
}

/** The roles of an account in all instructions together. */
function rolesOf({ parts }: Shape, wanted: Address) {
  const roles = parts
    .flatMap((part) => instructionOf(part).accounts)
    .filter((account) => account.address === wanted)
    .map(({ role }) => role)
  const isPayer = wanted === SIGNERS[0]
  return {
    // The bits of AccountRole.
    isSigner: isPayer || roles.some((role) => (role & 2) !== 0),
    isWritable: isPayer || roles.some((role) => (role & 1) !== 0),
  }
}

/** The first transfer that pays, and the largest of those that are only too small. */
function expectedOf(given: Shape, staticAccounts: ReadonlySet<string>) {
  const valid = given.parts.filter(isTransfer).filter(({ from, to, isSystem }) => {
    const receiver = RECEIVERS[to] as Address
    const payer = rolesOf(given, SIGNERS[from] as Address)
    const isTip = TIP_ACCOUNTS.includes(receiver) && staticAccounts.has(receiver)
    return isSystem && isTip && rolesOf(given, receiver).isWritable && payer.isSigner && payer.isWritable
  })
  const paying = valid.find(({ lamports }) => lamports >= MIN)
  const largest = valid.reduce((found, { lamports }) => (lamports > found ? lamports : found), 0n)
  return { paying, largest }
}

const seen = { paid: 0, unpaid: 0, tooLong: 0, full: 0, manySigned: 0, throughTable: 0 }

test('accepts a tip in what kit compiles exactly where one of its transfers pays it, in every encoding', (t) => {
  checkProperty(
    t,
    fc.property(shape, (given) => {
      const built = build(given)
      fc.pre(built !== undefined)
      const { wire, staticAccounts } = built
      const texts = [wire, Buffer.from(wire).toString('base64'), encodeBase58(wire)]
      const verdicts = texts.map((text) => validateTip(text, OPTIONS))
      if (wire.length > WIRE_BYTES_MAX) {
        seen.tooLong += 1
        for (const verdict of verdicts) assert.equal(!verdict.ok && verdict.refusal.code, 'invalid-params')
        return
      }
      const { paying, largest } = expectedOf(given, staticAccounts)
      for (const verdict of verdicts) {
        if (paying === undefined) {
          assert.ok(!verdict.ok, 'no transfer pays')
          assert.equal(verdict.refusal.data['foundLamports'], Number(largest), verdict.refusal.message)
        } else {
          assert.ok(verdict.ok, verdict.ok ? '' : verdict.refusal.message)
          assert.deepEqual([verdict.account, verdict.lamports], [RECEIVERS[paying.to], paying.lamports.toString()])
        }
      }
      seen[paying === undefined ? 'unpaid' : 'paid'] += 1
      seen.full += Number(wire.length === WIRE_BYTES_MAX)
      seen.manySigned += Number((wire[0] as number) > 2)
      const [first] = verdicts
      seen.throughTable += Number(first?.ok === false && first.refusal.code === 'tip-through-lookup-table')
    }),
    300,
    5000,
  )
  for (const [what, times] of Object.entries(seen)) assert.ok(times > 3, `${what}: ${times}`)
})
