import * as known from '../../chain/addresses.ts'

/** Addresses used only by the parsers, beside those of `chain/addresses.ts`. */
export const MEMO_PROGRAM_V1 = 'Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo'
export const STAKE_CONFIG = 'StakeConfig11111111111111111111111111111111'
export const VALIDATOR_INFO = 'Va1idator1nfo111111111111111111111111111111'
const ZK_TOKEN_PROOF = 'ZkTokenProof1111111111111111111111111111111'
const ZK_ELGAMAL_PROOF = 'ZkE1Gama1Proof11111111111111111111111111111'

export const SYSVAR = {
  clock: known.CLOCK_SYSVAR,
  epochRewards: 'SysvarEpochRewards1111111111111111111111111',
  epochSchedule: known.EPOCH_SCHEDULE_SYSVAR,
  fees: 'SysvarFees111111111111111111111111111111111',
  instructions: 'Sysvar1nstructions1111111111111111111111111',
  lastRestartSlot: 'SysvarLastRestartS1ot1111111111111111111111',
  recentBlockhashes: known.RECENT_BLOCKHASHES_SYSVAR,
  rent: known.RENT_SYSVAR,
  rewards: 'SysvarRewards111111111111111111111111111111',
  slotHashes: known.SLOT_HASHES_SYSVAR,
  slotHistory: known.SLOT_HISTORY_SYSVAR,
  stakeHistory: 'SysvarStakeHistory1111111111111111111111111',
} as const

/** Keys that are never write-locked, regardless of a transaction's header (Agave's reserved account keys, all activated). */
export const RESERVED_KEYS: ReadonlySet<string> = new Set([
  ...Object.values(SYSVAR),
  known.SYSVAR_OWNER,
  known.SYSTEM_PROGRAM,
  known.LOOKUP_TABLE_PROGRAM,
  known.BPF_LOADER,
  known.BPF_LOADER_DEPRECATED,
  known.UPGRADEABLE_LOADER,
  known.LOADER_V4,
  known.NATIVE_LOADER,
  known.CONFIG_PROGRAM,
  known.STAKE_PROGRAM,
  known.VOTE_PROGRAM,
  known.COMPUTE_BUDGET_PROGRAM,
  known.FEATURE_PROGRAM,
  known.ED25519_PROGRAM,
  known.SECP256K1_PROGRAM,
  known.SECP256R1_PROGRAM,
  STAKE_CONFIG,
  ZK_TOKEN_PROOF,
  ZK_ELGAMAL_PROOF,
])

/** `is_known_spl_token_id` of Agave. */
export function isTokenProgram(id: string): boolean {
  return id === known.TOKEN_PROGRAM || id === known.TOKEN_2022_PROGRAM
}
