import assert from 'node:assert/strict'
import * as web3 from '@solana/web3.js'
import { writeJson } from '../../../src/localnet/rpc/json.ts'
import { encodeParsedInstruction } from '../../../src/localnet/rpc/parsed/instructions.ts'

const key = (fill: number) => new web3.PublicKey(new Uint8Array(32).fill(fill))
const name = (fill: number) => key(fill).toBase58()
export const [a, b, c, d, e] = [1, 2, 3, 4, 5].map(key) as [
  web3.PublicKey,
  web3.PublicKey,
  web3.PublicKey,
  web3.PublicKey,
  web3.PublicKey,
]
export const [A, B, C, D, E] = [1, 2, 3, 4, 5].map(name) as [string, string, string, string, string]
export const RENT = web3.SYSVAR_RENT_PUBKEY.toBase58()
export const CLOCK = web3.SYSVAR_CLOCK_PUBKEY.toBase58()
export const HASHES = web3.SYSVAR_RECENT_BLOCKHASHES_PUBKEY.toBase58()

export type Shown = {
  program?: string
  parsed?: { type: string; info: Record<string, unknown> } | string
  data?: string
}

/** Parses an instruction that a client library built. */
export function show(instruction: web3.TransactionInstruction): Shown {
  const keys = [...instruction.keys.map(({ pubkey }) => pubkey.toBase58()), instruction.programId.toBase58()]
  const compiled = {
    programIdIndex: keys.length - 1,
    accounts: Uint8Array.from(instruction.keys, (_key, index) => index),
    data: instruction.data,
  }
  return JSON.parse(writeJson(encodeParsedInstruction(compiled, keys, 1))) as Shown
}

/** Asserts that the instruction is parsed as this program, type and info. */
export function expectParsed(
  instruction: web3.TransactionInstruction,
  program: string,
  type: string,
  info: Record<string, unknown>,
): void {
  const shown = show(instruction)
  assert.equal(shown.program, program, type)
  assert.deepEqual(shown.parsed, { type, info }, type)
}
