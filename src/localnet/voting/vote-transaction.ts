import { decodeBase58 } from '../../solana/crypto/base58.ts'
import type { SigningKey } from '../../solana/crypto/ed25519.ts'
import { buildLegacyMessage, signMessage } from '../../solana/transaction/build.ts'
import { VOTE_PROGRAM } from '../chain/addresses.ts'

/** The block that is voted for. */
export type VotedBlock = {
  readonly slot: number
  readonly bankHash: Uint8Array
  readonly blockhash: Uint8Array
  /** Unix seconds. */
  readonly time: number
}

/** MAX_LOCKOUT_HISTORY of the vote program; older votes become the root. */
const LOCKOUTS_MAX = 31
const VOTE_PROGRAM_BYTES = decodeBase58(VOTE_PROGRAM)
const TOWER_SYNC = 14

/** A vote as a validator sends it: paid by the identity, signed by the vote account as its own authority. */
export function buildVoteTransaction(vote: {
  readonly block: VotedBlock
  readonly identity: SigningKey
  readonly voteAccount: SigningKey
}): Uint8Array {
  const { block, identity, voteAccount } = vote
  const address = voteAccount.publicKey
  const instruction = {
    programId: VOTE_PROGRAM_BYTES,
    accounts: [
      { address, signer: false, writable: true },
      { address, signer: true, writable: false },
    ],
    data: encodeTowerSync(block),
  }
  const message = buildLegacyMessage({
    feePayer: identity.publicKey,
    recentBlockhash: block.blockhash,
    instructions: [instruction],
  })
  return signMessage(message, [identity, voteAccount])
}

/**
 * VoteInstruction::TowerSync in its compact form: root, then each lockout as the distance from the one before and its
 * confirmation count. Every slot of this chain has a block, so the tower of a block follows from its slot.
 */
function encodeTowerSync({ slot, bankHash, blockhash, time }: VotedBlock): Uint8Array {
  const lockouts = Math.min(slot, LOCKOUTS_MAX)
  const data = new Uint8Array(4 + 8 + 1 + lockouts * 2 + 32 + 9 + 32)
  const view = new DataView(data.buffer)
  view.setUint32(0, TOWER_SYNC, true)
  view.setBigUint64(4, BigInt(slot - lockouts), true)
  data[12] = lockouts
  let at = 13
  for (let confirmations = lockouts; confirmations > 0; confirmations--) {
    data[at++] = 1
    data[at++] = confirmations
  }
  data.set(bankHash, at)
  data[at + 32] = 1 // with a timestamp
  view.setBigInt64(at + 33, BigInt(time), true)
  data.set(blockhash, at + 41) // the block id
  return data
}
