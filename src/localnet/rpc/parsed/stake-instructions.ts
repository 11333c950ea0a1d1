import type { Json } from '../json.ts'
import { ByteReader, BytesError } from './byte-reader.ts'
import { nameAccounts, type ParsedState } from './parser.ts'
import { STAKE_CONFIG, SYSVAR } from './program-ids.ts'

/**
 * Stake program, bincode. The program accepts each instruction with the old account list, which includes sysvars, and without them; the
 * parser distinguishes the two as the program does, by checking for the sysvar at its index.
 */
export function parseStakeInstruction(accounts: readonly string[], data: Uint8Array): ParsedState {
  const read = new ByteReader(data)
  const named = (...names: string[]) => nameAccounts(accounts, names)
  const hasClock = (index: number) => accounts[index] === SYSVAR.clock
  switch (read.u32()) {
    case 0: {
      const authorized = { staker: read.key(), withdrawer: read.key() }
      const lockup = { unixTimestamp: read.i64(), epoch: read.u64(), custodian: read.key() }
      const names = accounts[1] === SYSVAR.rent ? named('stakeAccount', 'rentSysvar') : named('stakeAccount')
      return { type: 'initialize', info: { ...names, authorized, lockup } }
    }
    case 1: {
      const fields = { newAuthority: read.key(), authorityType: readAuthorize(read) }
      const names = hasClock(1) ? ['stakeAccount', 'clockSysvar', 'authority'] : ['stakeAccount', 'authority']
      return { type: 'authorize', info: { ...withOptional(accounts, names, 'custodian'), ...fields } }
    }
    case 2:
      return { type: 'delegate', info: nameDelegate(accounts) }
    case 3: {
      const names = withOptional(accounts, ['stakeAccount', 'newSplitAccount'], 'stakeAuthority')
      return { type: 'split', info: { ...names, lamports: read.u64() } }
    }
    case 4: {
      const names = ['stakeAccount', 'destination', ...(hasClock(2) ? CLOCK_AND_HISTORY : []), 'withdrawAuthority']
      return { type: 'withdraw', info: { ...withOptional(accounts, names, 'custodian'), lamports: read.u64() } }
    }
    case 5: {
      const info = hasClock(1)
        ? withOptional(accounts, ['stakeAccount', 'clockSysvar'], 'stakeAuthority')
        : named('stakeAccount', 'stakeAuthority')
      return { type: 'deactivate', info }
    }
    case 6: {
      const lockup = { ...readLockup(read), custodian: read.option(() => read.key()) ?? undefined }
      return { type: 'setLockup', info: { ...named('stakeAccount', 'custodian'), lockup } }
    }
    case 7: {
      const info = hasClock(2)
        ? withOptional(accounts, ['destination', 'source', ...CLOCK_AND_HISTORY], 'stakeAuthority')
        : named('destination', 'source', 'stakeAuthority')
      return { type: 'merge', info }
    }
    case 8: {
      const newAuthorized = read.key()
      const fields = { authorityType: readAuthorize(read), authoritySeed: read.string64(), authorityOwner: read.key() }
      const names = ['stakeAccount', 'authorityBase', ...(hasClock(2) ? ['clockSysvar'] : [])]
      return {
        type: 'authorizeWithSeed',
        info: { ...withOptional(accounts, names, 'custodian'), newAuthorized, ...fields },
      }
    }
    case 9: {
      const rent = accounts[1] === SYSVAR.rent ? ['rentSysvar'] : []
      return { type: 'initializeChecked', info: named('stakeAccount', ...rent, 'staker', 'withdrawer') }
    }
    case 10: {
      const names = ['stakeAccount', ...(hasClock(1) ? ['clockSysvar'] : []), 'authority', 'newAuthority']
      const authorityType = readAuthorize(read)
      return { type: 'authorizeChecked', info: { ...withOptional(accounts, names, 'custodian'), authorityType } }
    }
    case 11: {
      const fields = { authorityType: readAuthorize(read), authoritySeed: read.string64(), authorityOwner: read.key() }
      const names = ['stakeAccount', 'authorityBase', ...(hasClock(2) ? ['clockSysvar'] : []), 'newAuthorized']
      return { type: 'authorizeCheckedWithSeed', info: { ...withOptional(accounts, names, 'custodian'), ...fields } }
    }
    case 12: {
      const lockup = { ...readLockup(read), custodian: accounts[2] }
      return { type: 'setLockupChecked', info: { ...named('stakeAccount', 'custodian'), lockup } }
    }
    case 13:
      return { type: 'getMinimumDelegation' }
    case 14:
      return { type: 'deactivateDelinquent', info: named('stakeAccount', 'voteAccount', 'referenceVoteAccount') }
    case 15: {
      const info = named('stakeAccount', 'newStakeAccount', 'voteAccount', 'stakeConfigAccount', 'stakeAuthority')
      return { type: 'redelegate', info }
    }
    case 16:
      return { type: 'moveStake', info: { ...named('source', 'destination', 'stakeAuthority'), lamports: read.u64() } }
    case 17:
      return {
        type: 'moveLamports',
        info: { ...named('source', 'destination', 'stakeAuthority'), lamports: read.u64() },
      }
    default:
      throw new BytesError('unknown instruction')
  }
}

const CLOCK_AND_HISTORY = ['clockSysvar', 'stakeHistorySysvar']

/** The index of the config account may already hold the authority: the program no longer reads the config account. */
function nameDelegate(accounts: readonly string[]): Json {
  if (accounts[2] !== SYSVAR.clock) return nameAccounts(accounts, ['stakeAccount', 'voteAccount', 'stakeAuthority'])
  const names = ['stakeAccount', 'voteAccount', ...CLOCK_AND_HISTORY]
  if (accounts[4] !== STAKE_CONFIG) return nameAccounts(accounts, [...names, 'stakeAuthority'])
  return withOptional(accounts, [...names, 'stakeConfigAccount'], 'stakeAuthority')
}

function withOptional(accounts: readonly string[], names: readonly string[], last: string) {
  return nameAccounts(accounts, accounts.length > names.length ? [...names, last] : names)
}

function readAuthorize(read: ByteReader): string {
  const type = ['Staker', 'Withdrawer'][read.u32()]
  if (type === undefined) throw new BytesError('unknown authority')
  return type
}

function readLockup(read: ByteReader) {
  return {
    unixTimestamp: read.option(() => read.i64()) ?? undefined,
    epoch: read.option(() => read.u64()) ?? undefined,
  }
}
