import { Buffer } from 'node:buffer'
import type { Random } from '../../../core/random.ts'

type Cell<Value> = { readonly account: string; readonly value: Value; next: Cell<Value> | undefined }

const KEY_BYTES = 32
/** Bits of a hash. With factors of 32 bits, two different accounts have the same hash with a probability below 2^-24. */
const HASH_BITS = 25

/**
 * Values by account. An account is looked up where its bytes stand: making a text of them takes longer than all the rest of a look-up. Customers choose the
 * accounts, so the factors of the hash are random: nobody can choose accounts with the same one. (Multilinear hashing, Carter and Wegman 1979.)
 */
export class AccountTable<Value> {
  readonly #cells = new Map<number, Cell<Value>>()
  readonly #factors: Int32Array
  readonly #scratch = Buffer.alloc(KEY_BYTES)
  #size = 0

  constructor(random: Random) {
    this.#factors = new Int32Array(Uint8Array.from(random.bytes(4 * KEY_BYTES)).buffer)
  }

  get size(): number {
    return this.#size
  }

  /** The value of the account whose bytes begin at `at`. */
  get(bytes: Uint8Array, at: number): Value | undefined {
    let cell = this.#cells.get(this.#hash(bytes, at))
    while (cell !== undefined && !isSame(cell.account, bytes, at)) cell = cell.next
    return cell?.value
  }

  /** The value of an account given as a text of `keyText`. */
  find(account: string): Value | undefined {
    this.#scratch.write(account, 'latin1')
    return this.get(this.#scratch, 0)
  }

  /** Adds an account that is not in the table. */
  add(account: string, value: Value): void {
    const hash = this.#hashOf(account)
    this.#cells.set(hash, { account, value, next: this.#cells.get(hash) })
    this.#size += 1
  }

  delete(account: string): void {
    const hash = this.#hashOf(account)
    let before: Cell<Value> | undefined
    for (let cell = this.#cells.get(hash); cell !== undefined; before = cell, cell = cell.next) {
      if (cell.account !== account) continue
      if (before !== undefined) before.next = cell.next
      else if (cell.next !== undefined) this.#cells.set(hash, cell.next)
      else this.#cells.delete(hash)
      this.#size -= 1
      return
    }
  }

  #hashOf(account: string): number {
    this.#scratch.write(account, 'latin1')
    return this.#hash(this.#scratch, 0)
  }

  #hash(bytes: Uint8Array, at: number): number {
    const factors = this.#factors
    let sum = 0
    for (let i = 0; i < KEY_BYTES; i++) sum = (sum + Math.imul(factors[i] as number, bytes[at + i] as number)) | 0
    return sum >>> (32 - HASH_BITS)
  }
}

function isSame(account: string, bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < KEY_BYTES; i++) if (account.charCodeAt(i) !== bytes[at + i]) return false
  return true
}
