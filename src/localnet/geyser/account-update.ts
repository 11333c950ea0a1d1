import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { SYSTEM_PROGRAM } from '../chain/addresses.ts'
import type { Account, AccountWrite, BankId } from '../chain/model.ts'
import { cutSlices, type DataSlices } from './data-slices.ts'
import { infoOf, writeBankId, writer } from './scratch.ts'

const WHOLE: DataSlices = []
const MISSING_ACCOUNT: Account = {
  lamports: 0n,
  owner: SYSTEM_PROGRAM,
  data: new Uint8Array(0),
  executable: false,
  rentEpoch: 0n,
}

export class AccountUpdate {
  readonly kind = 'account'
  readonly write: AccountWrite
  readonly isStartup: boolean
  readonly #createdAt: Uint8Array
  readonly #bankId: BankId
  #body: Uint8Array | undefined
  #sliced: { readonly slices: DataSlices; readonly body: Uint8Array } | undefined

  constructor(
    write: AccountWrite,
    createdAt: Uint8Array,
    { isStartup = false, bankId }: { readonly isStartup?: boolean; readonly bankId?: BankId } = {},
  ) {
    this.write = write
    this.#createdAt = createdAt
    this.isStartup = isStartup
    this.#bankId = bankId
  }

  get account(): Account {
    return this.write.account ?? MISSING_ACCOUNT
  }

  body(slices: DataSlices): Uint8Array {
    if (slices.length === 0) return (this.#body ??= this.#encode(WHOLE))
    if (this.#sliced?.slices !== slices) this.#sliced = { slices, body: this.#encode(slices) }
    return this.#sliced.body
  }

  /** Only the message SubscribeUpdateAccountInfo, for blocks. */
  info(slices: DataSlices): Uint8Array {
    return infoOf(this.body(slices))
  }

  #encode(slices: DataSlices): Uint8Array {
    const info = encodeAccountInfo(this.write, this.account, slices)
    writer.message(2, () => {
      writer.presentBytes(1, info)
      writer.uint(2, this.write.slot)
      writer.bool(3, this.isStartup)
      writeBankId(4, this.#bankId)
    })
    writer.raw(this.#createdAt)
    return writer.take()
  }
}

function encodeAccountInfo(write: AccountWrite, account: Account, slices: DataSlices): Uint8Array {
  const parts = cutSlices(account.data, slices)
  const dataBytes = parts.reduce((sum, part) => sum + part.length, 0)
  writer.bytes(1, decodeBase58(write.address))
  writer.uint(2, account.lamports)
  writer.bytes(3, decodeBase58(account.owner))
  writer.bool(4, account.executable)
  writer.uint(5, account.rentEpoch)
  if (dataBytes > 0) {
    writer.lengthPrefix(6, dataBytes)
    for (const part of parts) writer.raw(part)
  }
  writer.uint(7, write.writeVersion)
  if (write.signature !== undefined) writer.presentBytes(8, decodeBase58(write.signature))
  return writer.take()
}
