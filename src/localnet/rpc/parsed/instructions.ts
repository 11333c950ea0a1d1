import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import * as address from '../../chain/addresses.ts'
import type { Json } from '../json.ts'
import { ByteReader, BytesError, parsable, readUtf8 } from './byte-reader.ts'
import { parseLoaderInstruction, parseUpgradeableLoaderInstruction } from './loader-instructions.ts'
import { type InstructionParser, nameAccounts, type ParsedState } from './parser.ts'
import * as id from './program-ids.ts'
import { parseStakeInstruction } from './stake-instructions.ts'
import { parseSystemInstruction } from './system-instructions.ts'
import { parseTokenInstruction } from './token-instructions.ts'
import { parseVoteInstruction } from './vote-instructions.ts'

export type CompiledInstruction = {
  readonly programIdIndex: number
  readonly accounts: Uint8Array
  readonly data: Uint8Array
}

const PARSERS: Readonly<Record<string, { readonly program: string; readonly parse: InstructionParser }>> = {
  [address.LOOKUP_TABLE_PROGRAM]: { program: 'address-lookup-table', parse: parseLookupTableInstruction },
  [address.ASSOCIATED_TOKEN_PROGRAM]: {
    program: 'spl-associated-token-account',
    parse: parseAssociatedTokenInstruction,
  },
  [address.BPF_LOADER]: { program: 'bpf-loader', parse: parseLoaderInstruction },
  [address.UPGRADEABLE_LOADER]: { program: 'bpf-upgradeable-loader', parse: parseUpgradeableLoaderInstruction },
  [address.STAKE_PROGRAM]: { program: 'stake', parse: parseStakeInstruction },
  [address.SYSTEM_PROGRAM]: { program: 'system', parse: parseSystemInstruction },
  [address.TOKEN_PROGRAM]: { program: 'spl-token', parse: parseTokenInstruction },
  [address.TOKEN_2022_PROGRAM]: { program: 'spl-token', parse: parseTokenInstruction },
  [address.VOTE_PROGRAM]: { program: 'vote', parse: parseVoteInstruction },
}

export const MEMO_PROGRAMS: ReadonlySet<string> = new Set([
  id.MEMO_PROGRAM_V1,
  address.MEMO_PROGRAM,
  address.MEMO_PROGRAM_V4,
])

/** An instruction in encoding `jsonParsed`: parsed where its program is known and its data valid, else with its account addresses. */
export function encodeParsedInstruction(
  instruction: CompiledInstruction,
  keys: readonly string[],
  stackHeight: number | null,
): Json {
  const programId = keys[instruction.programIdIndex] ?? ''
  const accounts = Array.from(instruction.accounts, (index) => keys[index] ?? '')
  if (MEMO_PROGRAMS.has(programId)) {
    const text = parsable(() => readUtf8(instruction.data))
    if (text !== undefined) return { program: 'spl-memo', programId, parsed: text, stackHeight }
  }
  const known = PARSERS[programId]
  // Agave does not parse an instruction without accounts.
  const parsed = known && accounts.length > 0 ? parsable(() => known.parse(accounts, instruction.data)) : undefined
  if (known && parsed) return { program: known.program, programId, parsed, stackHeight }
  return { programId, accounts, data: encodeBase58(instruction.data), stackHeight }
}

function parseAssociatedTokenInstruction(accounts: readonly string[], data: Uint8Array): ParsedState {
  if (data.length > 1) throw new BytesError('bytes left over')
  const create = ['source', 'account', 'wallet', 'mint', 'systemProgram', 'tokenProgram']
  switch (data[0] ?? 0) {
    case 0:
      return { type: 'create', info: nameAccounts(accounts, create) }
    case 1:
      return { type: 'createIdempotent', info: nameAccounts(accounts, create) }
    case 2: {
      const names = ['nestedSource', 'nestedMint', 'destination', 'nestedOwner', 'ownerMint', 'wallet', 'tokenProgram']
      return { type: 'recoverNested', info: nameAccounts(accounts, names) }
    }
    default:
      throw new BytesError('unknown instruction')
  }
}

function parseLookupTableInstruction(accounts: readonly string[], data: Uint8Array): ParsedState {
  const read = new ByteReader(data)
  const table = ['lookupTableAccount', 'lookupTableAuthority']
  switch (read.u32()) {
    case 0: {
      const named = nameAccounts(accounts, [...table, 'payerAccount', 'systemProgram'])
      return { type: 'createLookupTable', info: { ...named, recentSlot: read.u64(), bumpSeed: read.u8() } }
    }
    case 1:
      return { type: 'freezeLookupTable', info: nameAccounts(accounts, table) }
    case 2: {
      const named = nameAccounts(accounts, accounts.length >= 4 ? [...table, 'payerAccount', 'systemProgram'] : table)
      return { type: 'extendLookupTable', info: { ...named, newAddresses: read.list64(32, () => read.key()) } }
    }
    case 3:
      return { type: 'deactivateLookupTable', info: nameAccounts(accounts, table) }
    case 4:
      return { type: 'closeLookupTable', info: nameAccounts(accounts, [...table, 'recipient']) }
    default:
      throw new BytesError('unknown instruction')
  }
}
