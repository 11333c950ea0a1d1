/** The position of a key in the text; both count from 1. */
export type Position = { line: number; column: number }
export type KeyPath = readonly (string | number)[]

/**
 * Finds the position of each key in a TOML text. The parser, which gives no positions, has accepted the text; this only
 * walks table headers, dotted and quoted keys, and the keys inside arrays and inline tables.
 */
export function findKeyPositions(text: string): Map<string, Position> {
  const walker = new Walker(text)
  walker.walk()
  return walker.positions
}

/** The place of the key or table that this line has again, in a text that the parser refuses for that. */
export function findRepeated(text: string, line: number): Position | undefined {
  const walker = new Walker(text)
  walker.walk()
  return walker.repeated.get(line)
}

export function pathKey(path: KeyPath): string {
  return path.map((part) => JSON.stringify(String(part))).join('.')
}

/** Deeper keys get the position of the key above them. No option is as deep. */
const DEPTH_MAX = 32

function below(path: KeyPath, ...keys: KeyPath): KeyPath {
  return path.length < DEPTH_MAX ? [...path, ...keys.slice(0, DEPTH_MAX - path.length)] : path
}

class Walker {
  readonly positions = new Map<string, Position>()
  /** By the line that has a key again: the first position of the deepest one. */
  readonly repeated = new Map<number, Position>()
  readonly #text: string
  readonly #lineStarts: number[] = [0]
  /** How many elements each array of tables has so far. */
  readonly #tableCounts = new Map<string, number>()
  #at = 0

  constructor(text: string) {
    this.#text = text
    // Some editors begin a file with a byte order mark, which the parser skips.
    if (text.startsWith('\ufeff')) this.#lineStarts[0] = this.#at = 1
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) this.#lineStarts.push(at + 1)
  }

  walk(): void {
    let table: KeyPath = []
    for (this.#skipBlank(); this.#at < this.#text.length; this.#skipBlank()) {
      if (this.#peek() === '[') table = this.#readHeader()
      else this.#readPair(table)
    }
  }

  #readHeader(): KeyPath {
    const isArray = this.#text.startsWith('[[', this.#at)
    this.#at += isArray ? 2 : 1
    this.#skipSpaces()
    const start = this.#at
    const keys = this.#readKeys()
    this.#at += isArray ? 2 : 1
    // A header below an array of tables refers to its last element.
    let path: KeyPath = []
    for (const [index, key] of keys.slice(0, DEPTH_MAX).entries()) {
      path = below(path, key)
      this.#mark(path, start)
      const counted = pathKey(path)
      if (isArray && index === keys.length - 1) {
        const count = (this.#tableCounts.get(counted) ?? 0) + 1
        this.#tableCounts.set(counted, count)
        path = below(path, count - 1)
      } else if (this.#tableCounts.has(counted)) path = below(path, (this.#tableCounts.get(counted) as number) - 1)
    }
    this.#mark(path, start)
    return path
  }

  #readPair(table: KeyPath): void {
    const start = this.#at
    const keys = this.#readKeys()
    for (let count = 1; count <= Math.min(keys.length, DEPTH_MAX); count++)
      this.#mark(below(table, ...keys.slice(0, count)), start)
    this.#skipSpaces()
    this.#at += 1 // the equals sign
    this.#skipSpaces()
    this.#readValue(below(table, ...keys.slice(0, DEPTH_MAX)))
  }

  #readKeys(): string[] {
    const keys: string[] = []
    while (this.#at < this.#text.length) {
      this.#skipSpaces()
      keys.push(this.#readKey())
      this.#skipSpaces()
      if (this.#peek() !== '.') return keys
      this.#at += 1
    }
    return keys
  }

  #readKey(): string {
    const quote = this.#peek()
    const start = this.#at
    if (quote === '"' || quote === "'") {
      this.#skipString()
      const written = this.#text.slice(start, this.#at)
      return quote === "'" ? written.slice(1, -1) : unescape(written)
    }
    const bare = /[A-Za-z0-9_-]*/y
    bare.lastIndex = start
    const key = bare.exec(this.#text)?.[0] ?? ''
    // Always advances, so that the walk ends also for a text that is not TOML.
    this.#at += Math.max(1, key.length)
    return key
  }

  #readValue(path: KeyPath): void {
    const first = this.#peek()
    if (first === '"' || first === "'") this.#skipString()
    else if (first === '[') this.#readArray(path)
    else if (first === '{') this.#readInlineTable(path)
    else {
      const plain = /[^,\]}#\n]*/y
      plain.lastIndex = this.#at
      this.#at += Math.max(1, plain.exec(this.#text)?.[0]?.length ?? 0)
    }
  }

  #readArray(path: KeyPath): void {
    this.#at += 1
    for (let index = 0; this.#at < this.#text.length; ) {
      this.#skipBlank()
      const next = this.#peek()
      if (next === ']') break
      if (next === ',') {
        this.#at += 1
        continue
      }
      this.#mark(below(path, index), this.#at)
      this.#readValue(below(path, index))
      index += 1
    }
    this.#at += 1
  }

  #readInlineTable(path: KeyPath): void {
    this.#at += 1
    while (this.#at < this.#text.length) {
      this.#skipBlank()
      const next = this.#peek()
      if (next === '}') break
      if (next === ',') this.#at += 1
      else this.#readPair(path)
    }
    this.#at += 1
  }

  #skipString(): void {
    const quote = this.#peek()
    const long = quote.repeat(3)
    const isLong = this.#text.startsWith(long, this.#at)
    const end = isLong ? long : quote
    this.#at += end.length
    while (this.#at < this.#text.length && !this.#text.startsWith(end, this.#at)) {
      this.#at += quote === '"' && this.#peek() === '\\' ? 2 : 1
    }
    this.#at += end.length
    // A multi-line string may end in up to two quotes that belong to it.
    if (isLong) for (let more = 0; more < 2 && this.#peek() === quote; more++) this.#at += 1
  }

  #skipSpaces(): void {
    while (this.#peek() === ' ' || this.#peek() === '\t') this.#at += 1
  }

  /** Spaces, line ends and comments. */
  #skipBlank(): void {
    const blank = /(?:[ \t\r\n]|#[^\n]*)*/y
    blank.lastIndex = this.#at
    this.#at += blank.exec(this.#text)?.[0]?.length ?? 0
  }

  #peek(): string {
    return this.#text[this.#at] ?? ''
  }

  #mark(path: KeyPath, at: number): void {
    const key = pathKey(path)
    const position = this.#positionAt(at)
    const first = this.positions.get(key)
    if (first === undefined) this.positions.set(key, position)
    else if (first.line !== position.line) this.repeated.set(position.line, first)
  }

  #positionAt(at: number): Position {
    let low = 0
    let high = this.#lineStarts.length - 1
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((this.#lineStarts[middle] as number) <= at) low = middle
      else high = middle - 1
    }
    return { line: low + 1, column: at - (this.#lineStarts[low] as number) + 1 }
  }
}

/** A basic string as written, quotes included. TOML's `\U0001F600`, `\x41` and `\e` are the only escapes JSON lacks. */
function unescape(written: string): string {
  try {
    return JSON.parse(written.replaceAll(/\\(?:U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|[^])/g, toJsonEscape)) as string
  } catch {
    return written.slice(1, -1)
  }
}

function toJsonEscape(escape: string, long: string | undefined, short: string | undefined): string {
  if (long !== undefined) return JSON.stringify(String.fromCodePoint(Number.parseInt(long, 16))).slice(1, -1)
  if (short !== undefined) return `\\u00${short}`
  return escape === '\\e' ? '\\u001b' : escape
}
