import { Buffer } from 'node:buffer'
import type { BlockFooter } from '../chain/model.ts'
import { writer } from './scratch.ts'

/** The footer of an Alpenglow block. */
export class FooterUpdate {
  readonly kind = 'footer'
  readonly #body: Uint8Array

  constructor(bank: { readonly slot: number; readonly bankId: bigint }, footer: BlockFooter, createdAt: Uint8Array) {
    writer.message(12, () => {
      writer.uint(1, bank.slot)
      writer.uint(2, bank.bankId)
      writer.bytes(3, footer.bankHash)
      writer.uint(4, footer.producerTimeNanos)
      writer.bytes(5, Buffer.from(footer.userAgent))
    })
    writer.raw(createdAt)
    this.#body = writer.take()
  }

  body(): Uint8Array {
    return this.#body
  }
}
