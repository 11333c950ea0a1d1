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

/**
 * What the scan has reached. `item-start` and `item-end` enclose a response, `id-start` and `id-end` the value of its member `id`. `more`: the
 * piece is consumed.
 */
export type ScanEvent = 'more' | 'item-start' | 'id-start' | 'id-end' | 'item-end' | 'end' | 'fault'

/** Deeper than any node nests its responses. */
const DEPTH_MAX = 256
const LETTER_I = 0x69
const LETTER_D = 0x64

type State =
  /** Before the array of a batch, or before a single response. */
  | 'begin'
  /** Before a response of a batch, or before the end of an empty array. */
  | 'first'
  | 'item'
  /** Between two responses of a batch. */
  | 'between'
  | 'end'

/**
 * Finds the responses of a JSON-RPC body, and the id of each, in bytes that arrive in pieces of any size. It checks that strings, brackets and
 * braces are closed, and keeps none of the text, so its memory is constant and its work linear.
 */
export class ResponseScan {
  /** The offset after the last event. */
  at = 0
  #state: State = 'begin'
  readonly #isBatch: boolean
  /** For each open bracket, the byte that closes it. */
  readonly #closing = new Uint8Array(DEPTH_MAX)
  #depth = 0
  #isInString = false
  /** The previous piece ended in a backslash that escapes the next byte. */
  #isEscaped = false
  /** At depth 1: the next string is the name of a member. */
  #isName = false
  #nameBytes = 0
  #isNameId = false
  /** The next value is that of the id. */
  #isIdNext = false
  #isInId = false

  constructor({ isBatch }: { isBatch: boolean }) {
    this.#isBatch = isBatch
  }

  get isInItem(): boolean {
    return this.#state === 'item'
  }

  get isInId(): boolean {
    return this.#isInId
  }

  /** Continues from `this.at` to the next event; the caller sets `at` to 0 for a new piece. */
  next(piece: Buffer): ScanEvent {
    while (this.at < piece.length) {
      if (this.#isInString) {
        this.#skipString(piece)
        if (!this.#isInString && this.#isInId) return this.#endId()
        continue
      }
      const byte = piece[this.at] as number
      const isSpace = isJsonSpace(byte)
      if (this.#isInId && (isSpace || byte === COMMA || byte === CLOSE_BRACE)) return this.#endId()
      if (isSpace) {
        this.at += 1
        continue
      }
      const event = this.#state === 'item' ? this.#inItem(byte) : this.#outside(byte)
      if (event !== undefined) return event
    }
    return 'more'
  }

  #outside(byte: number): ScanEvent | undefined {
    const state = this.#state
    const isItem = byte === OPEN_BRACE
    if (isItem && (state === 'first' || (state === 'begin' && !this.#isBatch))) return this.#beginItem()
    this.at += 1
    if (this.#isBatch && state === 'begin' && byte === OPEN_BRACKET) this.#state = 'first'
    else if (state === 'between' && byte === COMMA) this.#state = 'first'
    else if ((state === 'between' || state === 'first') && byte === CLOSE_BRACKET) {
      this.#state = 'end'
      return 'end'
    } else return 'fault'
    return undefined
  }

  #beginItem(): ScanEvent {
    this.at += 1
    this.#state = 'item'
    this.#depth = 1
    this.#closing[0] = CLOSE_BRACE
    this.#isName = true
    this.#isIdNext = false
    return 'item-start'
  }

  #inItem(byte: number): ScanEvent | undefined {
    if (this.#isIdNext && byte !== COLON) {
      this.#isIdNext = false
      this.#isInId = true
      return 'id-start'
    }
    this.at += 1
    switch (byte) {
      case QUOTE:
        this.#isInString = true
        this.#nameBytes = 0
        this.#isNameId = true
        return undefined
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (this.#depth === DEPTH_MAX || this.#isInId) return 'fault'
        this.#closing[this.#depth++] = byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET
        return undefined
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (this.#closing[--this.#depth] !== byte) return 'fault'
        if (this.#depth > 0) return undefined
        this.#state = this.#isBatch ? 'between' : 'end'
        return 'item-end'
      case COMMA:
        if (this.#depth === 1) this.#isName = true
        return undefined
      default:
        return undefined
    }
  }

  /** To the end of the string or of the piece. */
  #skipString(piece: Buffer): void {
    const isName = this.#depth === 1 && this.#isName
    let from = this.at
    if (this.#isEscaped) {
      this.#isEscaped = false
      from += 1
    }
    for (;;) {
      const quote = piece.indexOf(QUOTE, from)
      const end = quote === -1 ? piece.length : quote
      let slashes = 0
      while (end - slashes > from && piece[end - slashes - 1] === BACKSLASH) slashes += 1
      if (quote === -1) this.#isEscaped = slashes % 2 === 1
      if (quote === -1 || slashes % 2 === 0) {
        if (isName) this.#readName(piece, end)
        this.at = quote === -1 ? end : end + 1
        this.#isInString = quote === -1
        if (isName && quote !== -1) {
          this.#isName = false
          this.#isIdNext = this.#isNameId && this.#nameBytes === 2
        }
        return
      }
      from = quote + 1
    }
  }

  #readName(piece: Buffer, to: number): void {
    for (let at = this.at; at < to && this.#isNameId; at++) {
      const expected = this.#nameBytes === 0 ? LETTER_I : this.#nameBytes === 1 ? LETTER_D : -1
      this.#isNameId = piece[at] === expected
      this.#nameBytes += 1
    }
  }

  #endId(): ScanEvent {
    this.#isInId = false
    return 'id-end'
  }
}
