import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isJsonSpace,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../core/json-bytes.ts'

export type ScanFault = 'not-json' | 'too-deep'

/**
 * Scans JSON text (RFC 8259) and finds where values end, without building them. Strict: every parser accepts what it accepts; unpaired
 * surrogates and numbers beyond a double are faults. After a fault it does not advance.
 */
export class JsonScanner {
  at = 0
  fault: ScanFault | undefined
  readonly #text: string
  readonly #depthMax: number
  #depth = 0
  /** Whether the last string has an escape. */
  #hasEscape = false
  /** The offset after the last member name. */
  #nameEnd = 0

  constructor(text: string, depthMax: number) {
    this.#text = text
    this.#depthMax = depthMax
  }

  peek(): string | undefined {
    return this.#text[this.at]
  }

  skipSpace(): void {
    while (isJsonSpace(this.#code())) this.at++
  }

  expectEnd(): void {
    this.skipSpace()
    if (this.at < this.#text.length) this.#fail()
  }

  skipValue(): void {
    this.skipSpace()
    switch (this.#code()) {
      case OPEN_BRACE:
        return this.#skipObject()
      case OPEN_BRACKET:
        return this.#skipArray()
      case QUOTE:
        return this.#skipString()
      case 0x74:
        return this.#skipLiteral('true')
      case 0x66:
        return this.#skipLiteral('false')
      case 0x6e:
        return this.#skipLiteral('null')
      default:
        this.#skipNumber()
    }
  }

  /** At `[`. `visit` must skip one value, unless it stops. */
  eachElement(visit: () => 'go on' | 'stop'): 'ended' | 'stopped' {
    if (!this.#enter(CLOSE_BRACKET)) return 'ended'
    do {
      if (visit() === 'stop') return 'stopped'
    } while (this.#hasMore(CLOSE_BRACKET))
    return 'ended'
  }

  /** At `{`. `visit` gets the name and must skip its value. */
  eachMember(visit: (name: string) => void): void {
    if (!this.#enter(CLOSE_BRACE)) return
    do {
      const from = this.at
      if (!this.#skipName()) return
      const raw = this.#text.slice(from, this.#nameEnd)
      visit(this.#hasEscape ? (JSON.parse(raw) as string) : raw.slice(1, -1))
    } while (this.#hasMore(CLOSE_BRACE))
  }

  #skipObject(): void {
    if (!this.#enter(CLOSE_BRACE)) return
    do {
      if (!this.#skipName()) return
      this.skipValue()
    } while (this.#hasMore(CLOSE_BRACE))
  }

  #skipArray(): void {
    if (!this.#enter(CLOSE_BRACKET)) return
    do this.skipValue()
    while (this.#hasMore(CLOSE_BRACKET))
  }

  /** Skips a member's name and its colon. */
  #skipName(): boolean {
    if (this.#code() !== QUOTE) this.#fail()
    else this.#skipString()
    if (this.fault !== undefined) return false
    this.#nameEnd = this.at
    this.skipSpace()
    if (this.#code() !== COLON) this.#fail()
    this.at++
    return this.fault === undefined
  }

  /** Skips the opening bracket; false where the container is empty or nested too deep. */
  #enter(close: number): boolean {
    if (this.#depth >= this.#depthMax) {
      this.fault ??= 'too-deep'
      return false
    }
    this.#depth++
    this.at++
    this.skipSpace()
    if (this.#code() !== close) return true
    this.#leave()
    return false
  }

  #leave(): void {
    this.#depth--
    this.at++
  }

  /** After a value: skips a comma and returns true, or skips the closing bracket and returns false. False also at a fault. */
  #hasMore(close: number): boolean {
    if (this.fault !== undefined) return false
    this.skipSpace()
    const next = this.#code()
    if (next === COMMA) {
      this.at++
      this.skipSpace()
      return true
    }
    if (next === close) this.#leave()
    else this.#fail()
    return false
  }

  #skipLiteral(literal: string): void {
    if (this.#text.startsWith(literal, this.at)) this.at += literal.length
    else this.#fail()
  }

  #skipNumber(): void {
    const end = integerEnd(this.#text, this.at)
    if (end !== -1) {
      this.at = end
      return
    }
    NUMBER.lastIndex = this.at
    const match = NUMBER.exec(this.#text)
    if (!match || !Number.isFinite(Number(match[0]))) return this.#fail()
    this.at = NUMBER.lastIndex
  }

  #skipString(): void {
    const text = this.#text
    let at = this.at + 1
    let loopEnd = at + SHORT_CHARS
    this.#hasEscape = false
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) break
      // Past the end the code is NaN, for which `code < 0x20` would be false.
      if (!(code >= 0x20)) return this.#fail()
      if (code === BACKSLASH) {
        const length = escapeLength(text, at)
        if (length === 0) return this.#fail()
        this.#hasEscape = true
        at += length
      } else if (at < loopEnd) {
        at++
      } else {
        at = plainEnd(text, at)
        loopEnd = at + SHORT_CHARS
      }
    }
    this.at = at + 1
  }

  #code(): number {
    return this.#text.charCodeAt(this.at)
  }

  #fail(): void {
    this.fault ??= 'not-json'
  }
}

/** The offset after a positive integer of at most 15 digits; -1 for any other number. */
function integerEnd(text: string, from: number): number {
  let at = from
  let code = text.charCodeAt(at)
  if (code === 0x30) return -1
  while (code >= 0x30 && code <= 0x39) code = text.charCodeAt(++at)
  const continues = code === 0x2e || code === 0x45 || code === 0x65
  return at === from || continues || at - from > 15 ? -1 : at
}

/** Up to this length a loop is faster than a regular expression, which for a transaction takes a fifth of the time. */
const SHORT_CHARS = 32
/** All but the quote, the backslash and control characters. */
const PLAIN = /[ !#-[\]-\uffff]*/y

function plainEnd(text: string, from: number): number {
  PLAIN.lastIndex = from
  PLAIN.test(text)
  return PLAIN.lastIndex
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const HEX4 = /[0-9a-fA-F]{4}/y

/** Length of the escape at `at`, a surrogate pair counted as one; 0 where it is invalid. */
function escapeLength(text: string, at: number): number {
  const kind = text[at + 1]
  if (kind !== 'u') return kind !== undefined && '"\\/bfnrt'.includes(kind) ? 2 : 0
  const first = hex4(text, at + 2)
  if (first === undefined || (first >= 0xdc00 && first <= 0xdfff)) return 0
  if (first < 0xd800 || first > 0xdbff) return 6
  if (!text.startsWith('\\u', at + 6)) return 0
  const second = hex4(text, at + 8)
  return second !== undefined && second >= 0xdc00 && second <= 0xdfff ? 12 : 0
}

function hex4(text: string, at: number): number | undefined {
  HEX4.lastIndex = at
  const match = HEX4.exec(text)
  return match ? Number.parseInt(match[0], 16) : undefined
}
