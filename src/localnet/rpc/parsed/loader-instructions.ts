import { Buffer } from 'node:buffer'
import { ByteReader, BytesError } from './byte-reader.ts'
import { nameAccounts, type ParsedState } from './parser.ts'

/** BPF Loader v2, whose program accounts hold the program. */
export function parseLoaderInstruction(accounts: readonly string[], data: Uint8Array): ParsedState {
  const read = new ByteReader(data)
  switch (read.u32()) {
    case 0:
      return { type: 'write', info: { ...readWrite(read), ...nameAccounts(accounts, ['account']) } }
    case 1:
      nameAccounts(accounts, ['account', 'rentSysvar'])
      return { type: 'finalize', info: nameAccounts(accounts, ['account']) }
    default:
      throw new BytesError('unknown instruction')
  }
}

export function parseUpgradeableLoaderInstruction(accounts: readonly string[], data: Uint8Array): ParsedState {
  const read = new ByteReader(data)
  const named = (...names: string[]) => nameAccounts(accounts, names)
  const at = (index: number) => accounts[index] ?? null
  switch (read.u32()) {
    case 0:
      return { type: 'initializeBuffer', info: accounts.length > 1 ? named('account', 'authority') : named('account') }
    case 1:
      return { type: 'write', info: { ...readWrite(read), ...named('account', 'authority') } }
    case 2: {
      const programs = named('payerAccount', 'programDataAccount', 'programAccount', 'bufferAccount', ...DEPLOY_TAIL)
      return { type: 'deployWithMaxDataLen', info: { maxDataLen: read.u64(), ...programs } }
    }
    case 3: {
      const names = [
        'programDataAccount',
        'programAccount',
        'bufferAccount',
        'spillAccount',
        'rentSysvar',
        'clockSysvar',
        'authority',
      ]
      return { type: 'upgrade', info: named(...names) }
    }
    case 4:
      return { type: 'setAuthority', info: { ...named('account', 'authority'), newAuthority: at(2) } }
    case 5:
      return { type: 'close', info: { ...named('account', 'recipient', 'authority'), programAccount: at(3) } }
    case 6: {
      const info = { additionalBytes: read.u32(), ...named('programDataAccount', 'programAccount') }
      return { type: 'extendProgram', info: { ...info, systemProgram: at(2), payerAccount: at(3) } }
    }
    case 7:
      return { type: 'setAuthorityChecked', info: named('account', 'authority', 'newAuthority') }
    case 8:
      return { type: 'migrate', info: named('programDataAccount', 'programAccount', 'authority') }
    case 9: {
      const info = { additionalBytes: read.u32(), ...named('programDataAccount', 'programAccount', 'authority') }
      return { type: 'extendProgramChecked', info: { ...info, systemProgram: at(3), payerAccount: at(4) } }
    }
    default:
      throw new BytesError('unknown instruction')
  }
}

const DEPLOY_TAIL = ['rentSysvar', 'clockSysvar', 'systemProgram', 'authority']

function readWrite(read: ByteReader) {
  const offset = read.u32()
  return { offset, bytes: Buffer.from(read.bytes(read.length64(1))).toString('base64') }
}
