import { zoneOf } from '../../types.ts'
import { quoteText, type Value } from '../../value.ts'
import type { CallArguments } from '../definition.ts'
import { local, utc } from './arguments.ts'

/** Letters of formatDateTime in the engine's patterns. An offset is that of UTC. */
const LETTERS: Readonly<Record<string, string>> = {
  a: '%a',
  b: '%b',
  c: '%m',
  C: '%C',
  d: '%d',
  D: '%m/%d/%y',
  e: '%-d',
  f: '%f',
  F: '%Y-%m-%d',
  G: '%G',
  h: '%I',
  H: '%H',
  i: '%M',
  I: '%I',
  j: '%j',
  k: '%H',
  l: '%I',
  m: '%m',
  M: '%B',
  n: '\n',
  p: '%p',
  r: '%I:%M %p',
  R: '%H:%M',
  s: '%S',
  S: '%S',
  t: '\t',
  T: '%H:%M:%S',
  u: '%u',
  V: '%V',
  w: '%w',
  W: '%A',
  y: '%y',
  Y: '%Y',
  z: '+0000',
  '%': '%%',
}

/** Letters of parseDateTime that read one digit, too. */
const PARSED: Readonly<Record<string, string>> = { c: '%-m', k: '%-H', l: '%-I' }

/** Longer than every known one. Reading a pattern takes longer than any other constant. */
const PATTERN_LENGTH_MAX = 100

function checkPattern(pattern: string, input: CallArguments): void {
  if (pattern.length > PATTERN_LENGTH_MAX)
    throw input.fail(`takes a pattern of at most ${PATTERN_LENGTH_MAX} characters (pattern_length)`)
}

/** A time as the pattern of ClickHouse writes it. */
export function formatted(time: Value, pattern: string, input: CallArguments): string {
  const zone = zoneOf(time.type)
  checkPattern(pattern, input)
  const parts = pattern.includes('%z') ? pattern.split(/(%.)/s).filter((part) => part !== '') : []
  if (!parts.includes('%z') || (time.type.kind !== 'date' && (zone === undefined || zone === 'UTC')))
    return strftime(time, pattern, input)
  if (time.type.kind === 'date') throw input.wrongType('does not take the pattern %z for a date')
  input.countCopies(local(time), 4 * parts.length)
  const runs: string[] = []
  for (const part of parts) {
    const last = runs.at(-1)
    if (part === '%z' || last === undefined || last === '%z') runs.push(part)
    else runs.splice(-1, 1, last + part)
  }
  return `(${runs.map((run) => (run === '%z' ? offset(time) : strftime(time, run, input))).join(' || ')})`
}

const strftime = (time: Value, pattern: string, input: CallArguments): string =>
  `strftime(${local(time)}, ${quoteText(enginePattern(pattern, LETTERS, input))})`

/** The offset of the zone at a time, such as +0530. */
function offset(time: Value): string {
  const minutes = `date_diff('minute', ${utc(time)}, ${local(time)})`
  const digits = (sql: string): string => `lpad(CAST(${sql} AS VARCHAR), 2, '0')`
  return `(CASE WHEN ${minutes} < 0 THEN '-' ELSE '+' END || ${digits(`abs(${minutes}) // 60`)} || ${digits(`abs(${minutes}) % 60`)})`
}

/** The engine's pattern for texts in a zone. */
export function parsedPattern(pattern: string, zone: string | undefined, input: CallArguments): string {
  checkPattern(pattern, input)
  if (zone !== undefined && zone !== 'UTC' && pattern.split(/(%.)/s).includes('%z'))
    throw input.fail('does not take the pattern %z beside a time zone')
  return enginePattern(pattern, { ...LETTERS, ...PARSED }, input)
}

function enginePattern(pattern: string, letters: Readonly<Record<string, string>>, input: CallArguments): string {
  return pattern.replaceAll(/%(.?)/gs, (_all, letter: string) => {
    const known = Object.hasOwn(letters, letter) ? letters[letter] : undefined
    if (known === undefined) throw input.fail(`does not take the pattern %${letter.replaceAll(/[^\x20-\x7e]/g, '?')}`)
    return known
  })
}
