import type { Input } from '../definition.ts'

/** Letters of formatDateTime in the engine's patterns. */
const LETTERS: Readonly<Record<string, string>> = {
  a: '%a',
  b: '%b',
  c: '%-m',
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
  k: '%-H',
  l: '%-I',
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

/** The pattern of ClickHouse as a pattern of the engine. */
export function dateTimePattern(pattern: string, input: Input): string {
  return pattern.replaceAll(/%(.?)/gs, (_all, letter: string) => {
    const known = Object.hasOwn(LETTERS, letter) ? LETTERS[letter] : undefined
    if (known === undefined) throw input.fail(`does not take the pattern %${letter.replaceAll(/[^\x20-\x7e]/g, '?')}`)
    return known
  })
}
