import { decodeBase58 } from '../../../src/solana/crypto/base58.ts'
import { type Instruction, SYSTEM_PROGRAM } from '../../../src/solana/transaction/build.ts'

const RECENT_BLOCKHASHES = decodeBase58('SysvarRecentB1ockHashes11111111111111111111')
const RENT = decodeBase58('SysvarRent111111111111111111111111111111111')
const NONCE_BYTES = 80

type NonceKeys = { readonly account: Uint8Array; readonly authority: Uint8Array }

/** CreateAccount, then InitializeNonceAccount. `account` and `payer` sign. */
export function createNonce({ account, authority }: NonceKeys, payer: Uint8Array, lamports: bigint): Instruction[] {
  const create = new Uint8Array(52)
  const view = new DataView(create.buffer)
  view.setBigUint64(4, lamports, true)
  view.setBigUint64(12, BigInt(NONCE_BYTES), true)
  return [
    {
      programId: SYSTEM_PROGRAM,
      accounts: [
        { address: payer, signer: true, writable: true },
        { address: account, signer: true, writable: true },
      ],
      data: create,
    },
    {
      programId: SYSTEM_PROGRAM,
      accounts: [
        { address: account, signer: false, writable: true },
        { address: RECENT_BLOCKHASHES, signer: false, writable: false },
        { address: RENT, signer: false, writable: false },
      ],
      data: Uint8Array.of(6, 0, 0, 0, ...authority),
    },
  ]
}

/** AdvanceNonceAccount, the first instruction of durable nonce transactions. */
export function advanceNonce({ account, authority }: NonceKeys, signs = true): Instruction {
  return {
    programId: SYSTEM_PROGRAM,
    accounts: [
      { address: account, signer: false, writable: true },
      { address: RECENT_BLOCKHASHES, signer: false, writable: false },
      { address: authority, signer: signs, writable: false },
    ],
    data: Uint8Array.of(4, 0, 0, 0),
  }
}
