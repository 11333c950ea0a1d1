import * as web3 from '@solana/web3.js'
import { ASSOCIATED_TOKEN_PROGRAM, TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../../../src/localnet/chain/addresses.ts'
import { a, b, c, d, e } from './parsed-instruction.ts'

const PROGRAMS = {
  token: TOKEN_PROGRAM,
  'token-2022': TOKEN_2022_PROGRAM,
  'associated-token': ASSOCIATED_TOKEN_PROGRAM,
} as const

const ACCOUNTS: Readonly<Record<string, web3.PublicKey>> = {
  a,
  b,
  c,
  d,
  e,
  R: web3.SYSVAR_RENT_PUBKEY,
  S: web3.SystemProgram.programId,
  T: new web3.PublicKey(TOKEN_PROGRAM),
}

/**
 * Instructions of the token programs as built by @solana/spl-token 0.4.15: program, accounts, data. They are recorded because that package
 * depends on one with a known vulnerability (bigint-buffer), and no other package builds those of Token-2022 for the clients used here.
 */
const RECORDED = {
  initializeMint: [
    'token',
    'aR',
    '00060202020202020202020202020202020202020202020202020202020202020202010303030303030303030303030303030303030303030303030303030303030303',
  ],
  initializeMint2: ['token', 'a', '1406020202020202020202020202020202020202020202020202020202020202020200'],
  initializeAccount: ['token', 'abcR', '01'],
  initializeAccount2: ['token', 'abR', '100303030303030303030303030303030303030303030303030303030303030303'],
  initializeAccount3: ['token', 'ab', '120303030303030303030303030303030303030303030303030303030303030303'],
  initializeMultisig: ['token', 'aRbc', '0202'],
  transfer: ['token', 'abc', '030500000000000000'],
  transferByMultisig: ['token', 'abcde', '030500000000000000'],
  approve: ['token', 'abc', '040500000000000000'],
  revoke: ['token', 'ab', '05'],
  setAuthority: ['token', 'ab', '060000'],
  setAuthorityOfAccount: ['token', 'ab', '0602010303030303030303030303030303030303030303030303030303030303030303'],
  mintTo: ['token', 'abc', '07ffffffffffffffff'],
  burn: ['token', 'abc', '080100000000000000'],
  closeAccount: ['token', 'abc', '09'],
  freezeAccount: ['token', 'abc', '0a'],
  thawAccount: ['token', 'abc', '0b'],
  transferChecked: ['token', 'abcd', '0c960000000000000002'],
  approveChecked: ['token', 'abcd', '0d010000000000000002'],
  mintToChecked: ['token', 'abc', '0e640000000000000002'],
  burnChecked: ['token', 'abc', '0f010000000000000002'],
  syncNative: ['token', 'a', '11'],
  initializeImmutableOwner: ['token-2022', 'a', '16'],
  amountToUiAmount: ['token', 'a', '170700000000000000'],
  uiAmountToAmount: ['token', 'a', '18312e35'],
  initializeMintCloseAuthority: [
    'token-2022',
    'a',
    '19010202020202020202020202020202020202020202020202020202020202020202',
  ],
  initializeTransferFeeConfig: [
    'token-2022',
    'a',
    '1a00010202020202020202020202020202020202020202020202020202020202020202000a006300000000000000',
  ],
  transferCheckedWithFee: ['token-2022', 'abcd', '1a016400000000000000020100000000000000'],
  withdrawWithheldTokensFromAccounts: ['token-2022', 'abcde', '1a0302'],
  harvestWithheldTokensToMint: ['token-2022', 'ab', '1a04'],
  initializeDefaultAccountState: ['token-2022', 'a', '1c0002'],
  updateDefaultAccountState: ['token-2022', 'ab', '1c0101'],
  enableRequiredMemoTransfers: ['token-2022', 'ab', '1e00'],
  disableCpiGuard: ['token-2022', 'ab', '2201'],
  initializeInterestBearingMint: [
    'token-2022',
    'a',
    '21000202020202020202020202020202020202020202020202020202020202020202f9ff',
  ],
  initializePermanentDelegate: [
    'token-2022',
    'a',
    '230202020202020202020202020202020202020202020202020202020202020202',
  ],
  initializeTransferHook: [
    'token-2022',
    'a',
    '240002020202020202020202020202020202020202020202020202020202020202020303030303030303030303030303030303030303030303030303030303030303',
  ],
  updateMetadataPointer: ['token-2022', 'ab', '27010303030303030303030303030303030303030303030303030303030303030303'],
  initializeNonTransferableMint: ['token-2022', 'a', '20'],
  reallocate: ['token-2022', 'abSc', '1d08000200'],
  pause: ['token-2022', 'ab', '2c01'],
  updateMultiplierData: ['token-2022', 'ab', '2b01000000000000f83f3c00000000000000'],
  syncNativeOfOther: ['token', 'd', '11'],
  associatedTokenAccount: ['associated-token', 'abcdST', ''],
  associatedTokenAccountIdempotent: ['associated-token', 'abcdST', '01'],
} as const satisfies Record<string, readonly [keyof typeof PROGRAMS, string, string]>

export function tokenInstruction(name: keyof typeof RECORDED): web3.TransactionInstruction {
  const [program, accounts, data] = RECORDED[name]
  return new web3.TransactionInstruction({
    programId: new web3.PublicKey(PROGRAMS[program]),
    keys: Array.from(accounts, (letter) => ({
      pubkey: ACCOUNTS[letter] as web3.PublicKey,
      isSigner: false,
      isWritable: false,
    })),
    data: Buffer.from(data, 'hex'),
  })
}
