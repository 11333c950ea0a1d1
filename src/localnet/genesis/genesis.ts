import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { SYSTEM_PROGRAM, SYSVAR_OWNER, TOKEN_PROGRAM } from '../chain/addresses.ts'
import type { Account } from '../chain/model.ts'
import { sha256 } from '../chain/poh.ts'
import { stakeAccount, voteAccount } from '../engine/stake-state.ts'
import { RENT_EXEMPT_EPOCH, sysvarAccount } from '../engine/sysvars.ts'
import type { ChainKeys } from './keys.ts'

const NATIVE_MINT = 'So11111111111111111111111111111111111111112'
const STAKE_HISTORY_SYSVAR = 'SysvarStakeHistory1111111111111111111111111'
const LAMPORTS_PER_SOL = 1_000_000_000n
/** The value of solana-test-validator. */
const FAUCET_LAMPORTS = 500_000_000n * LAMPORTS_PER_SOL
const IDENTITY_LAMPORTS = 500n * LAMPORTS_PER_SOL
const GENESIS_STAKE_LAMPORTS: bigint = 1_000_000n * LAMPORTS_PER_SOL

export type Genesis = { readonly hash: string; readonly accounts: ReadonlyMap<string, Account> }

/** The state before slot 0: the engine's programs and sysvars, the chain's own accounts, then the fixtures, which may replace any of them. */
export function createGenesis(source: {
  readonly engineAccounts: Iterable<readonly [string, Account]>
  readonly fixtures: Iterable<readonly [string, Account]>
  readonly keys: ChainKeys
  readonly createdAtMs: number
}): Genesis {
  const { keys } = source
  const [faucet, identity, vote, stake] = [keys.faucet, keys.identity, keys.vote, keys.stake].map(
    (key) => key.publicKey,
  )
  const own: [Uint8Array, Account][] = [
    [faucet as Uint8Array, wallet(FAUCET_LAMPORTS)],
    [identity as Uint8Array, wallet(IDENTITY_LAMPORTS)],
    [
      vote as Uint8Array,
      voteAccount({ node: identity as Uint8Array, authority: vote as Uint8Array, lamports: GENESIS_STAKE_LAMPORTS }),
    ],
    [
      stake as Uint8Array,
      stakeAccount({ voter: vote as Uint8Array, authority: identity as Uint8Array, lamports: GENESIS_STAKE_LAMPORTS }),
    ],
  ]
  const accounts = new Map<string, Account>([
    ...Iterator.from(source.engineAccounts).map(asOnValidator),
    ...own.map(([key, account]) => [encodeBase58(key), account] as const),
    ...source.fixtures,
  ])
  return { hash: hashOf(accounts, source.createdAtMs), accounts }
}

/** StakeHistory has its full size from the start: a length and 512 entries of 32 bytes. */
const STAKE_HISTORY_BYTES = 8 + 512 * 32

/** The engine's own accounts with the balances and sizes they have on a test validator. */
function asOnValidator([address, account]: readonly [string, Account]): readonly [string, Account] {
  if (address === NATIVE_MINT) return [address, { ...account, owner: TOKEN_PROGRAM, lamports: LAMPORTS_PER_SOL }]
  if (account.owner !== SYSVAR_OWNER) return [address, account]
  if (address !== STAKE_HISTORY_SYSVAR) return [address, sysvarAccount(account.data)]
  const data = new Uint8Array(STAKE_HISTORY_BYTES)
  data.set(account.data.subarray(0, STAKE_HISTORY_BYTES))
  return [address, sysvarAccount(data)]
}

function wallet(lamports: bigint): Account {
  return { lamports, owner: SYSTEM_PROGRAM, data: new Uint8Array(0), executable: false, rentEpoch: RENT_EXEMPT_EPOCH }
}

function hashOf(accounts: ReadonlyMap<string, Account>, createdAtMs: number): string {
  const header = new TextEncoder().encode(`localnet genesis ${createdAtMs}\n${[...accounts.keys()].join('\n')}`)
  return encodeBase58(sha256(header))
}
