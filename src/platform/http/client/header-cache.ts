/**
 * Recognises the head of a message that equals the one before it on the connection but for the value of Content-Length. The comparison costs a
 * fraction of parsing. The length is read each time, and only in its usual form; every other head is parsed.
 */
export class HeaderCache<Value> {
  /** What was parsed from the cached head. */
  value: Value | undefined
  /** After a match: the value of Content-Length, and where the body begins. */
  length = 0
  bodyAt = 0
  #head: Uint8Array = NOTHING
  /** Where the digits of Content-Length are in the head. */
  #lengthFrom = 0
  #lengthTo = 0

  /** Copies a head, including the empty line at its end. Its only Content-Length has this value. */
  remember(bytes: Uint8Array, range: { from: number; to: number }, length: number, value: Value): void {
    this.clear()
    const head = bytes.subarray(range.from, range.to)
    const lengthFrom = lengthOffset(head, length)
    if (lengthFrom === -1) return
    this.#head = new Uint8Array(head)
    this.#lengthFrom = lengthFrom
    this.#lengthTo = lengthFrom + String(length).length
    this.value = value
  }

  clear(): void {
    this.#head = NOTHING
    this.value = undefined
  }

  /** Whether the cached head begins here. */
  matches(bytes: Uint8Array, from: number): boolean {
    const head = this.#head
    const lengthFrom = this.#lengthFrom
    // The number of digits may differ, but there is at least one.
    const tailBytes = head.length - this.#lengthTo
    if (head.length === 0 || from + lengthFrom + 1 + tailBytes > bytes.length) return false
    for (let i = 0; i < lengthFrom; i++) if (bytes[from + i] !== head[i]) return false
    let at = from + lengthFrom
    let length = 0
    for (let digits = 0; digits < DIGITS_MAX; digits++) {
      const digit = (bytes[at] as number) - ZERO
      if (!(digit >= 0 && digit <= 9)) break
      length = length * 10 + digit
      at += 1
    }
    // Zero and a leading zero are left to the parser.
    if (length === 0 || bytes[from + lengthFrom] === ZERO || at + tailBytes > bytes.length) return false
    const shift = at - this.#lengthTo
    for (let i = this.#lengthTo; i < head.length; i++) if (bytes[shift + i] !== head[i]) return false
    this.length = length
    this.bodyAt = at + tailBytes
    return true
  }
}

const NOTHING = new Uint8Array(0)
const ZERO = 0x30
/** 9,999,999 bytes: far more than is held in one buffer, and exact as a number. */
const DIGITS_MAX = 7
const NAME = Buffer.from('content-length:')

/** Where the digits of the only Content-Length begin; -1 where they are not in their usual form. */
function lengthOffset(head: Uint8Array, length: number): number {
  const digits = String(length)
  if (!(length > 0) || digits.length > DIGITS_MAX) return -1
  for (let line = 0; line + NAME.length < head.length; line++) {
    if (line > 0 && head[line - 1] !== 0x0a) continue
    if (!isContentLength(head, line)) continue
    const from = line + NAME.length + (head[line + NAME.length] === 0x20 ? 1 : 0)
    for (let i = 0; i < digits.length; i++) if (head[from + i] !== digits.charCodeAt(i)) return -1
    return head[from + digits.length] === 0x0d ? from : -1
  }
  return -1
}

/** Ignores case: in a head that was parsed, the bit 0x20 only distinguishes letters. */
function isContentLength(head: Uint8Array, from: number): boolean {
  for (let i = 0; i < NAME.length; i++) if (((head[from + i] as number) | 0x20) !== NAME[i]) return false
  return true
}
