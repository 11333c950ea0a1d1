import { Buffer } from 'node:buffer'
import { ByteReader, BytesError } from './byte-reader.ts'
import { nameAccounts, type ParsedState } from './parser.ts'
import { maybeKey } from './token-extensions.ts'

/**
 * Instructions of the token metadata and token group interfaces. Each begins with the first eight bytes of the SHA-256 of its name,
 * for example `spl_token_metadata_interface:initialize_account`.
 */
export function parseTokenInterfaceInstruction(accounts: readonly string[], data: Uint8Array): ParsedState {
  const read = new ByteReader(data)
  const named = (...names: string[]) => nameAccounts(accounts, names)
  switch (Buffer.from(read.bytes(8)).toString('hex')) {
    case 'd2e11ea258b84d8d': {
      const names = named('metadata', 'updateAuthority', 'mint', 'mintAuthority')
      const info = { ...names, name: read.string32(), symbol: read.string32(), uri: read.string32() }
      return { type: 'initializeTokenMetadata', info }
    }
    case 'dde9312db5cadcc8': {
      const info = { ...named('metadata', 'updateAuthority'), field: readField(read), value: read.string32() }
      return { type: 'updateTokenMetadataField', info }
    }
    case 'ea122038598d25b5': {
      const idempotent = read.bool()
      return {
        type: 'removeTokenMetadataKey',
        info: { ...named('metadata', 'updateAuthority'), key: read.string32(), idempotent },
      }
    }
    case 'd7e4a6e45464567b': {
      const info = { ...named('metadata', 'updateAuthority'), newAuthority: maybeKey(read) }
      return { type: 'updateTokenMetadataAuthority', info }
    }
    case 'faa6b4fa0d0cb846': {
      const start = read.option(() => read.u64()) ?? undefined
      const end = read.option(() => read.u64()) ?? undefined
      return { type: 'emitTokenMetadata', info: { ...named('metadata'), start, end } }
    }
    case '79716c2736330004': {
      const info = {
        ...named('group', 'mint', 'mintAuthority'),
        updateAuthority: maybeKey(read),
        maxSize: readCount(read),
      }
      return { type: 'initializeTokenGroup', info }
    }
    case '6c25ab8ff81e126e':
      return {
        type: 'updateTokenGroupMaxSize',
        info: { ...named('group', 'updateAuthority'), maxSize: readCount(read) },
      }
    case 'a1695801edddd8cb':
      return {
        type: 'updateTokenGroupAuthority',
        info: { ...named('group', 'updateAuthority'), newAuthority: maybeKey(read) },
      }
    case '9820deb0dfed7486': {
      const info = named('member', 'memberMint', 'memberMintAuthority', 'group', 'groupUpdateAuthority')
      return { type: 'initializeTokenGroupMember', info }
    }
    default:
      throw new BytesError('unknown instruction')
  }
}

function readField(read: ByteReader): string {
  const field = read.u8()
  if (field === 3) return read.string32()
  const name = ['name', 'symbol', 'uri'][field]
  if (name === undefined) throw new BytesError('unknown field')
  return name
}

/** The counters had 32 bits in an earlier version. */
function readCount(read: ByteReader): bigint | number {
  return read.remaining === 4 ? read.u32() : read.u64()
}
