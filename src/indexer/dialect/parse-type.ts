import { tokenize } from '../query/sql-tokens.ts'
import { isTimeZone } from './functions/time-zone.ts'
import { arrayOf, BOOL, DATE, FLOAT32, FLOAT64, int, nullable, STRING, type Type, unknownType } from './types.ts'

/** Longer than every known type. */
const TYPE_LENGTH_MAX = 200

const SIMPLE: Readonly<Record<string, Type>> = {
  String: STRING,
  VARCHAR: STRING,
  TEXT: STRING,
  CHAR: STRING,
  Bool: BOOL,
  BOOLEAN: BOOL,
  Date: DATE,
  Date32: DATE,
  Float32: FLOAT32,
  Float64: FLOAT64,
  FLOAT: FLOAT32,
  DOUBLE: FLOAT64,
  DateTime: { kind: 'datetime' },
  TIMESTAMP: { kind: 'datetime' },
  DateTime64: { kind: 'datetime64', scale: 3 },
  UUID: { kind: 'uuid' },
  TINYINT: int(8, true),
  SMALLINT: int(16, true),
  INTEGER: int(32, true),
  INT: int(32, true),
  BIGINT: int(64, true),
  Decimal: { kind: 'decimal', precision: 10, scale: 0 },
}
const FOLDED: ReadonlyMap<string, Type> = new Map(
  Object.entries(SIMPLE).map(([name, type]) => [name.toLowerCase(), type]),
)
const DECIMALS: Readonly<Record<string, number>> = { decimal32: 9, decimal64: 18, decimal128: 38 }

/** Names of the types that may be written in a statement, for the list of what is offered. */
export const TYPE_NAMES: readonly string[] = [
  ...[8, 16, 32, 64, 128].flatMap((bits) => [`UInt${bits}`, `Int${bits}`]),
  ...[
    'Float32',
    'Float64',
    'Decimal(P, S)',
    'Decimal32(S)',
    'Decimal64(S)',
    'Decimal128(S)',
    'String',
    'Bool',
    'Date',
    'Date32',
    'DateTime',
    "DateTime('zone')",
    'DateTime64(N)',
    'UUID',
  ],
  ...['Array(T)', 'Tuple(T, …)', 'Map(K, V)', 'Nullable(T)', 'LowCardinality(T)'],
]

/** Types that were read before: a cast behind an alias reads its type at each use. */
const known = new Map<string, Type>()
const KNOWN_MAX = 1_000

/** Reads the name of a type. Throws QueryError for one that is not offered. */
export function parseType(name: string): Type {
  const found = known.get(name) ?? readType(name)
  if (known.size >= KNOWN_MAX) known.clear()
  known.set(name, found)
  return found
}

function readType(name: string): Type {
  if (name.length > TYPE_LENGTH_MAX) throw unknownType(name)
  const tokens = tokenize(name)
  let at = 0

  function read(): Type {
    const word = tokens[at++]
    if (word?.kind !== 'word') throw unknownType(name)
    const args: (Type | number | string)[] = []
    const names: string[] = []
    if (tokens[at]?.text === '(') {
      do {
        at++
        const token = tokens[at]
        if (token?.kind === 'number') args.push(Number(tokens[at++]?.text))
        else if (token?.kind === 'string') args.push(tokens[at++]?.value ?? '')
        else {
          // `Tuple(a UInt8, b String)`: a name stands before the type.
          if (token?.kind === 'name' || (token?.kind === 'word' && tokens[at + 1]?.kind === 'word'))
            names.push(tokens[at++]?.value ?? '')
          args.push(read())
        }
      } while (tokens[at]?.text === ',')
      if (tokens[at++]?.text !== ')') throw unknownType(name)
    }
    return build(word.text, args, names)
  }

  function build(word: string, args: readonly (Type | number | string)[], names: readonly string[]): Type {
    const folded = word.toLowerCase()
    if (names.length > 0 && (folded !== 'tuple' || names.length !== args.length)) throw unknownType(name)
    const [first, second] = args
    const whole = /^(u?)int(8|16|32|64|128)$/.exec(folded)
    if (whole !== null && args.length === 0) return int(Number(whole[2]), whole[1] === '')
    if (args.length === 0) {
      const simple = FOLDED.get(folded)
      if (simple !== undefined) return simple
    } else if (typeof first === 'object') {
      if (folded === 'nullable') return nullable(first)
      if (folded === 'array') return arrayOf(first)
      if (folded === 'lowcardinality') return { ...first, isLowCardinality: true }
      if (folded === 'tuple' && args.every((each) => typeof each === 'object'))
        return { kind: 'tuple', items: args as readonly Type[], ...(names.length === 0 ? {} : { names }) }
      if (folded === 'map' && typeof second === 'object') return { kind: 'map', key: first, value: second }
    } else if (folded === 'decimal' && typeof first === 'number' && first <= 38)
      return { kind: 'decimal', precision: first, scale: typeof second === 'number' ? second : 0 }
    else if (Object.hasOwn(DECIMALS, folded) && typeof first === 'number')
      return { kind: 'decimal', precision: DECIMALS[folded] as number, scale: first }
    else if (folded === 'datetime' && typeof first === 'string') return { kind: 'datetime', zone: zone(first) }
    else if (folded === 'datetime64' && typeof first === 'number' && first <= 9)
      return { kind: 'datetime64', scale: first, zone: typeof second === 'string' ? zone(second) : undefined }
    else if ((folded === 'varchar' || folded === 'char') && typeof first === 'number') return STRING
    throw unknownType(name)
  }

  function zone(text: string): string {
    if (!isTimeZone(text)) throw unknownType(name)
    return text
  }

  const type = read()
  if (at !== tokens.length) throw unknownType(name)
  return type
}
