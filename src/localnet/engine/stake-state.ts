import { STAKE_PROGRAM, VOTE_PROGRAM } from '../chain/addresses.ts'
import type { Account } from '../chain/model.ts'
import { minimumBalance, RENT_EXEMPT_EPOCH } from './sysvars.ts'

/** Encodings of the genesis vote and stake accounts (bincode of `VoteStateVersions` and `StakeStateV2`). */

/** Size of a vote account since state version 3; the bytes after the state are zero. */
const VOTE_BYTES = 3762
const STAKE_BYTES = 200
const PRIOR_VOTERS = 32
const NO_EPOCH = 0xffffffffffffffffn

/** A vote account of state version 3 that has not voted; voter and withdrawer are one key. */
export function voteAccount({
  node,
  authority,
  lamports,
}: {
  readonly node: Uint8Array
  readonly authority: Uint8Array
  readonly lamports: bigint
}): Account {
  const data = new Uint8Array(VOTE_BYTES)
  const write = createWriter(data)
  write.u32(2)
  write.bytes(node)
  write.bytes(authority)
  write.u8(0) // commission
  write.u64(0n) // votes
  write.u8(0) // no root slot
  write.u64(1n) // authorized voters: epoch, key
  write.u64(0n)
  write.bytes(authority)
  // Prior voters: a ring of (key, from epoch, to epoch), its index, and whether it is empty.
  write.skip(PRIOR_VOTERS * 48)
  write.u64(BigInt(PRIOR_VOTERS - 1))
  write.u8(1)
  write.u64(0n) // epoch credits
  write.u64(0n) // last timestamp: slot, time
  write.u64(0n)
  return {
    lamports,
    owner: VOTE_PROGRAM,
    data,
    executable: false,
    rentEpoch: RENT_EXEMPT_EPOCH,
  }
}

/** A stake that has been active since genesis: activation at the epoch before the first. */
export function stakeAccount(stake: {
  readonly voter: Uint8Array
  readonly authority: Uint8Array
  readonly lamports: bigint
}): Account {
  const data = new Uint8Array(STAKE_BYTES)
  const write = createWriter(data)
  write.u32(2)
  write.u64(minimumBalance(STAKE_BYTES))
  write.bytes(stake.authority)
  write.bytes(stake.authority)
  write.skip(8 + 8 + 32) // no lockup
  write.bytes(stake.voter)
  write.u64(stake.lamports)
  write.u64(NO_EPOCH) // activation epoch of a genesis stake
  write.u64(NO_EPOCH) // deactivation epoch: never
  write.f64(0.25) // warm-up rate, unused
  write.u64(0n) // credits observed
  return {
    lamports: stake.lamports + minimumBalance(STAKE_BYTES),
    owner: STAKE_PROGRAM,
    data,
    executable: false,
    rentEpoch: RENT_EXEMPT_EPOCH,
  }
}

function createWriter(data: Uint8Array) {
  const view = new DataView(data.buffer, data.byteOffset, data.length)
  let at = 0
  return {
    u8(value: number) {
      view.setUint8(at, value)
      at += 1
    },
    u32(value: number) {
      view.setUint32(at, value, true)
      at += 4
    },
    u64(value: bigint) {
      view.setBigUint64(at, value, true)
      at += 8
    },
    f64(value: number) {
      view.setFloat64(at, value, true)
      at += 8
    },
    bytes(value: Uint8Array) {
      data.set(value, at)
      at += value.length
    },
    skip(bytes: number) {
      at += bytes
    },
  }
}
