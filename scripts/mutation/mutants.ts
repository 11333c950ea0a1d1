import { stripTypeScriptTypes } from 'node:module'

/** One deliberate fault in a source file. */
export type Mutant = {
  readonly line: number
  /** The original and the replacement. */
  readonly from: string
  readonly to: string
  /** The complete file with the fault. */
  readonly source: string
}

/** Operators and what each is replaced by. */
const SWAPS: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '&&': '||',
  '||': '&&',
  '+=': '-=',
  '-=': '+=',
  true: 'false',
  false: 'true',
  min: 'max',
  max: 'min',
  some: 'every',
  every: 'some',
}

/** All faults of one file, in source order. Types, strings, comments and imports are not changed. */
export function mutantsOf(source: string): Mutant[] {
  const code = blankOut(stripTypeScriptTypes(source))
  const found: Mutant[] = []
  const put = (at: number, from: string, to: string) => {
    const line = source.slice(0, at).split('\n').length
    found.push({ line, from, to, source: source.slice(0, at) + to + source.slice(at + from.length) })
  }
  for (const match of code.matchAll(/===|!==|<=|>=|&&|\|\||\+=|-=|(?<![=<>])[<>](?![=<>])|\b(?:true|false)\b/g)) {
    put(match.index, match[0], SWAPS[match[0]] as string)
  }
  for (const match of code.matchAll(/(?<=\.|Math\.)\b(?:min|max|some|every)(?=\()/g)) {
    put(match.index, match[0], SWAPS[match[0]] as string)
  }
  for (const match of code.matchAll(/(?<=[\s(&|=])!(?=[\w(])/g)) put(match.index, '!', '')
  for (const match of code.matchAll(/\bif \(/g)) {
    const close = closing(code, match.index + 3)
    if (close === undefined) continue
    const condition = source.slice(match.index, close + 1)
    put(match.index, condition, 'if (false)')
  }
  for (const match of code.matchAll(/(?<![\w.])\d[\d_]*(?![\w.])/g)) {
    const value = Number(match[0].replaceAll('_', ''))
    if (Number.isSafeInteger(value)) put(match.index, match[0], String(value + 1))
  }
  return found.toSorted((one, other) => one.line - other.line)
}

/** The code with strings, regular expressions, comments and imports replaced by blanks, so that offsets stay the same. */
function blankOut(code: string): string {
  const hidden =
    /\/\*[^]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=(?:[(,=:[!&|?{;]|\breturn)\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])*\/[a-z]*|^import [^\n]*$|=>/gm
  return code.replace(hidden, (text) => text.replace(/[^\n]/g, ' '))
}

/** Index of the parenthesis that closes the one at `at`. */
function closing(code: string, at: number): number | undefined {
  let depth = 0
  for (let index = at; index < code.length; index++) {
    if (code[index] === '(') depth++
    else if (code[index] === ')' && --depth === 0) return index
  }
  return undefined
}
