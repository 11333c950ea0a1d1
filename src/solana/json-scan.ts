export type ScanFault = 'not-json' | 'too-deep'

/**
 * Walks over JSON text (RFC 8259) and says where values end, without building them. Strict: what it accepts every parser accepts,
 * unpaired surrogates and numbers beyond a double among the refused. After a fault it stands still.
 */
export class JsonScanner {
  at = 0
  fault: ScanFault | undefined
  readonly #text: string
  readonly #depthMax: number
  #depth = 0

  constructor(text: string, depthMax: number) {
    this.#text = text
    this.#depthMax = depthMax
  }

  peek(): string | undefined {
    return this.#text[this.at]
  }

  skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.at++
    }
  }

  expectEnd(): void {
    this.skipSpace()
    if (this.at < this.#text.length) this.#fail()
  }

  skipValue(): void {
    this.skipSpace()
    switch (this.peek()) {
      case '{':
        this.eachMember(() => this.skipValue())
        return
      case '[':
        this.eachElement(() => {
          this.skipValue()
          return 'go on'
        })
        return
      case '"':
        this.#skipString()
        return
      case 't':
        this.#skipWord('true')
        return
      case 'f':
        this.#skipWord('false')
        return
      case 'n':
        this.#skipWord('null')
        return
      default:
        this.#skipNumber()
    }
  }

  /** Stands on `[`. `visit` must move past one value, unless it stops. */
  eachElement(visit: () => 'go on' | 'stop'): 'ended' | 'stopped' {
    if (!this.#enter()) return 'ended'
    this.skipSpace()
    if (this.peek() === ']') {
      this.#leave()
      return 'ended'
    }
    while (this.fault === undefined) {
      if (visit() === 'stop') return 'stopped'
      if (!this.#moreBefore(']')) break
    }
    return 'ended'
  }

  /** Stands on `{`. `visit` gets the name and must move past its value. */
  eachMember(visit: (name: string) => void): void {
    if (!this.#enter()) return
    this.skipSpace()
    if (this.peek() === '}') return this.#leave()
    while (this.fault === undefined) {
      this.skipSpace()
      const from = this.at
      if (this.peek() !== '"') return this.#fail()
      this.#skipString()
      if (this.fault !== undefined) return
      const raw = this.#text.slice(from, this.at)
      this.skipSpace()
      if (this.peek() !== ':') return this.#fail()
      this.at++
      visit(raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1))
      if (!this.#moreBefore('}')) return
    }
  }

  #enter(): boolean {
    if (this.#depth >= this.#depthMax) {
      this.fault ??= 'too-deep'
      return false
    }
    this.#depth++
    this.at++
    return true
  }

  #leave(): void {
    this.#depth--
    this.at++
  }

  /** After a value: true over a comma, false over the closing bracket or at a fault. */
  #moreBefore(close: string): boolean {
    if (this.fault !== undefined) return false
    this.skipSpace()
    const next = this.peek()
    if (next === ',') {
      this.at++
      return true
    }
    if (next === close) this.#leave()
    else this.#fail()
    return false
  }

  #skipWord(word: string): void {
    if (this.#text.startsWith(word, this.at)) this.at += word.length
    else this.#fail()
  }

  #skipNumber(): void {
    NUMBER.lastIndex = this.at
    const match = NUMBER.exec(this.#text)
    if (!match || !Number.isFinite(Number(match[0]))) return this.#fail()
    this.at = NUMBER.lastIndex
  }

  #skipString(): void {
    const text = this.#text
    let at = this.at + 1
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === 0x22) break
      // Past the end the code is NaN, which fails both comparisons: test for what may stand there.
      if (!(code >= 0x20)) return this.#fail()
      if (code === 0x5c) {
        const length = escapeLength(text, at)
        if (length === 0) return this.#fail()
        at += length
      } else {
        at++
      }
    }
    this.at = at + 1
  }

  #fail(): void {
    this.fault ??= 'not-json'
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const HEX4 = /[0-9a-fA-F]{4}/y

/** Characters of the escape at `at`, a surrogate pair as one; 0 where it is none. */
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
