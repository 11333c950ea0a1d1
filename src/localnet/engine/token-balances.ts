import { isTokenAccountData } from '../chain/token-account.ts'
import type { EngineAccount, EngineTokenBalance } from './protocol.ts'

/** Layout of a mint. */
const MINT_BYTES = 82
const DECIMALS_OFFSET = 44

export type TokenBalanceSource = {
  /** All keys of the transaction, and the account of each. */
  readonly keys: readonly Uint8Array[]
  readonly accounts: readonly (EngineAccount | null)[]
  isTokenProgram(address: Uint8Array): boolean
  readMint(address: Uint8Array): EngineAccount | null
}

/** The balances of every token account among the transaction's accounts, as a node lists them: none without the key of a token program. */
export function tokenBalancesOf(source: TokenBalanceSource): EngineTokenBalance[] {
  if (!source.keys.some((key) => source.isTokenProgram(key))) return []
  const balances: EngineTokenBalance[] = []
  source.accounts.forEach((account, accountIndex) => {
    if (!account || !isTokenAccountData(account.data) || !source.isTokenProgram(account.owner)) return
    const { data } = account
    const mint = data.subarray(0, 32)
    const mintData = source.readMint(mint)?.data
    if (!mintData || mintData.length < MINT_BYTES) return
    balances.push({
      accountIndex,
      mint,
      owner: data.subarray(32, 64),
      programId: account.owner,
      amount: new DataView(data.buffer, data.byteOffset).getBigUint64(64, true),
      decimals: mintData[DECIMALS_OFFSET] as number,
    })
  })
  return balances
}
