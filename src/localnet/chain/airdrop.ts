import { decodeBase58 } from '../../solana/crypto/base58.ts'
import type { SigningKey } from '../../solana/crypto/ed25519.ts'
import {
  buildLegacyMessage,
  type Instruction,
  signMessage,
  transferInstruction,
} from '../../solana/transaction/build.ts'
import { COMPUTE_BUDGET_PROGRAM } from './addresses.ts'

/** Builds a signed transfer from the faucet. */
export function buildAirdrop(airdrop: {
  readonly faucet: SigningKey
  readonly to: Uint8Array
  readonly lamports: bigint
  readonly recentBlockhash: Uint8Array
  /** Above 0 for an equal airdrop under the same blockhash: it changes the compute limit, so that the signature differs. */
  readonly repetition: number
}): Uint8Array {
  const { faucet, to, lamports, recentBlockhash, repetition } = airdrop
  const transfer = transferInstruction({ from: faucet.publicKey, to, lamports })
  const instructions = repetition === 0 ? [transfer] : [unitLimitInstruction(UNITS + repetition), transfer]
  return signMessage(buildLegacyMessage({ feePayer: faucet.publicKey, recentBlockhash, instructions }), [faucet])
}

const UNITS = 10_000

function unitLimitInstruction(units: number): Instruction {
  const data = new Uint8Array(5)
  data[0] = 2
  new DataView(data.buffer).setUint32(1, units, true)
  return { programId: decodeBase58(COMPUTE_BUDGET_PROGRAM), accounts: [], data }
}
