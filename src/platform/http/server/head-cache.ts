import { SameHead } from '../client/header-cache.ts'
import { FAST_PATH_LIMITS, type FastPathHead } from './fast-path-head.ts'

/** A plain head with what its reader keeps for the handler; nothing for the first of a connection. */
export type KnownHead = FastPathHead & { readonly kept: { reading: unknown } | undefined }

type Remembered = KnownHead & { readonly lengthAt: number }

/** The head a connection brought last, known again without being read. */
export class CachedHead {
  /** After `again` found one: where its body begins. */
  bodyAt = 0
  readonly #same = new SameHead<Remembered>()

  /** The head at the beginning of these bytes, if it is the one before but for its length. */
  again(bytes: Buffer): KnownHead | undefined {
    const same = this.#same
    if (!same.matches(bytes, 0) || same.length > FAST_PATH_LIMITS.bodyBytesMax) return undefined
    this.bodyAt = same.bodyAt
    const known = same.meaning as Remembered
    if (known.bodyBytes === same.length) return known
    // As its own bytes would have been read.
    return { ...known, headers: known.headers.with(known.lengthAt, String(same.length)), bodyBytes: same.length }
  }

  remember(head: FastPathHead, bytes: Buffer, headBytes: number): KnownHead {
    const isLength = (name: string, at: number) => at % 2 === 0 && name.toLowerCase() === 'content-length'
    const lengthAt = head.headers.findIndex(isLength) + 1
    const known = { ...head, lengthAt, kept: { reading: undefined } }
    this.#same.remember(bytes, { from: 0, to: headBytes }, head.bodyBytes, known)
    return known
  }
}
