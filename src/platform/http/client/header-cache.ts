/**
 * Knows the head of a message again. A peer sends nearly the same head with each message of a connection: only the value of Content-Length
 * differs. To see that costs a fraction of reading it, and what is the same byte for byte means the same. The length is read anew each time,
 * and only in its plain form; whatever is not the same goes the long way.
 */
export class SameHead<Meaning> {
  /** What the head means but for its length. */
  meaning: Meaning | undefined
  /** After a match: the value of Content-Length, and where the body begins. */
  length = 0
  bodyAt = 0
  #bytes: Uint8Array = NOTHING
  /** Where the value of Content-Length stands in it. */
  #lengthFrom = 0
  #lengthTo = 0

  /** Keeps a copy of a head, the empty line at its end included. Its one Content-Length has this value, in plain digits. */
  remember(bytes: Uint8Array, position: { from: number; to: number }, length: number, meaning: Meaning): void {
    this.forget()
    const head = bytes.subarray(position.from, position.to)
    const lengthFrom = lengthPosition(head, length)
    if (lengthFrom === -1) return
    this.#bytes = new Uint8Array(head)
    this.#lengthFrom = lengthFrom
    this.#lengthTo = lengthFrom + String(length).length
    this.meaning = meaning
  }

  forget(): void {
    this.#bytes = NOTHING
    this.meaning = undefined
  }

  /** Whether the same head begins here. */
  matches(bytes: Uint8Array, from: number): boolean {
    const known = this.#bytes
    const lengthFrom = this.#lengthFrom
    // The digits may be fewer or more than they were, but at least one.
    const rest = known.length - this.#lengthTo
    if (known.length === 0 || from + lengthFrom + 1 + rest > bytes.length) return false
    for (let at = 0; at < lengthFrom; at++) if (bytes[from + at] !== known[at]) return false
    let at = from + lengthFrom
    let length = 0
    for (let digits = 0; digits < DIGITS_MAX; digits++) {
      const digit = (bytes[at] as number) - ZERO
      if (!(digit >= 0 && digit <= 9)) break
      length = length * 10 + digit
      at += 1
    }
    // A length of nothing or with a leading zero is for the long way.
    if (length === 0 || bytes[from + lengthFrom] === ZERO || at + rest > bytes.length) return false
    const shift = at - this.#lengthTo
    for (let behind = this.#lengthTo; behind < known.length; behind++) {
      if (bytes[shift + behind] !== known[behind]) return false
    }
    this.length = length
    this.bodyAt = at + rest
    return true
  }
}

const NOTHING = new Uint8Array(0)
const ZERO = 0x30
/** 9,999,999 bytes: far above what is kept whole, and far below where a number loses digits. */
const DIGITS_MAX = 7
const NAME = Buffer.from('content-length:')

/** Where the plain digits of the one Content-Length begin; -1 where they are not found as they should be. */
function lengthPosition(head: Uint8Array, length: number): number {
  const digits = String(length)
  if (!(length > 0) || digits.length > DIGITS_MAX) return -1
  for (let line = 0; line + NAME.length < head.length; line++) {
    if (line > 0 && head[line - 1] !== 0x0a) continue
    if (!isNamed(head, line)) continue
    const from = line + NAME.length + (head[line + NAME.length] === 0x20 ? 1 : 0)
    for (let at = 0; at < digits.length; at++) if (head[from + at] !== digits.charCodeAt(at)) return -1
    return head[from + digits.length] === 0x0d ? from : -1
  }
  return -1
}

/** In whatever case; in a head that was found well, the one bit tells letters apart and nothing else. */
function isNamed(head: Uint8Array, from: number): boolean {
  for (let at = 0; at < NAME.length; at++) if (((head[from + at] as number) | 0x20) !== NAME[at]) return false
  return true
}
