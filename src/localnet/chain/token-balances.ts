import type { EngineAccount, EngineTokenBalance } from '../engine/protocol.ts'

/** Layouts of the token programs: account of 165 bytes, mint of 82; Token-2022 puts the kind of account at byte 165. */
const ACCOUNT_BYTES = 165
const MULTISIG_BYTES = 355
const MINT_BYTES = 82
const KIND_ACCOUNT = 2
const STATE_AT = 108
const DECIMALS_AT = 44

export type TokenBalanceSource = {
  readonly accounts: readonly (EngineAccount | null)[]
  isTokenProgram(owner: Uint8Array): boolean
  readMint(address: Uint8Array): EngineAccount | null
}

/** The balances of every token account among the transaction's accounts, as a node lists them. */
export function tokenBalancesOf(source: TokenBalanceSource): EngineTokenBalance[] {
  const balances: EngineTokenBalance[] = []
  source.accounts.forEach((account, accountIndex) => {
    if (!account || !isTokenAccount(account.data) || !source.isTokenProgram(account.owner)) return
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
      decimals: mintData[DECIMALS_AT] as number,
    })
  })
  return balances
}

function isTokenAccount(data: Uint8Array): boolean {
  if (data.length < ACCOUNT_BYTES || data.length === MULTISIG_BYTES || data[STATE_AT] === 0) return false
  return data.length === ACCOUNT_BYTES || data[ACCOUNT_BYTES] === KIND_ACCOUNT
}
