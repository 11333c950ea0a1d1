import { Buffer } from 'node:buffer'
import { mapInSlices } from '../../../platform/process/time-slices.ts'
import { decodeBase58 } from '../../../solana/crypto/base58.ts'
import { STAKE_PROGRAM } from '../../chain/addresses.ts'
import type { Account, Chain } from '../../chain/model.ts'
import { type BankView, openBank, type RpcMethods, withContext } from '../context.ts'
import {
  type AccountEncoding,
  BASE58_ACCOUNT_BYTES_MAX,
  type DataSlice,
  displayOfAccount,
  encodeAccount,
  isListedParsedOnly,
  isTooLongForBase58,
  parseAccount,
  withData,
} from '../encode-account.ts'
import { invalidParams, invalidRequest } from '../errors.ts'
import { createMatcher } from '../filters.ts'
import { type Json, JsonText, writeJson } from '../json.ts'
import { listOf, readArguments, string, usize } from '../params.ts'
import { parsable } from '../parsed/byte-reader.ts'
import { SYSVAR } from '../parsed/program-ids.ts'
import { readStakeState } from '../parsed/stake.ts'
import { readClockTimestamp } from '../parsed/sysvars.ts'
import * as shape from '../request-shapes.ts'
import { takeLargest } from './largest-balances.ts'

const MULTIPLE_ACCOUNTS_MAX = 100
/** MAX_PERMITTED_DATA_LENGTH of the System program. */
const ACCOUNT_BYTES_MAX = 10n * 1024n * 1024n

export const accountMethods: RpcMethods = {
  getAccountInfo({ chain }, params) {
    const [text, config] = readArguments(params, [string], [shape.accountConfig])
    const address = shape.checkAddress(text)
    const bank = openBank(chain, config)
    const account = bank.readAccount(address)
    return withContext(
      bank.slot,
      account && encodeRead(bank, address, account, config?.encoding ?? 'binary', shape.toDataSlice(config?.dataSlice)),
    )
  },

  async getMultipleAccounts({ chain, createSlices }, params) {
    const [texts, config] = readArguments(params, [listOf(string)], [shape.accountConfig])
    if (texts.length > MULTIPLE_ACCOUNTS_MAX)
      throw invalidParams(`Too many inputs provided; max ${MULTIPLE_ACCOUNTS_MAX}`)
    const addresses = texts.map(shape.checkAddress)
    const bank = openBank(chain, config)
    const slice = shape.toDataSlice(config?.dataSlice)
    const encoding = config?.encoding ?? 'base64'
    const distinct = [...new Set(addresses)]
    const reads = pinReads(bank, distinct, encoding)
    const encoded = await mapInSlices(
      distinct,
      (address) => [address, encodeText(reads, address, encoding, slice)] as const,
      createSlices(),
    )
    const byAddress = new Map(encoded)
    return withContext(
      bank.slot,
      addresses.map((address) => byAddress.get(address) ?? null),
    )
  },

  getProgramAccounts({ chain }, params) {
    const [text, config] = readArguments(params, [string], [shape.programAccountsConfig])
    const program = shape.checkAddress(text)
    const matches = createMatcher(config?.filters ?? [])
    const bank = openBank(chain, config)
    const found = Array.from(chain.accountsOwnedBy(program, bank.commitment)).filter(([, account]) => matches(account))
    if (config?.sortResults ?? true) sortByAddress(found)
    const accounts = encodeKeyed(bank, found, config?.encoding ?? 'binary', shape.toDataSlice(config?.dataSlice))
    return config?.withContext ? withContext(bank.slot, accounts) : accounts
  },

  getBalance({ chain }, params) {
    const [text, config] = readArguments(params, [string], [shape.contextConfig])
    const address = shape.checkAddress(text)
    const bank = openBank(chain, config)
    return withContext(bank.slot, bank.readAccount(address)?.lamports ?? 0n)
  },

  getLargestAccounts({ chain }, params) {
    const [config] = readArguments(params, [], [shape.largestAccountsConfig])
    const bank = openBank(chain, config)
    const nonCirculating = config?.filter === undefined ? undefined : findNonCirculating(chain, bank)
    const wanted = (address: string) =>
      !nonCirculating || nonCirculating.has(address) === (config?.filter === 'nonCirculating')
    const balances = Iterator.from(chain.allAccounts(bank.commitment))
      .filter(([address]) => wanted(address))
      .map(([address, { lamports }]) => ({ address, amount: lamports }))
    return withContext(
      bank.slot,
      takeLargest(balances).map(({ address, amount }) => ({ address, lamports: amount })),
    )
  },

  getSupply({ chain }, params) {
    const [config] = readArguments(params, [], [shape.supplyConfig])
    const bank = openBank(chain, config)
    const nonCirculating = findNonCirculating(chain, bank)
    let total = 0n
    let held = 0n
    for (const [address, { lamports }] of chain.allAccounts(bank.commitment)) {
      total += lamports
      if (nonCirculating.has(address)) held += lamports
    }
    const nonCirculatingAccounts = config?.excludeNonCirculatingAccountsList ? [] : [...nonCirculating]
    return withContext(bank.slot, { total, circulating: total - held, nonCirculating: held, nonCirculatingAccounts })
  },

  getMinimumBalanceForRentExemption({ chain }, params) {
    const [bytes] = readArguments(params, [usize], [shape.commitmentConfig])
    if (bytes > ACCOUNT_BYTES_MAX) throw invalidRequest()
    return chain.minimumBalance(Number(bytes))
  },
}

