// The package's main entry loads all of @solana/kit: 60 MB and half a second, and nothing of it is used here.
import internal, { type LiteSvm, type Account as SvmAccount } from 'litesvm/dist/internal.js'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import {
  BPF_LOADER,
  BPF_LOADER_DEPRECATED,
  CLOCK_SYSVAR,
  CONFIG_PROGRAM,
  EPOCH_SCHEDULE_SYSVAR,
  FEATURE_PROGRAM,
  LOADER_V4,
  MEMO_PROGRAM,
  MEMO_PROGRAM_V4,
  NATIVE_LOADER,
  RECENT_BLOCKHASHES_SYSVAR,
  SLOT_HASHES_SYSVAR,
  SLOT_HISTORY_SYSVAR,
  SYSTEM_PROGRAM,
  SYSVAR_OWNER,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
  UPGRADEABLE_LOADER,
} from '../chain/addresses.ts'
import type { EngineAccount, OpenSlot } from './protocol.ts'
import {
  encodeClock,
  encodeEpochSchedule,
  encodeRecentBlockhashes,
  encodeSlotHashes,
  RENT_EXEMPT_EPOCH,
  SLOT_HISTORY_BYTES,
  sysvarAccount,
  writeSlotHistory,
} from './sysvars.ts'

/** The owners of litesvm's built-in accounts; it has no call that lists all accounts. */
const GENESIS_OWNERS = [
  NATIVE_LOADER,
  BPF_LOADER_DEPRECATED,
  BPF_LOADER,
  UPGRADEABLE_LOADER,
  LOADER_V4,
  SYSVAR_OWNER,
  FEATURE_PROGRAM,
  CONFIG_PROGRAM,
  TOKEN_PROGRAM,
].map((address) => decodeBase58(address))

/** litesvm with accounts as `EngineAccount`. Only well-formed transactions may reach `native`: it aborts the process on others. */
export type Svm = {
  readonly native: LiteSvm
  read(address: Uint8Array): EngineAccount | null
  write(address: Uint8Array, account: EngineAccount | null): void
  openSlot(slot: OpenSlot): void
  genesisAccounts(): [Uint8Array, EngineAccount][]
}

export function createSvm(): Svm {
  const native = new internal.LiteSvm()
  // Signatures, age and duplicates are checked before: every message gets the parent's blockhash (see `#execute`), so
  // litesvm cannot check them.
  native.setSigverify(false)
  native.setBlockhashCheck(false)
  native.setTransactionHistory(0n)
  native.withNativeMints()
  const memo = native.getAccount(decodeBase58(MEMO_PROGRAM))
  if (memo) native.addProgram(decodeBase58(MEMO_PROGRAM_V4), memo.data())
  // litesvm's own faucet; and Token-2022's native mint, which clients create on a new chain with CreateNativeMint.
  for (const owner of [SYSTEM_PROGRAM, TOKEN_2022_PROGRAM])
    for (const { address } of native.getProgramAccounts(decodeBase58(owner))) write(address, null)

  // Rewritten every slot; one buffer of 128 KiB avoids an allocation per slot.
  const slotHistory = new Uint8Array(SLOT_HISTORY_BYTES)

  function read(address: Uint8Array): EngineAccount | null {
    const account = native.getAccount(address)
    return account && fromSvm(account)
  }

  function write(address: Uint8Array, account: EngineAccount | null): void {
    const { lamports, data, owner, executable } = account ?? ABSENT
    native.setAccount(address, new internal.Account(lamports, data, owner, executable, RENT_EXEMPT_EPOCH))
  }

  function writeSysvar(address: string, data: Uint8Array): void {
    write(decodeBase58(address), { ...sysvarAccount(data), owner: decodeBase58(SYSVAR_OWNER) })
  }

  return {
    native,
    read,
    write,
    openSlot(slot) {
      writeSysvar(CLOCK_SYSVAR, encodeClock(slot))
      writeSysvar(EPOCH_SCHEDULE_SYSVAR, encodeEpochSchedule(slot.slotsPerEpoch))
      writeSysvar(SLOT_HASHES_SYSVAR, encodeSlotHashes(slot.slotHashes))
      writeSysvar(RECENT_BLOCKHASHES_SYSVAR, encodeRecentBlockhashes(slot.blockhashes))
      writeSysvar(SLOT_HISTORY_SYSVAR, writeSlotHistory(slotHistory, slot.slot - 1))
    },
    genesisAccounts() {
      return GENESIS_OWNERS.flatMap((owner) =>
        native
          .getProgramAccounts(owner)
          .map((found): [Uint8Array, EngineAccount] => [found.address, fromSvm(found.account())]),
      )
    },
  }
}

/** An account without lamports does not exist. */
export const ABSENT: EngineAccount = {
  lamports: 0n,
  owner: new Uint8Array(32),
  data: new Uint8Array(0),
  executable: false,
}

export function fromSvm(account: SvmAccount): EngineAccount {
  return {
    lamports: account.lamports(),
    owner: account.owner(),
    data: account.data(),
    executable: account.executable(),
  }
}
