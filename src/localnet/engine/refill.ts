import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { type AddressedAccount, packAccounts } from '../chain/account-codec.ts'
import { NATIVE_LOADER, SYSVAR_OWNER } from '../chain/addresses.ts'
import type { Account } from '../chain/model.ts'
import type { EngineRequest, OpenSlot } from './protocol.ts'
import { fromAccount } from './values.ts'

/** Bytes of account data in one message to the engine. */
const CHUNK_BYTES_MAX = 4 * 1024 * 1024

/** Requests that bring a new engine to the state of the open slot. Programs come last: loading one reads its data account. */
export function* refillRequests(
  accounts: Iterable<readonly [string, Account]>,
  slot: OpenSlot,
): Generator<EngineRequest> {
  const programs: [string, Account][] = []
  const others: [string, Account][] = []
  for (const [address, account] of accounts) {
    // The engine has its own built-ins and sysvars; the sysvars of the slot come with `open`.
    if (account.owner === NATIVE_LOADER || account.owner === SYSVAR_OWNER) continue
    ;(account.executable ? programs : others).push([address, account])
  }
  yield* loadRequests(others)
  yield* loadRequests(programs)
  yield { op: 'open', slot }
}

export function* loadRequests(accounts: Iterable<readonly [string, Account]>): Generator<EngineRequest> {
  let chunk: AddressedAccount[] = []
  let bytes = 0
  for (const [address, account] of accounts) {
    chunk.push([decodeBase58(address), fromAccount(account)])
    bytes += account.data.length + 128
    if (bytes < CHUNK_BYTES_MAX) continue
    yield { op: 'load', accounts: packAccounts(chunk) }
    chunk = []
    bytes = 0
  }
  if (chunk.length > 0) yield { op: 'load', accounts: packAccounts(chunk) }
}