type AccountReads = Pick<BankView, 'readAccount'>

/** The accounts as they are now, with those that their encoding needs: work in slices continues at a later slot. */
function pinReads(
  { readAccount }: AccountReads,
  addresses: readonly string[],
  encoding: AccountEncoding,
): AccountReads {
  const pinned = new Map<string, Account | null>()
  const pin = (address: string) => {
    const known = pinned.get(address)
    if (known !== undefined) return known
    const account = readAccount(address)
    pinned.set(address, account)
    return account
  }
  for (const address of addresses) {
    const account = pin(address)
    if (account && encoding === 'jsonParsed') displayOfAccount(account, pin)
  }
  return { readAccount: pin }
}

function encodeText(
  reads: AccountReads,
  address: string,
  encoding: AccountEncoding,
  dataSlice: DataSlice | undefined,
): JsonText | null {
  const account = reads.readAccount(address)
  return account && new JsonText(writeJson(encodeRead(reads, address, account, encoding, dataSlice)))
}

/** Throws -32600 for data too long for base58. */
function encodeRead(
  { readAccount }: AccountReads,
  address: string,
  account: Account,
  encoding: AccountEncoding,
  dataSlice: DataSlice | undefined,
): Json {
  if (isTooLongForBase58(account, { encoding, dataSlice })) {
    throw invalidRequest(
      `Encoded binary (base 58) data should be less than ${BASE58_ACCOUNT_BYTES_MAX} bytes, please use Base64 encoding.`,
    )
  }
  return encodeAccount(address, account, { encoding, dataSlice, readAccount })
}

export function encodeKeyed(
  bank: BankView,
  accounts: readonly (readonly [string, Account])[],
  encoding: AccountEncoding,
  dataSlice: DataSlice | undefined,
): Json {
  return accounts.flatMap(([pubkey, account]) => {
    if (!isListedParsedOnly(account, encoding)) {
      return [{ pubkey, account: encodeRead(bank, pubkey, account, encoding, dataSlice) }]
    }
    const data = parseAccount(pubkey, account, bank.readAccount)
    return data === undefined ? [] : [{ pubkey, account: withData(account, data) }]
  })
}

/** Sorts by the bytes of the address, as Agave's sorted scan does. */
export function sortByAddress(accounts: (readonly [string, Account])[]): void {
  const keys = new Map(accounts.map(([address]) => [address, decodeBase58(address)]))
  accounts.sort(([a], [b]) => Buffer.compare(keys.get(a) as Uint8Array, keys.get(b) as Uint8Array))
}

/**
 * Accounts with non-circulating lamports: stake under a lockup in force, and stake that only the chain's validator may withdraw, such
 * as the genesis stake. Mainnet's list of accounts does not apply to this chain.
 */
function findNonCirculating(chain: Chain, bank: BankView): ReadonlySet<string> {
  const found = new Set<string>()
  const clock = bank.readAccount(SYSVAR.clock)
  const now = clock ? readClockTimestamp(clock.data) : 0n
  const epoch = BigInt(Math.floor(bank.slot / chain.slotsPerEpoch))
  for (const [address, account] of chain.accountsOwnedBy(STAKE_PROGRAM, bank.commitment)) {
    const meta = parsable(() => readStakeState(account.data))?.meta
    if (!meta) continue
    const { lockup, withdrawer } = meta
    if (withdrawer === chain.identity || lockup.unixTimestamp > now || lockup.epoch > epoch) found.add(address)
  }
  return found
}
