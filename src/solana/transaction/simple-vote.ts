import { Buffer } from 'node:buffer'
import { decodeBase58 } from '../crypto/base58.ts'
import type { ParsedTransaction } from './types.ts'
import type { WireFields } from './wire-fields.ts'

const VOTE_PROGRAM = Buffer.from(decodeBase58('Vote111111111111111111111111111111111111111'))
const SIGNATURES_MAX = 2

/** Agave's rule: a legacy transaction with one instruction, of the vote program, and at most two signatures. */
export function isSimpleVote({ version, instructions, signatures, staticKeys }: ParsedTransaction): boolean {
  const [instruction] = instructions
  if (version !== 'legacy' || !instruction || instructions.length !== 1 || signatures.length > SIGNATURES_MAX)
    return false
  const programId = staticKeys[instruction.programIdIndex]
  return programId !== undefined && VOTE_PROGRAM.compare(programId) === 0
}

/** The same for a transaction whose fields are known. */
export function isSimpleVoteWire(wire: Uint8Array, fields: WireFields): boolean {
  if (fields.isVersioned || fields.instructions !== 1 || fields.signatures > SIGNATURES_MAX) return false
  const at = fields.keysAt + (wire[fields.instructionsAt] as number) * VOTE_PROGRAM.length
  for (let i = 0; i < VOTE_PROGRAM.length; i++) if (wire[at + i] !== VOTE_PROGRAM[i]) return false
  return true
}
