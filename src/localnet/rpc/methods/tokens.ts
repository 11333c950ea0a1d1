import { TOKEN_PROGRAM } from '../../chain/addresses.ts'
import type { Account, Chain } from '../../chain/model.ts'
import { isTokenAccountData } from '../../chain/token-account.ts'
import { type BankView, openBank, type RpcMethods, withContext } from '../context.ts'
import { displayOfMint } from '../encode-account.ts'
import { invalidParams } from '../errors.ts'
import { readArguments, string } from '../params.ts'
import { isTokenProgram } from '../parsed/program-ids.ts'
import { encodeTokenAmount, type TokenDisplay } from '../parsed/token-amount.ts'
import { parseTokenAccount, type TokenAccountState } from '../parsed/token-state.ts'
import * as shape from '../request-shapes.ts'
import { encodeKeyed, sortByAddress } from './accounts.ts'
import { takeLargest } from './largest-balances.ts'

const NATIVE_MINT = 'So11111111111111111111111111111111111111112'
const NATIVE_DECIMALS = 9

export const tokenMethods: RpcMethods = {
  getTokenAccountBalance({ chain }, params) {
    const [text, config] = readArguments(params, [string], [shape.commitmentConfig])
    const address = shape.checkAddress(text)
    const bank = openBank(chain, config)
    const account = bank.readAccount(address)
    if (!account) throw invalidParams('Invalid param: could not find account')
    const state = isTokenProgram(account.owner) ? parseTokenAccount(account.data) : undefined
    if (!state) throw invalidParams('Invalid param: not a Token account')
    return withContext(bank.slot, encodeTokenAmount(state.amount, readMint(bank, state.mint).display))
  },

  getTokenSupply({ chain }, params) {
    const [text, config] = readArguments(params, [string], [shape.commitmentConfig])
    const address = shape.checkAddress(text)
    const bank = openBank(chain, config)
    const account = bank.readAccount(address)
    if (!account) throw invalidParams('Invalid param: could not find account')
    if (!isTokenProgram(account.owner)) throw invalidParams('Invalid param: not a Token mint')
    const display = displayOfMint(account, bank.readAccount)
    if (!display) throw invalidParams('Invalid param: mint could not be unpacked')
    return withContext(bank.slot, encodeTokenAmount(supplyOf(account), display))
  },

  getTokenLargestAccounts({ chain }, params) {
    const [text, config] = readArguments(params, [string], [shape.commitmentConfig])
    const mint = shape.checkAddress(text)
    const bank = openBank(chain, config)
    const { program, display } = readTokenMint(bank, mint)
    const found = findTokenAccounts(chain, bank, program, (state) => state.mint === mint)
    const balances = found.map(({ address, state }) => ({ address, amount: state.amount }))
    return withContext(
      bank.slot,
      takeLargest(balances).map(({ address, amount }) => ({ address, ...encodeTokenAmount(amount, display) })),
    )
  },

  getTokenAccountsByOwner({ chain }, params) {
    return listTokenAccounts(chain, params, (state, owner) => state.owner === owner)
  },

  getTokenAccountsByDelegate({ chain }, params) {
    return listTokenAccounts(chain, params, (state, delegate) => state.delegate === delegate)
  },
}

function listTokenAccounts(
  chain: Chain,
  params: string | undefined,
  belongs: (state: TokenAccountState, key: string) => boolean,
) {
  const [text, filter, config] = readArguments(params, [string, shape.tokenAccountsFilter], [shape.accountConfig])
  const key = shape.checkAddress(text)
  shape.checkAddress(filter.address)
  const bank = openBank(chain, config)
  const { program, mint } = resolveFilter(bank, filter)
  const found = findTokenAccounts(
    chain,
    bank,
    program,
    (state) => belongs(state, key) && (mint === undefined || state.mint === mint),
  )
  const accounts = found.map(({ address, account }) => [address, account] as const)
  sortByAddress(accounts)
  return withContext(
    bank.slot,
    encodeKeyed(bank, accounts, config?.encoding ?? 'binary', shape.toDataSlice(config?.dataSlice)),
  )
}

function resolveFilter(bank: BankView, { kind, address }: { kind: 'mint' | 'programId'; address: string }) {
  if (kind === 'mint') return { program: readTokenMint(bank, address).program, mint: address }
  if (!isTokenProgram(address)) throw invalidParams('Invalid param: unrecognized Token program id')
  return { program: address, mint: undefined }
}

function findTokenAccounts(
  chain: Chain,
  bank: BankView,
  program: string,
  wanted: (state: TokenAccountState) => boolean,
) {
  const found: { address: string; account: Account; state: TokenAccountState }[] = []
  for (const [address, account] of chain.accountsOwnedBy(program, bank.commitment)) {
    const state = isTokenAccountData(account.data) ? parseTokenAccount(account.data) : undefined
    if (state && wanted(state)) found.push({ address, account, state })
  }
  return found
}

function readTokenMint(bank: BankView, mint: string): { readonly program: string; readonly display: TokenDisplay } {
  const read = readMint(bank, mint)
  if (!isTokenProgram(read.program)) throw invalidParams('Invalid param: not a Token mint')
  return read
}

/** The wrapped SOL mint is always known, even when its account does not exist. */
function readMint(bank: BankView, mint: string): { readonly program: string; readonly display: TokenDisplay } {
  if (mint === NATIVE_MINT) return { program: TOKEN_PROGRAM, display: { decimals: NATIVE_DECIMALS, unixTimestamp: 0 } }
  const account = bank.readAccount(mint)
  if (!account) throw invalidParams('Invalid param: could not find mint')
  const display = displayOfMint(account, bank.readAccount)
  if (!display) throw invalidParams('Invalid param: Token mint could not be unpacked')
  return { program: account.owner, display }
}

const SUPPLY_OFFSET = 36

function supplyOf(mint: Account): bigint {
  return new DataView(mint.data.buffer, mint.data.byteOffset).getBigUint64(SUPPLY_OFFSET, true)
}
