import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { type Instruction, SYSTEM_PROGRAM } from '../../solana/transaction/build.ts'
import { TOKEN_PROGRAM } from '../chain/addresses.ts'

/** The instructions of the Token Program that the traffic generator uses (`spl-token` instruction numbers). */

export const MINT_BYTES = 82
export const TOKEN_ACCOUNT_BYTES = 165
const INITIALIZE_ACCOUNT_3 = 18
const INITIALIZE_MINT_2 = 20
const MINT_TO = 7
const TRANSFER_CHECKED = 12

/** System Program instruction 0: lamports u64, space u64, owner. */
export function createTokenOwnedAccount(account: {
  readonly payer: Uint8Array
  readonly address: Uint8Array
  readonly lamports: bigint
  readonly bytes: number
}): Instruction {
  const data = new Uint8Array(52)
  const view = new DataView(data.buffer)
  view.setBigUint64(4, account.lamports, true)
  view.setBigUint64(12, BigInt(account.bytes), true)
  data.set(tokenProgram(), 20)
  return { programId: SYSTEM_PROGRAM, accounts: [signer(account.payer), signer(account.address)], data }
}

export function initializeMint(mint: Uint8Array, authority: Uint8Array, decimals: number): Instruction {
  const data = new Uint8Array(35)
  data[0] = INITIALIZE_MINT_2
  data[1] = decimals
  data.set(authority, 2)
  return { programId: tokenProgram(), accounts: [writable(mint)], data }
}

export function initializeTokenAccount(account: Uint8Array, mint: Uint8Array, owner: Uint8Array): Instruction {
  const data = new Uint8Array(33)
  data[0] = INITIALIZE_ACCOUNT_3
  data.set(owner, 1)
  return { programId: tokenProgram(), accounts: [writable(account), readonly(mint)], data }
}

export function mintTo(mint: Uint8Array, account: Uint8Array, authority: Uint8Array, amount: bigint): Instruction {
  const data = new Uint8Array(9)
  data[0] = MINT_TO
  new DataView(data.buffer).setBigUint64(1, amount, true)
  return { programId: tokenProgram(), accounts: [writable(mint), writable(account), readonlySigner(authority)], data }
}

export function transferTokens(transfer: {
  readonly from: Uint8Array
  readonly to: Uint8Array
  readonly mint: Uint8Array
  readonly owner: Uint8Array
  readonly amount: bigint
  readonly decimals: number
}): Instruction {
  const data = new Uint8Array(10)
  data[0] = TRANSFER_CHECKED
  new DataView(data.buffer).setBigUint64(1, transfer.amount, true)
  data[9] = transfer.decimals
  const accounts = [
    writable(transfer.from),
    readonly(transfer.mint),
    writable(transfer.to),
    readonlySigner(transfer.owner),
  ]
  return { programId: tokenProgram(), accounts, data }
}

function tokenProgram(): Uint8Array {
  return decodeBase58(TOKEN_PROGRAM)
}

const signer = (address: Uint8Array) => ({ address, signer: true, writable: true })
const readonlySigner = (address: Uint8Array) => ({ address, signer: true, writable: false })
const writable = (address: Uint8Array) => ({ address, signer: false, writable: true })
const readonly = (address: Uint8Array) => ({ address, signer: false, writable: false })
