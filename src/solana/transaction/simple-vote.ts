import { Buffer } from 'node:buffer'
import { decodeBase58 } from '../crypto/base58.ts'
import type { ParsedTransaction } from './types.ts'

const VOTE_PROGRAM = Buffer.from(decodeBase58('Vote111111111111111111111111111111111111111'))

/** Agave's rule: a legacy transaction with one instruction, of the vote program, and at most two signatures. */
export function isSimpleVote({ version, instructions, signatures, staticKeys }: ParsedTransaction): boolean {
  const [instruction] = instructions
  if (version !== 'legacy' || !instruction || instructions.length !== 1 || signatures.length > 2) return false
  const programId = staticKeys[instruction.programIdIndex]
  return programId !== undefined && VOTE_PROGRAM.compare(programId) === 0
}
