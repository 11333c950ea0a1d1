import type { Json } from '../json.ts'
import { ByteReader, BytesError } from './byte-reader.ts'
import { nameAccounts, type ParsedState } from './parser.ts'

/** Compressed keys and proofs of BLS12-381. */
const BLS_KEY_BYTES = 48
const BLS_PROOF_BYTES = 96
const INITIALIZE_ACCOUNTS = ['voteAccount', 'node', 'inflationRewardsCollector', 'blockRevenueCollector']

/** Vote program, bincode; the compact forms store lockouts as differences. */
export function parseVoteInstruction(accounts: readonly string[], data: Uint8Array): ParsedState {
  const read = new ByteReader(data)
  const named = (...names: string[]) => nameAccounts(accounts, names)
  const voteAccounts = () => named('voteAccount', 'slotHashesSysvar', 'clockSysvar', 'voteAuthority')
  const towerAccounts = () => named('voteAccount', 'voteAuthority')
  switch (read.u32()) {
    case 0: {
      const names = named('voteAccount', 'rentSysvar', 'clockSysvar', 'node')
      read.key()
      const fields = { authorizedVoter: read.key(), authorizedWithdrawer: read.key(), commission: read.u8() }
      return { type: 'initialize', info: { ...names, ...fields } }
    }
    case 1: {
      const fields = { newAuthority: read.key(), authorityType: readAuthorize(read) }
      return { type: 'authorize', info: { ...named('voteAccount', 'clockSysvar', 'authority'), ...fields } }
    }
    case 2:
      return { type: 'vote', info: { ...voteAccounts(), vote: readVote(read) } }
    case 3:
      return {
        type: 'withdraw',
        info: { ...named('voteAccount', 'destination', 'withdrawAuthority'), lamports: read.u64() },
      }
    case 4:
      return {
        type: 'updateValidatorIdentity',
        info: named('voteAccount', 'newValidatorIdentity', 'withdrawAuthority'),
      }
    case 5:
      return { type: 'updateCommission', info: { ...named('voteAccount', 'withdrawAuthority'), commission: read.u8() } }
    case 6:
      return { type: 'voteSwitch', info: { ...voteAccounts(), vote: readVote(read), hash: read.key() } }
    case 7: {
      const names = named('voteAccount', 'clockSysvar', 'authority', 'newAuthority')
      return { type: 'authorizeChecked', info: { ...names, authorityType: readAuthorize(read) } }
    }
    case 8:
      return { type: 'updatevotestate', info: { ...towerAccounts(), voteStateUpdate: readUpdate(read) } }
    case 9: {
      const info = { ...towerAccounts(), voteStateUpdate: readUpdate(read), hash: read.key() }
      return { type: 'updatevotestateswitch', info }
    }
    case 10: {
      const fields = readSeedAuthority(read)
      const info = { ...named('voteAccount', 'clockSysvar', 'authorityBaseKey'), ...fields, newAuthority: read.key() }
      return { type: 'authorizeWithSeed', info }
    }
    case 11: {
      const info = {
        ...named('voteAccount', 'clockSysvar', 'authorityBaseKey', 'newAuthority'),
        ...readSeedAuthority(read),
      }
      return { type: 'authorizeCheckedWithSeed', info }
    }
    case 12:
      return { type: 'compactupdatevotestate', info: { ...towerAccounts(), voteStateUpdate: readCompact(read) } }
    case 13: {
      const info = { ...towerAccounts(), voteStateUpdate: readCompact(read), hash: read.key() }
      return { type: 'compactupdatevotestateswitch', info }
    }
    case 14:
      return { type: 'towersync', info: { ...towerAccounts(), towerSync: readTowerSync(read) } }
    case 15:
      return { type: 'towersyncswitch', info: { ...towerAccounts(), towerSync: readTowerSync(read), hash: read.key() } }
    case 16:
      return { type: 'initializeV2', info: readInitializeV2(accounts, read) }
    case 17: {
      const names = named('voteAccount', 'newCollector', 'withdrawAuthority')
      return { type: 'updateCommissionCollector', info: { ...names, commissionKind: readCommissionKind(read) } }
    }
    case 18: {
      const fields = { commissionBps: read.u16(), commissionKind: readCommissionKind(read) }
      return { type: 'updateCommissionBps', info: { ...named('voteAccount', 'withdrawAuthority'), ...fields } }
    }
    case 19:
      return { type: 'depositDelegatorRewards', info: { ...named('voteAccount', 'source'), deposit: read.u64() } }
    default:
      throw new BytesError('unknown instruction')
  }
}

