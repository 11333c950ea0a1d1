import fc from 'fast-check'
import { decodeBase58 } from '../../../src/solana/crypto/base58.ts'
import type { ParsedTransaction } from '../../../src/solana/transaction/types.ts'
import { createRandom, randomBytesOf } from '../process/property.ts'
import { encodeParsedTransaction } from './encode-transaction.ts'

const VOTE_PROGRAM = decodeBase58('Vote111111111111111111111111111111111111111')
const length = (max: number) => fc.oneof(fc.nat(4), fc.nat(max))

const parts = {
  signers: fc.integer({ min: 1, max: 4 }),
  others: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 180 })),
  isVoteProgram: fc.boolean(),
  seed: fc.nat(),
  instructions: fc.array(fc.record({ program: fc.nat(), accounts: length(200), data: length(20_000) }), {
    maxLength: 3,
  }),
  lookups: fc.array(fc.record({ writable: fc.nat(12), readonly: fc.nat(12) }), { maxLength: 3 }),
  config: fc.record({
    priorityFeeLamports: fc.option(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
    computeUnitLimit: fc.option(fc.nat(0xffffffff)),
    loadedAccountsDataSizeLimit: fc.option(fc.nat(0xffffffff)),
    heapSize: fc.option(fc.integer({ min: 32, max: 256 }).map((kilobytes) => kilobytes * 1024)),
  }),
}

/** Transactions that are valid by construction; indexes are taken modulo the number of keys. `wireOf` makes their wire form. */
export function transactionShapes(...versions: ('legacy' | 0 | 1)[]) {
  return fc.record({ version: fc.constantFrom(...versions), ...parts })
}

type Shape = ReturnType<typeof transactionShapes> extends fc.Arbitrary<infer T> ? T : never

export function wireOf({
  version,
  signers,
  others,
  isVoteProgram,
  seed,
  instructions,
  lookups,
  config,
}: Shape): Uint8Array {
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
      version === 0
        ? lookups
            .filter(({ writable, readonly }) => writable + readonly > 0)
            .map(({ writable, readonly }) => ({
              accountKey: randomBytesOf(random, 32),
              writableIndexes: randomBytesOf(random, writable),
              readonlyIndexes: randomBytesOf(random, readonly),
            }))
        : [],
    config: version === 1 ? config : null,
    wireLength: 0,
  }
  return encodeParsedTransaction(parsed)
}
