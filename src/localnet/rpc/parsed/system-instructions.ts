import { ByteReader, BytesError } from './byte-reader.ts'
import { nameAccounts, type ParsedState } from './parser.ts'

/** System program, bincode: a discriminant of 32 bits, then the fields. */
export function parseSystemInstruction(accounts: readonly string[], data: Uint8Array): ParsedState {
  const read = new ByteReader(data)
  const named = (...names: string[]) => nameAccounts(accounts, names)
  switch (read.u32()) {
    case 0: {
      const info = { ...named('source', 'newAccount'), lamports: read.u64(), space: read.u64(), owner: read.key() }
      return { type: 'createAccount', info }
    }
    case 1:
      return { type: 'assign', info: { ...named('account'), owner: read.key() } }
    case 2:
      return { type: 'transfer', info: { ...named('source', 'destination'), lamports: read.u64() } }
    case 3: {
      const seeded = {
        base: read.key(),
        seed: read.string64(),
        lamports: read.u64(),
        space: read.u64(),
        owner: read.key(),
      }
      return { type: 'createAccountWithSeed', info: { ...named('source', 'newAccount'), ...seeded } }
    }
    case 4:
      return { type: 'advanceNonce', info: named('nonceAccount', 'recentBlockhashesSysvar', 'nonceAuthority') }
    case 5: {
      const names = named('nonceAccount', 'destination', 'recentBlockhashesSysvar', 'rentSysvar', 'nonceAuthority')
      return { type: 'withdrawFromNonce', info: { ...names, lamports: read.u64() } }
    }
    case 6: {
      const names = named('nonceAccount', 'recentBlockhashesSysvar', 'rentSysvar')
      return { type: 'initializeNonce', info: { ...names, nonceAuthority: read.key() } }
    }
    case 7:
      return { type: 'authorizeNonce', info: { ...named('nonceAccount', 'nonceAuthority'), newAuthorized: read.key() } }
    case 8:
      return { type: 'allocate', info: { ...named('account'), space: read.u64() } }
    case 9: {
      named('account', 'base')
      const seeded = { base: read.key(), seed: read.string64(), space: read.u64(), owner: read.key() }
      return { type: 'allocateWithSeed', info: { ...named('account'), ...seeded } }
    }
    case 10: {
      named('account', 'base')
      const seeded = { base: read.key(), seed: read.string64(), owner: read.key() }
      return { type: 'assignWithSeed', info: { ...named('account'), ...seeded } }
    }
    case 11: {
      const fields = { lamports: read.u64(), sourceSeed: read.string64(), sourceOwner: read.key() }
      return { type: 'transferWithSeed', info: { ...named('source', 'sourceBase', 'destination'), ...fields } }
    }
    case 12:
      return { type: 'upgradeNonce', info: named('nonceAccount') }
    case 13: {
      const lamports = read.u64()
      const fields = { space: read.u64(), owner: read.key() }
      const info =
        lamports === 0n
          ? { ...named('newAccount'), ...fields }
          : { ...named('newAccount', 'source'), lamports, ...fields }
      return { type: 'createAccountAllowPrefund', info }
    }
    default:
      throw new BytesError('unknown instruction')
  }
}