/** The collectors are fields in the first version of the instruction (SIMD-0464), accounts in the second. */
function readInitializeV2(accounts: readonly string[], read: ByteReader): Json {
  read.key()
  const authorizedVoter = read.key()
  read.bytes(BLS_KEY_BYTES + BLS_PROOF_BYTES)
  const authorizedWithdrawer = read.key()
  const hasFields = read.remaining >= 2 * (2 + 32)
  const inflationRewardsCommissionBps = read.u16()
  const fieldOfInflation = hasFields ? read.key() : undefined
  const blockRevenueCommissionBps = read.u16()
  const fieldOfRevenue = hasFields ? read.key() : undefined
  const named = nameAccounts(accounts, hasFields ? INITIALIZE_ACCOUNTS.slice(0, 2) : INITIALIZE_ACCOUNTS)
  return {
    voteAccount: named['voteAccount'],
    node: named['node'],
    authorizedVoter,
    authorizedWithdrawer,
    inflationRewardsCommissionBps,
    inflationRewardsCollector: fieldOfInflation ?? named['inflationRewardsCollector'],
    blockRevenueCommissionBps,
    blockRevenueCollector: fieldOfRevenue ?? named['blockRevenueCollector'],
  }
}

function readCommissionKind(read: ByteReader): string {
  const kind = ['InflationRewards', 'BlockRevenue'][read.u32()]
  if (kind === undefined) throw new BytesError('unknown commission')
  return kind
}

function readVote(read: ByteReader): Json {
  return { slots: read.list64(8, () => read.u64()), hash: read.key(), timestamp: read.option(() => read.i64()) }
}

function readUpdate(read: ByteReader): Json {
  const lockouts = read.list64(12, () => ({ slot: read.u64(), confirmation_count: read.u32() }))
  return { lockouts, root: read.option(() => read.u64()), hash: read.key(), timestamp: read.option(() => read.i64()) }
}

const NO_ROOT = 0xffffffffffffffffn

/** Root (all ones for none), then each lockout as the distance from the one before. */
function readCompact(read: ByteReader): { readonly [member: string]: Json } {
  const root = read.u64()
  let slot = root === NO_ROOT ? 0n : root
  const lockouts: Json[] = []
  for (let left = read.shortLength(); left > 0; left--) {
    slot += readVarint(read)
    lockouts.push({ slot, confirmation_count: read.u8() })
  }
  return { lockouts, root: root === NO_ROOT ? null : root, hash: read.key(), timestamp: read.option(() => read.i64()) }
}

function readTowerSync(read: ByteReader): Json {
  return { ...readCompact(read), blockId: read.key() }
}

function readVarint(read: ByteReader): bigint {
  let value = 0n
  for (let shift = 0n; shift < 64n; shift += 7n) {
    const byte = read.u8()
    value |= BigInt(byte & 0x7f) << shift
    if (byte < 0x80) return value
  }
  throw new BytesError('varint too long')
}

function readSeedAuthority(read: ByteReader) {
  return { authorityType: readAuthorize(read), authorityOwner: read.key(), authoritySeed: read.string64() }
}

/** The third kind carries a key for the votes of Alpenglow and the proof that the voter holds it (SIMD-0387). */
function readAuthorize(read: ByteReader): Json {
  switch (read.u32()) {
    case 0:
      return 'Voter'
    case 1:
      return 'Withdrawer'
    case 2: {
      const key = Array.from(read.bytes(BLS_KEY_BYTES))
      return { VoterWithBLS: { bls_pubkey: key, bls_proof_of_possession: Array.from(read.bytes(BLS_PROOF_BYTES)) } }
    }
    default:
      throw new BytesError('unknown authority')
  }
}
